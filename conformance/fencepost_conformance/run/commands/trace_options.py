"""Options of the commands that write a trace of real clients: ``record`` and ``import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ...judge.checker.positions.judge import JUDGED, POSITIONS

TraceFile: TypeAlias = Annotated[
    Path, typer.Option("--output", "-o", help="the trace file; ….jsonl, or ….jsonl.gz to compress")
]
ClientsNeverSeek: TypeAlias = Annotated[
    bool,
    typer.Option("--positions", help="the clients never seek: let validate check the positions from which they read"),
]
Overwrite: TypeAlias = Annotated[bool, typer.Option("--force", help="overwrite an existing trace")]
BrokerVersion: TypeAlias = Annotated[str, typer.Option(help="the broker's release, stored in the trace")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="one JSON object on standard output")]


def provenance(broker_version: str, positions: bool) -> dict[str, str]:
    """Return what the trace says about its origin."""
    return {**({"broker": broker_version} if broker_version else {}), **({POSITIONS: JUDGED} if positions else {})}
