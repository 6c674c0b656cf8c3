"""One watch of a cluster, until an event or the end of its time. It only reads; when the cluster is lost, it waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from fencepost_server.look.made import made_now
from fencepost_server.observe.groups import GroupCounts
from fencepost_server.observe.http import Page, StatusPort, json_page
from fencepost_server.observe.metrics import CONTENT_TYPE
from fencepost_server.observe.page import status_page
from fencepost_server.options import Address as Listen

from ...common.addresses import Address
from ...common.errors import CannotRun
from ...judge.watch.board import Board
from ...traces.live.look import look
from ...traces.offsets_log.follow import Follower
from ...traces.wire.access import Access
from ...traces.wire.brokers import Brokers, Failed

#: how long a broker may wait for new records, in ms
_WAIT_MS: Final = 500
#: seconds until a cluster that is away is asked again
_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """The cluster and the options. ``groups``: none for all. ``status``: the address of the page. ``log``: whether to
    read the offsets topic. ``most``: how many groups are shown, ``labelled``: how many have their own label in
    /metrics. ``interval_s``: between two looks. ``for_s``: the end of the watch; None: none."""

    at: Address
    access: Access
    groups: tuple[str, ...] = ()
    status: Listen | None = None
    log: bool = True
    most: int = 1_000
    labelled: int = 100
    interval_s: float = 2.0
    for_s: float | None = None

    @property
    def title(self) -> str:
        return f"fencepost watch {self.at}"


def now_ms() -> int:
    """Return the time in ms since 1970."""
    return time.time_ns() // 1_000_000


async def watch(
    setup: Watching,
    ready: Callable[[Board, Listen | None], None],
    shown: Callable[[Board], None],
    until: asyncio.Event,
) -> Board:
    """Watch until ``until`` or the end of the time. ``ready`` is called after the first look, ``shown`` after each
    change. Raises ``CannotRun`` if no broker responds to the first look, and ``OSError`` for the address of the
    page."""
    board = Board(setup.groups, setup.most, GroupCounts(setup.labelled))
    async with AsyncExitStack() as stack:
        looking, reading = Brokers(setup.at, setup.access), Brokers(setup.at, setup.access)
        stack.push_async_callback(looking.close)
        stack.push_async_callback(reading.close)
        follower = Follower(reading, board.notices) if setup.log else None
        try:
            board.looked(await look(looking, setup.groups, setup.most), time.monotonic(), caught_up=False)
        except Failed as wrong:
            raise CannotRun(f"{setup.at}: {wrong}") from None
        status = None
        if setup.status is not None:
            port = StatusPort(_pages(setup, board))
            status = await port.start(setup.status)
            stack.push_async_callback(port.stop)
        ready(board, status)
        tasks = [asyncio.create_task(_look(setup, board, looking, follower, shown))]
        if follower is not None:
            tasks.append(asyncio.create_task(_follow(board, follower, shown)))
        ends = asyncio.create_task(until.wait())
        try:
            done, _ = await asyncio.wait({*tasks, ends}, timeout=setup.for_s, return_when=asyncio.FIRST_COMPLETED)
            for each in done - {ends}:
                each.result()  # an error of the suite
        finally:
            for task in (*tasks, ends):
                task.cancel()
            await asyncio.gather(*tasks, ends, return_exceptions=True)
    return board


async def _look(
    setup: Watching, board: Board, brokers: Brokers, follower: Follower | None, shown: Callable[[Board], None]
) -> None:
    """Look at the groups, each ``interval_s``."""
    while True:
        try:
            found = await look(brokers, setup.groups, setup.most)
        except Failed as wrong:
            board.lost(str(wrong), now_ms())
            shown(board)
            await asyncio.sleep(min(setup.interval_s, _AGAIN_S))
            continue
        board.back(now_ms())
        board.looked(found, time.monotonic(), caught_up=follower is not None and follower.backlog == 0)
        shown(board)
        await asyncio.sleep(setup.interval_s)


async def _follow(board: Board, follower: Follower, shown: Callable[[Board], None]) -> None:
    """Read the offsets topic."""
    board.problems = follower.problems
    while True:
        try:
            pieces = await follower.read(_WAIT_MS)
        except Failed:  # the looks report it
            await asyncio.sleep(_AGAIN_S)
            continue
        for piece in pieces:
            board.take(piece)
            await asyncio.sleep(0)
        if pieces:
            shown(board)


def _pages(setup: Watching, board: Board) -> dict[str, Page]:
    async def people() -> tuple[str, str]:
        made = await asyncio.to_thread(made_now, target=setup.at)  # in a thread, since it asks git for the commit
        return "text/html; charset=utf-8", status_page(made, setup.title)

    async def state() -> object:
        return board.state(time.monotonic(), now_ms(), setup.title)

    async def health() -> object:
        return {"watching": True, "up": board.away is None}

    async def metrics() -> tuple[str, str]:
        return CONTENT_TYPE, "\n".join(board.metrics(time.monotonic())) + "\n"

    return {"/": people, "/metrics": metrics, "/state": json_page(state), "/health": json_page(health)}
