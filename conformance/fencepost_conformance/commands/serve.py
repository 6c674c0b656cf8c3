"""``fencepost serve``: the coordinator on a port, for Kafka clients as they are."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer

from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.settings import BadSettings, Settings
from fencepost.server.data.topics import name_fault
from fencepost.server.node import Node
from fencepost.server.options import Address, Options
from fencepost.server.run import Setup
from fencepost.server.run import serve as serve_until_stopped

from ..console import CannotRun, Result, finish
from ..nearest import unknown
from ..record.run import parse_address
from ..wire.settings import OPTION_HELP, changed, given


def serve(  # noqa: PLR0917
    listen: Annotated[str, typer.Option(help="HOST:PORT that clients connect to; port 0 takes a free one")] = (
        "127.0.0.1:9092"
    ),
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME:PARTITIONS", help="a topic to have; may be repeated")
    ] = None,
    profile: Annotated[str, typer.Option(help=", ".join(sorted(PROFILES)))] = "intended",
    auto_create: Annotated[
        int, typer.Option(min=0, help="partitions of a topic that is asked for and not there; 0: none is made")
    ] = 0,
    setting: Annotated[list[str] | None, typer.Option(help=OPTION_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on standard output")] = False,
) -> None:
    """Serve the coordinator on a port until Ctrl-C or SIGTERM."""
    if profile not in PROFILES:
        raise CannotRun(unknown("profile", profile, PROFILES, f"known: {', '.join(sorted(PROFILES))}"))
    try:
        settings = changed(Settings(), given(setting))
    except (BadSettings, ValueError) as wrong:
        raise CannotRun(f"these settings do not go together: {wrong}") from None
    at = parse_address(listen, "--listen")
    setup = Setup(
        options=Options(listen=Address(host=at.host, port=at.port), auto_create=auto_create),
        settings=settings,
        profile=PROFILES[profile],
        topics=dict(_topic(each) for each in topic or ()),
    )

    def ready(address: Address, node: Node) -> None:
        topics = ", ".join(f"{each.name} ({len(each.logs)})" for each in node.topics)
        if as_json:
            line = {"event": "ready", "listen": str(address), "topics": {t.name: len(t.logs) for t in node.topics}}
            print(json.dumps(line), flush=True)
        else:
            print(f"listening on {address}" + (f"; topics: {topics}" if topics else ""), flush=True)

    asyncio.run(serve_until_stopped(setup, ready))
    finish(Result("serve", held=None, done="ended"), as_json=as_json)


def _topic(text: str) -> tuple[str, int]:
    name, colon, count = text.rpartition(":")
    if not colon or not count.isdecimal() or int(count) < 1:
        raise CannotRun(f"--topic {text!r} is not NAME:PARTITIONS, such as orders:4")
    if wrong := name_fault(name):
        raise CannotRun(f"--topic {text!r}: {wrong}")
    return name, int(count)
