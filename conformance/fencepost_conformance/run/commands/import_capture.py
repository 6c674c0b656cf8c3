"""``fencepost import``: a trace from a packet capture of clients and brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...judge.checker.positions.judge import JUDGED, POSITIONS
from ...show.console import Result, finish
from ...traces.wire.settings import OPTION_HELP, given, settings_json


def import_capture(  # noqa: PLR0917
    capture: Annotated[Path, typer.Argument(metavar="FILE", help="the packet capture: pcap or pcapng")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the trace file; ….jsonl, or ….jsonl.gz to compress")],
    group: Annotated[list[str] | None, typer.Option(help="import only this group; may be repeated")] = None,
    setting: Annotated[list[str] | None, typer.Option(help=OPTION_HELP)] = None,
    positions: Annotated[
        bool,
        typer.Option(
            "--positions", help="the clients never seek: let validate check the positions from which they read"
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite an existing trace")] = False,
    broker_version: Annotated[str, typer.Option(help="the broker's release, stored in the trace")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Make a trace from a packet capture of unencrypted traffic."""
    from ...traces.capture.run import import_packets  # noqa: PLC0415  needs the extra pcap

    summary = import_packets(
        capture,
        output,
        groups=frozenset(group or ()),
        provenance={
            **({"broker": broker_version} if broker_version else {}),
            **({POSITIONS: JUDGED} if positions else {}),
        },
        settings=given(setting),
        replace=force,
    )
    finish(
        Result(
            "import",
            None,
            counts={
                "packets": summary.packets,
                "connections": summary.connections,
                "events": summary.events,
                "lost_bytes": summary.lost,
                "undecoded": summary.undecoded,
            },
            details={"trace": str(output), **settings_json(summary.known)},
            done=f"wrote {output}",
        ),
        as_json=as_json,
    )
