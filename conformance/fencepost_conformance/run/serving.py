"""The part of ``fencepost serve`` that needs the server: the meaning of its options, and the run.

Importing it takes most of the time of a start, so the command does that after its port is open.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path

from fencepost.store import StoreError
from fencepost_server.data.producers import Refused
from fencepost_server.data.topics import name_fault
from fencepost_server.faults import Plan, by_seed, parse
from fencepost_server.run import Ready, Setup, serve
from fencepost_server.security.acl import Acl, BadRule, parse_rules
from fencepost_server.security.sasl import BadMechanism, BadUsers, Users, parse_users

from ..common.errors import CannotRun

__all__ = ["Setup", "acl_of", "plan_of", "run", "tls_of", "topic_of", "users_of"]


def run(setup: Setup, *, as_json: bool) -> None:
    """Serve until Ctrl-C or SIGTERM; prints a line once requests are answered. Raises ``CannotRun``."""

    def ready(at: Ready) -> None:
        topics = {each.name: len(each.logs) for each in at.node.topics}
        if as_json:
            event = {"event": "ready", "listen": str(at.listen), "topics": topics}
            print(json.dumps(event | ({"status": str(at.status)} if at.status else {})), flush=True)
            return
        print(f"listening on {at.listen}", flush=True)
        if topics:
            print("topics: " + ", ".join(f"{name} ({count})" for name, count in topics.items()), flush=True)
        if at.status:
            print(f"groups and numbers: http://{at.status}/ and /metrics", flush=True)

    try:
        asyncio.run(serve(setup, ready))
    except StoreError as reason:
        raise CannotRun(str(reason)) from None
    except Refused as reason:
        raise CannotRun(f"--topic: {reason}") from None


def topic_of(text: str) -> tuple[str, int]:
    """Parse ``NAME:PARTITIONS`` into a topic and its partitions. Raises ``CannotRun``."""
    name, colon, count = text.rpartition(":")
    if not colon or not count.isdecimal() or int(count) < 1:
        raise CannotRun(f"--topic {text!r} is not NAME:PARTITIONS, such as orders:4")
    if wrong := name_fault(name):
        raise CannotRun(f"--topic {text!r}: {wrong}")
    return name, int(count)


def users_of(path: Path, sasl: str) -> Users:
    """Read the users from a file; ``sasl``: mechanisms, separated by commas. Raises ``CannotRun``."""
    try:
        return Users(parse_users(path.read_text()), tuple(each.strip().upper() for each in sasl.split(",")))
    except BadUsers as wrong:
        raise CannotRun(f"--users {path}: {wrong}") from None
    except BadMechanism as wrong:
        raise CannotRun(f"--sasl {sasl!r}: unknown mechanism {wrong}") from None


def acl_of(path: Path | None, superusers: list[str]) -> Acl:
    """Read the access rights from a file; without one every user may do everything. Raises ``CannotRun``."""
    if path is None:
        return Acl()
    try:
        return Acl(parse_rules(path.read_text()), superusers)
    except BadRule as wrong:
        raise CannotRun(f"--acl {path}: {wrong}") from None


def plan_of(text: str) -> Plan:
    """Read faults from a file, or draw them from a number. Raises ``CannotRun``."""
    if text.isdigit():
        return by_seed(int(text))
    try:
        return parse(json.loads(Path(text).read_text()))
    except OSError as wrong:
        raise CannotRun(f"--faults: {text} cannot be read: {wrong.strerror}; use a number to draw a plan") from None
    except ValueError as wrong:  # not JSON, or not a plan
        raise CannotRun(f"--faults: {text}: {wrong}") from None


def tls_of(certificate: Path, key: Path | None, client_ca: Path | None) -> ssl.SSLContext:
    """Return a TLS context with a certificate, its key, and the authorities of clients, all in PEM. Raises
    ``CannotRun``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except ssl.SSLError as wrong:
        raise CannotRun(f"--tls-cert {certificate}: {wrong.reason or wrong}") from None
    return context
