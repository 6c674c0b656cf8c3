"""``fencepost record``: a proxy that records group traffic between clients and a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...common.addresses import parse_address
from ...show.console import Result, finish
from ...traces.recorder.run import record_until_stopped
from ...traces.wire.access import read_access
from ...traces.wire.settings import ACCESS_HELP, OPTION_HELP, given, settings_json
from .trace_options import AsJson, BrokerVersion, ClientsNeverSeek, Overwrite, TraceFile, provenance


def record(  # noqa: PLR0917
    listen: Annotated[str, typer.Option(help="HOST:PORT that clients connect to; port 0 picks a free one")],
    upstream: Annotated[str, typer.Option(help="HOST:PORT of the broker")],
    output: TraceFile,
    group: Annotated[list[str] | None, typer.Option(help="record only this group; may be repeated")] = None,
    setting: Annotated[list[str] | None, typer.Option(help=OPTION_HELP)] = None,
    client_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"the recorder's connection to the broker: {ACCESS_HELP}")
    ] = None,
    patience: Annotated[
        float, typer.Option(min=0, help="seconds that the broker may be down, for example for a restart")
    ] = 0,
    positions: ClientsNeverSeek = False,
    force: Overwrite = False,
    broker_version: BrokerVersion = "",
    as_json: AsJson = False,
) -> None:
    """Record the group traffic of clients and a broker, until Ctrl-C."""
    summary = record_until_stopped(
        parse_address(listen, "--listen"),
        parse_address(upstream, "--upstream"),
        output,
        groups=frozenset(group or ()),
        provenance=provenance(broker_version, positions),
        settings=given(setting),
        replace=force,
        patience_s=patience,
        access=read_access(client_config),
    )
    finish(
        Result(
            "record",
            None,
            counts={
                "events": summary.events,
                "connections": summary.connections,
                "malformed": summary.malformed,
                "undecoded": summary.undecoded,
            },
            details={"trace": str(output), **settings_json(summary.known)},
            done=f"wrote {output}",
        ),
        as_json=as_json,
    )
