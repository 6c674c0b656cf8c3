"""The options for Spark, shared by all commands with that engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ...common.errors import CannotRun
from ..cluster.place import KNOWN, WAIT_S, Place, place_of

Master = Annotated[str | None, typer.Option(help=f"with --engine spark: {KNOWN}; default: this machine")]
Conf = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="with --engine spark: a setting of Spark; any number")
]
Wait = Annotated[int, typer.Option(min=1, help="seconds to wait for a cluster, and for its first executor")]
USUAL_WAIT = WAIT_S


def place_for(engine: str, master: str | None, conf: Sequence[str] | None, workers: int, wait: int) -> Place:
    """Return the place of Spark from the options. Raises ``CannotRun`` if they are given with another engine."""
    if engine != "spark" and (master or conf):
        raise CannotRun(f"{'--master' if master else '--conf'} needs --engine spark")
    return place_of(master, conf or (), workers, wait)
