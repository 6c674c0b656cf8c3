"""``fencepost watch``: the groups of a running cluster, live."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from fencepost_server.options import LABELLED_GROUPS
from fencepost_server.options import Address as Listen

from ...common.addresses import parse_address
from ...judge.watch.board import Board
from ...show.console import Result, finish
from ...show.watch.terminal import line_of, shown
from ...traces.wire.access import read_access
from ...traces.wire.settings import ACCESS_HELP, METRIC_GROUPS_HELP
from ..watching.session import Watching, now_ms
from ..watching.session import watch as session


def watch(  # noqa: PLR0917
    bootstrap: Annotated[str, typer.Option(metavar="HOST:PORT", help="a broker of the cluster, which is only read")],
    group: Annotated[list[str] | None, typer.Argument(help="the groups; without one, all are shown")] = None,
    client_config: Annotated[Path | None, typer.Option(metavar="FILE", help=ACCESS_HELP)] = None,
    status: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="address for /metrics and a page of groups")
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, help="seconds between two looks at the groups")] = 2.0,
    for_seconds: Annotated[
        float | None, typer.Option("--for", min=0, help="end after so many seconds; default: Ctrl-C ends")
    ] = None,
    max_groups: Annotated[int, typer.Option(min=1, help="how many groups are shown; the others are counted")] = 1_000,
    metric_groups: Annotated[int, typer.Option(min=0, help=METRIC_GROUPS_HELP)] = LABELLED_GROUPS,
    log: Annotated[
        bool, typer.Option(help="read the offsets topic, from its first record on; without it no causes and commits")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output, at the end")] = False,
) -> None:
    """Show the groups of a running cluster: members, lag, rebalances and their causes, commits that went back."""
    page = None if status is None else parse_address(status, "--status")
    setup = Watching(
        at=parse_address(bootstrap, "--bootstrap"),
        access=read_access(client_config),
        groups=tuple(group or ()),
        status=None if page is None else Listen(host=page.host, port=page.port),
        log=log,
        most=max_groups,
        labelled=metric_groups,
        interval_s=interval,
        for_s=for_seconds,
    )
    board = asyncio.run(_run(setup, as_json=as_json))
    state = board.state(time.monotonic(), now_ms(), setup.title)
    counts: dict[str, int | float] = {
        "groups": board.total,
        "records": board.records,
        "rebalances": board.rebalances.total,
    }
    table = None if as_json else shown(board, time.monotonic(), now_ms(), setup.title)
    finish(Result("watch", None, counts, state, done="ended"), as_json=as_json, table=table)


async def _run(setup: Watching, *, as_json: bool) -> Board:
    """Watch until Ctrl-C or SIGTERM. A terminal shows the board; else each new event is a line."""
    until, console = asyncio.Event(), Console()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, until.set)
    with ExitStack() as stack:
        live: list[Live] = []

        def ready(board: Board, status: Listen | None) -> None:
            if status is not None:
                print(f"groups and numbers: http://{status}/ and /metrics", file=sys.stderr, flush=True)
            if console.is_terminal and not as_json:
                live.append(stack.enter_context(Live(console=console, screen=True, auto_refresh=False)))
            change(board)

        def change(board: Board) -> None:
            if live:
                now = time.monotonic()
                live[0].update(shown(board, now, now_ms(), setup.title), refresh=True)
            while board.rebalances.new:
                happened = board.rebalances.new.popleft()
                if not live and not as_json:
                    print(line_of(happened, board.names), flush=True)

        return await session(setup, ready, change, until)
