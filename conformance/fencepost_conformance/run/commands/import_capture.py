"""``fencepost import``: a trace from a packet capture of clients and brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...show.console import Result, finish
from ...traces.wire.settings import OPTION_HELP, given, settings_json
from .trace_options import AsJson, BrokerVersion, ClientsNeverSeek, Overwrite, TraceFile, provenance


def import_capture(  # noqa: PLR0917
    capture: Annotated[Path, typer.Argument(metavar="FILE", help="the packet capture: pcap or pcapng")],
    output: TraceFile,
    group: Annotated[list[str] | None, typer.Option(help="import only this group; may be repeated")] = None,
    setting: Annotated[list[str] | None, typer.Option(help=OPTION_HELP)] = None,
    positions: ClientsNeverSeek = False,
    force: Overwrite = False,
    broker_version: BrokerVersion = "",
    as_json: AsJson = False,
) -> None:
    """Make a trace from a packet capture of unencrypted traffic."""
    from ...traces.capture.run import import_packets  # noqa: PLC0415  needs the extra pcap

    summary = import_packets(
        capture,
        output,
        groups=frozenset(group or ()),
        provenance=provenance(broker_version, positions),
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
