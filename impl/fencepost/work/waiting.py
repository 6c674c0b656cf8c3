"""Log lines about what a worker waits for.

A worker retries without limit while a topic does not exist, and while no coordinator responds. The program cannot see
that, so a log line says it, at level WARNING: once after ``FIRST_S`` or slightly later, then after intervals that
double up to ``LONGEST_S``. The logger is ``fencepost.work``.

``Noted`` is a link that remembers the last error; ``Watch`` checks it regularly. It asks the cluster for its topics
only while the worker has no partition of a topic that it subscribes to.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.partitions import TopicPartition

from .link import Link, NoCoordinator

log: Final = logging.getLogger("fencepost.work")

FIRST_S: Final = 5.0
LONGEST_S: Final = 300.0
_SHOWN: Final = 5
#: Errors of a broker that does not coordinate the group, or not yet.
_ELSEWHERE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class Noted:
    """A ``Link`` that remembers the last error of each of its calls until that call succeeds."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._wrong: dict[str, tuple[str, float]] = {}

    @property
    def trouble(self) -> tuple[str, float] | None:
        """The oldest error that persists, and its time by the loop's clock."""
        return min(self._wrong.values(), key=lambda each: each[1], default=None)

    def _note(self, call: str, what: str | None) -> None:
        if what is None:
            self._wrong.pop(call, None)
        else:
            _, since = self._wrong.get(call, ("", asyncio.get_running_loop().time()))
            self._wrong[call] = what, since

    async def find(self, group_id: str) -> int:
        """Look up the coordinator, as ``Link.find``."""
        try:
            node = await self._link.find(group_id)
        except (OSError, NoCoordinator) as wrong:
            self._note("find", f"no coordinator found: {_words(wrong)}")
            raise
        self._note("find", None)
        return node

    async def ask(self, group_id: str, body: RequestBody, lane: str) -> ResponseBody:
        """Send a request, as ``Link.ask``. A cancelled call had no response in time, or has lost its coordinator."""
        try:
            answer = await self._link.ask(group_id, body, lane)
        except OSError as wrong:
            self._note("ask", f"the coordinator cannot be reached: {_words(wrong)}")
            raise
        except asyncio.CancelledError:
            self._note("ask", "the coordinator does not respond")
            raise
        error = getattr(answer, "error_code", None)
        if error is not None:  # offset responses have an error for each partition, and say nothing about membership
            self._note("ask", f"the coordinator responds with {error.name}" if error in _ELSEWHERE else None)
        return answer

    def forget(self, group_id: str) -> None:
        """Forget the coordinator, as ``Link.forget``."""
        self._link.forget(group_id)

    async def topics(self, names: frozenset[str], ids: frozenset[bytes]) -> tuple[Topic, ...]:
        """Return the topics, as ``Link.topics``."""
        try:
            topics = await self._link.topics(names, ids)
        except OSError as wrong:
            self._note("topics", f"no broker returns its topics: {_words(wrong)}")
            raise
        self._note("topics", None)
        return topics


def _words(wrong: Exception) -> str:
    return str(wrong) or type(wrong).__name__


class Watch:
    """Logs what one worker waits for. ``owned``: returns its current partitions."""

    def __init__(
        self,
        group_id: str,
        topics: frozenset[str] | re.Pattern[str],
        link: Noted,
        owned: Callable[[], frozenset[TopicPartition]],
    ) -> None:
        self._group_id = group_id
        self._topics = topics
        self._link = link
        self._owned = owned
        self._absent_since: float | None = None

    async def run(self) -> None:
        """Check and log until cancelled."""
        loop = asyncio.get_running_loop()
        pause, warned = FIRST_S, False
        while True:
            await asyncio.sleep(pause)
            waits = await self._waits_for()
            if waits is not None:
                what, since = waits
                log.warning(
                    "a worker of group %r has been waiting for %d s: %s",
                    self._group_id,
                    round(loop.time() - since),
                    what,
                )
                pause = min(pause * 2, LONGEST_S)
            elif warned:
                log.info("a worker of group %r is no longer waiting", self._group_id)
                pause = FIRST_S
            elif self._owned():
                pause = FIRST_S
            else:  # more members than partitions: nothing to log, and rarely a reason to check
                pause = min(pause * 2, LONGEST_S)
            warned = waits is not None

    async def _waits_for(self) -> tuple[str, float] | None:
        """Return what the worker waits for, and since when; None if it does not, or not for long yet."""
        now = asyncio.get_running_loop().time()
        trouble = self._link.trouble
        if trouble is not None:
            return trouble if now - trouble[1] >= FIRST_S else None
        absent = await self._absent()
        if absent is None:
            self._absent_since = None
            return None
        if self._absent_since is None:
            self._absent_since = now - FIRST_S
        return absent, self._absent_since

    async def _absent(self) -> str | None:
        """Return a message about topics that do not exist. It does not ask while the worker has partitions of all."""
        have = {each.topic for each in self._owned()}
        names = self._topics if isinstance(self._topics, frozenset) else frozenset()
        if have and names <= have:
            return None
        try:
            topics = {each.name for each in await self._link.topics(names, frozenset())}
        except OSError:
            return None  # ``Noted`` has it; it is logged if it persists
        if isinstance(self._topics, re.Pattern):
            if have or any(self._topics.fullmatch(name) for name in topics):
                return None
            return f"no topic matches {self._topics.pattern!r}"
        missing = sorted(names - topics)
        if not missing:
            return None
        shown = ", ".join(map(repr, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        return f"{'topic' if len(missing) == 1 else 'topics'} {shown} must be created (or correct topics=)"
