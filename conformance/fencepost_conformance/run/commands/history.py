"""``fencepost history``: the life of a group, from the records of the offsets topic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from fencepost_server.look.made import made_now

from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...judge.history.events import History
from ...show.console import Result, finish, progress
from ...show.history.page import history_page
from ...show.history.terminal import overview, stories
from ...show.history.words import notices as about
from ...traces.offsets_log.source import Source
from ...traces.wire.settings import ACCESS_HELP
from ..history.engines import Reader
from .spark_options import USUAL_WAIT, Conf, Master, Wait, place_for


def history(  # noqa: PLR0917
    group: Annotated[str | None, typer.Argument(help="the group; without one, all groups are listed")] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="log segments (a broker's data folder, a folder __consumer_offsets-N, a file), or a dump"),
    ] = None,
    bootstrap: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="a broker of a running cluster, which is only read")
    ] = None,
    client_config: Annotated[Path | None, typer.Option(metavar="FILE", help=ACCESS_HELP)] = None,
    engine: Annotated[str, typer.Option(help="local (this process) or spark (for large logs)")] = "local",
    master: Master = None,
    conf: Conf = None,
    wait: Wait = USUAL_WAIT,
    workers: Annotated[int, typer.Option(min=0, help="cores, with --engine spark; 0: all cores")] = 0,
    html: Annotated[
        Path | None, typer.Option(help="also write a page, with the owners of partitions over time")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Show what happened to a group: members, rebalances, partitions, commits, and rules that the log breaks."""
    reader = Reader(Source(log, bootstrap, client_config), engine, place_for(engine, master, conf, workers, wait))
    with progress("records") as meter:
        found, notices = reader.read(meter, group)
        unread = notices.lines()
        if unread and not found.records:
            raise CannotRun(f"no record could be read: {'; '.join(unread)}")
        if group is not None and not found.groups:
            others = [each.group for each in reader.read(meter, None)[0].groups]
            raise CannotRun(unknown("group", group, others, "fencepost history without a group lists all"))
    if html is not None:
        made = made_now(group=group, source=log or bootstrap)
        html.write_text(history_page(found, found.groups[0] if group else None, unread, made), encoding="utf-8")
    shown = None
    if not as_json:
        shown = Group(*(overview(found, unread) if group is None else stories(found, unread)))
    finish(_result(found, unread), as_json=as_json, table=shown)


def _result(found: History, unread: list[str]) -> Result:
    span = found.span_ms
    return Result(
        "history",
        None,
        counts={
            "groups": len(found.groups),
            "records": found.records,
            "rebalances": sum(each.rebalances for each in found.groups),
            "commits": sum(each.commits for each in found.groups),
            "broken_rules": sum(each.breaches for each in found.groups),
        },
        details={
            "span_ms": span,
            "groups": [each.as_json(found.names, span) for each in found.groups],
            "notices": [*unread, *about(found)],
        },
        done="log read",
    )
