"""``fencepost serve``: the coordinator on a port, for Kafka clients as they are."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import json
import ssl
import sys
from pathlib import Path
from typing import Annotated

import typer

from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.settings import BadSettings, Settings
from fencepost.server.data.producers import Refused
from fencepost.server.data.topics import name_fault
from fencepost.server.faults import Plan, by_seed, parse
from fencepost.server.observe.logs import FORMATS, configure
from fencepost.server.options import MAX_FRAME_BYTES, MIB, Address, Limits, Options
from fencepost.server.run import Ready, Setup
from fencepost.server.run import serve as serve_until_stopped
from fencepost.server.security.acl import Acl, BadRule, parse_rules
from fencepost.server.security.sasl import MECHANISMS, BadMechanism, BadUsers, Users, parse_users
from fencepost.store import StoreError

from ..console import CannotRun, Result, finish
from ..nearest import unknown
from ..record.addresses import parse_address
from ..wire.settings import OPTION_HELP, changed, given

#: The collector looks at what is new after so many objects. What a coordinator holds has no cycles, and grows with what
#: is stored: looking at it all the time took a fifth of a commit's.
_COLLECTED = (50_000, 20, 50)
_LEVELS = ("debug", "info", "warning", "error")


def serve(  # noqa: PLR0917
    listen: Annotated[str, typer.Option(help="HOST:PORT that clients connect to; port 0 takes a free one")] = (
        "127.0.0.1:9092"
    ),
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME:PARTITIONS", help="a topic to have; may be repeated")
    ] = None,
    profile: Annotated[str, typer.Option(help=", ".join(sorted(PROFILES)))] = "intended",
    advertise: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="where clients are sent, if not where they came in")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DIR or postgresql://…",
            help="folder, or database of several nodes, where all is kept, to survive a crash; else in memory",
        ),
    ] = None,
    flush: Annotated[
        bool, typer.Option(help="what is acknowledged outlives the machine; else, as with Kafka, only the process")
    ] = True,
    node_id: Annotated[int, typer.Option(min=0, help="this node's number among those on one database")] = 1,
    lease_seconds: Annotated[
        float,
        typer.Option(min=0.5, help="a node that is not heard of for so long is followed by another on its database"),
    ] = 6.0,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, help="of the offsets topic, a coordinator for each; 50, or as the folder has it"),
    ] = None,
    auto_create: Annotated[
        int, typer.Option(min=0, help="partitions of a topic that is asked for and not there; 0: none is made")
    ] = 0,
    setting: Annotated[list[str] | None, typer.Option(help=OPTION_HELP)] = None,
    status: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="where /metrics and a page of groups are served")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="certificate in PEM; clients must speak TLS then")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="its key in PEM, if it is in a file of its own")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="clients must show a certificate of these authorities (PEM)")
    ] = None,
    users: Annotated[
        Path | None, typer.Option(help="file with NAME:PASSWORD in each line; clients must log in then (SASL)")
    ] = None,
    sasl: Annotated[str, typer.Option(help="mechanisms, with commas between them")] = ",".join(MECHANISMS),
    acl: Annotated[Path | None, typer.Option(help="file of rights; who has none may do nothing")] = None,
    superuser: Annotated[list[str] | None, typer.Option(help="User:NAME who may do everything")] = None,
    max_connections: Annotated[int, typer.Option(min=1)] = 10_000,
    max_frame_mib: Annotated[int, typer.Option(min=1, help="the largest request")] = MAX_FRAME_BYTES // MIB,
    max_buffered_mib: Annotated[int, typer.Option(min=1, help="requests of all connections together")] = 256,
    max_data_mib: Annotated[int, typer.Option(min=1, help="batches of all topics together")] = 1024,
    idle_seconds: Annotated[float, typer.Option(min=1, help="a connection may be silent for so long")] = 600,
    log: Annotated[str, typer.Option(help=f"{' or '.join(FORMATS)}, on standard error")] = "text",
    log_level: Annotated[str, typer.Option(help=", ".join(_LEVELS))] = "warning",
    faults: Annotated[
        str | None,
        typer.Option(
            metavar="PLAN", help="what is to go wrong, for authors of clients: a file, or a number, which draws a plan"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on standard output")] = False,
) -> None:
    """Serve the coordinator on a port until Ctrl-C or SIGTERM."""
    if profile not in PROFILES:
        raise CannotRun(unknown("profile", profile, PROFILES, f"known: {', '.join(sorted(PROFILES))}"))
    if log not in FORMATS:
        raise CannotRun(unknown("log", log, FORMATS, f"known: {', '.join(FORMATS)}"))
    if log_level not in _LEVELS:
        raise CannotRun(unknown("log level", log_level, _LEVELS, f"known: {', '.join(_LEVELS)}"))
    try:
        settings = changed(Settings(), given(setting))
    except (BadSettings, ValueError) as wrong:
        raise CannotRun(f"these settings do not go together: {wrong}") from None
    if superuser and acl is None:
        raise CannotRun("--superuser needs --acl: without it everybody may do everything")
    if tls_cert is None and (tls_key or tls_client_ca):
        raise CannotRun("--tls-key and --tls-client-ca need --tls-cert")
    database = data is not None and data.startswith(("postgresql://", "postgres://"))
    if not flush and (data is None or database):
        raise CannotRun(
            "--no-flush needs --data with a folder: in memory nothing is flushed, and a database is its own"
        )
    gc.set_threshold(*_COLLECTED)
    if database and faults is not None:
        raise CannotRun("--faults is for one server in memory or in a folder, not for nodes on a database")
    known = None if users is None else _users(users, sasl)
    setup = Setup(
        options=Options(
            listen=_address(listen, "--listen"),
            advertised=None if advertise is None else _address(advertise, "--advertise"),
            auto_create=auto_create,
            node_id=node_id,
            offsets_partitions=partitions,
            limits=Limits(
                connections=max_connections,
                frame_bytes=max_frame_mib * MIB,
                buffered_bytes=max_buffered_mib * MIB,
                data_bytes=max_data_mib * MIB,
                idle_s=idle_seconds,
            ),
        ),
        data=Path(data) if data and not database else None,
        database=data if database else None,
        lease_s=lease_seconds,
        flush=flush,
        settings=settings,
        profile=PROFILES[profile],
        topics=dict(_topic(each) for each in topic or ()),
        tls=None if tls_cert is None else _tls(tls_cert, tls_key, tls_client_ca),
        users=known,
        acl=Acl() if acl is None else _acl(acl, superuser or []),
        status=None if status is None else _address(status, "--status"),
        faults=None if faults is None else _plan(faults),
    )
    configure(log, log_level)
    if not _loopback(setup.options.listen.host) and (known is None or setup.tls is None):
        lacking = " and ".join([*["a log-in (--users)"] * (known is None), *["TLS (--tls-cert)"] * (setup.tls is None)])
        print(f"fencepost serve: {listen} is open to the network without {lacking}", file=sys.stderr)

    def ready(at: Ready) -> None:
        topics = {each.name: len(each.logs) for each in at.node.topics}
        if as_json:
            told = {"event": "ready", "listen": str(at.listen), "topics": topics}
            print(json.dumps(told | ({"status": str(at.status)} if at.status else {})), flush=True)
            return
        print(f"listening on {at.listen}", flush=True)
        if topics:
            print("topics: " + ", ".join(f"{name} ({count})" for name, count in topics.items()), flush=True)
        if at.status:
            print(f"groups and numbers: http://{at.status}/ and /metrics", flush=True)

    try:
        asyncio.run(serve_until_stopped(setup, ready))
    except StoreError as reason:
        raise CannotRun(str(reason)) from None
    except Refused as reason:
        raise CannotRun(f"--topic: {reason}") from None
    finish(Result("serve", None, done="ended"), as_json=as_json)


def _address(text: str, option: str) -> Address:
    found = parse_address(text, option)
    return Address(host=found.host, port=found.port)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _topic(text: str) -> tuple[str, int]:
    name, colon, count = text.rpartition(":")
    if not colon or not count.isdecimal() or int(count) < 1:
        raise CannotRun(f"--topic {text!r} is not NAME:PARTITIONS, such as orders:4")
    if wrong := name_fault(name):
        raise CannotRun(f"--topic {text!r}: {wrong}")
    return name, int(count)


def _users(path: Path, sasl: str) -> Users:
    try:
        return Users(parse_users(path.read_text()), tuple(each.strip().upper() for each in sasl.split(",")))
    except BadUsers as wrong:
        raise CannotRun(f"--users {path}: {wrong}") from None
    except BadMechanism as wrong:
        raise CannotRun(f"--sasl {sasl!r}: no mechanism {wrong}") from None


def _acl(path: Path, superusers: list[str]) -> Acl:
    try:
        return Acl(parse_rules(path.read_text()), superusers)
    except BadRule as wrong:
        raise CannotRun(f"--acl {path}: {wrong}") from None


def _plan(text: str) -> Plan:
    """A file, or a number that draws a plan."""
    if text.isdigit():
        return by_seed(int(text))
    try:
        return parse(json.loads(Path(text).read_text()))
    except OSError as wrong:
        raise CannotRun(f"--faults: {text} cannot be read: {wrong.strerror}; a number would draw a plan") from None
    except ValueError as wrong:  # what is no JSON, and what is no plan
        raise CannotRun(f"--faults: {text}: {wrong}") from None


def _tls(certificate: Path, key: Path | None, client_ca: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except ssl.SSLError as wrong:
        raise CannotRun(f"--tls-cert {certificate}: {wrong.reason or wrong}") from None
    return context
