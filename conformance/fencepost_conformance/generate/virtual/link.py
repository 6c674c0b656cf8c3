"""A link between a worker and its coordinator that fails for a while."""

from __future__ import annotations

import asyncio
from enum import Enum

from fencepost.protocol.events import Topic
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.work import Link


class Trouble(Enum):
    """How a link fails."""

    CUT = "every call fails"
    SILENT = "requests arrive, and their answers are lost"
    LATE_REQUESTS = "requests arrive late, even if the worker no longer waits for an answer"
    LATE_ANSWERS = "requests arrive, and their answers come late"


class FaultyLink:
    """A ``Link`` that passes calls on. After ``fail`` it fails for a while."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._trouble: Trouble | None = None
        self._until = 0.0
        self._late_s = 0.0
        self._tasks: set[asyncio.Task[ResponseBody]] = set()

    def fail(self, trouble: Trouble, seconds: float, late_s: float = 0.0) -> None:
        """Fail for this time. ``late_s``: the delay of what comes late."""
        self._trouble, self._late_s = trouble, late_s
        self._until = asyncio.get_running_loop().time() + seconds

    def end(self) -> None:
        """Cancel the requests that have not arrived yet."""
        for task in self._tasks:
            task.cancel()

    def _now(self) -> Trouble | None:
        return self._trouble if asyncio.get_running_loop().time() < self._until else None

    def _check(self) -> None:
        if self._now() is Trouble.CUT:
            raise ConnectionError("the link is cut")

    async def find(self, group_id: str) -> int:
        """Look up the coordinator, as ``Link.find``."""
        self._check()
        return await self._link.find(group_id)

    async def ask(self, group_id: str, body: RequestBody, lane: str) -> ResponseBody:
        """Send a request, as ``Link.ask``."""
        self._check()
        trouble, late_s = self._now(), self._late_s
        if trouble is None:
            return await self._link.ask(group_id, body, lane)
        asks = self._asks(group_id, body, lane, late_s if trouble is Trouble.LATE_REQUESTS else 0.0)
        task = asyncio.create_task(asks, name="link")
        self._tasks.add(task)
        task.add_done_callback(self._done)
        answer = await asyncio.shield(task)
        if trouble is not Trouble.LATE_REQUESTS:
            await asyncio.sleep(3_600.0 if trouble is Trouble.SILENT else late_s)
        return answer

    async def _asks(self, group_id: str, body: RequestBody, lane: str, after_s: float) -> ResponseBody:
        await asyncio.sleep(after_s)
        return await self._link.ask(group_id, body, lane)

    def _done(self, task: asyncio.Task[ResponseBody]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    def forget(self, group_id: str) -> None:
        """Forget the coordinator, as ``Link.forget``."""
        self._link.forget(group_id)

    async def topics(self, names: frozenset[str], ids: frozenset[bytes]) -> tuple[Topic, ...]:
        """Return the topics, as ``Link.topics``."""
        self._check()
        return await self._link.topics(names, ids)
