"""Workers in one program, and a record of which worker works on which partition."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

from fencepost import GroupBroker, MemoryStore, Settings, Topic
from fencepost.protocol.partitions import TopicPartition
from fencepost.work import Share, ShareLost, Worker

QUICK = Settings(
    group_initial_rebalance_delay_ms=0,
    group_min_session_timeout_ms=100,
    group_consumer_assignment_interval_ms=0,
    group_consumer_heartbeat_interval_ms=100,
    group_consumer_min_heartbeat_interval_ms=50,
    group_consumer_session_timeout_ms=600,
    group_consumer_min_session_timeout_ms=100,
)
ORDERS = Topic("orders", b"o" * 16, 6)
EVERY = frozenset(TopicPartition("orders", number) for number in range(6))
CLASSIC = {"session_timeout_ms": 600, "heartbeat_interval_ms": 100}


def broker() -> GroupBroker:
    """Start a broker with short delays and the topic of the orders."""
    return GroupBroker(MemoryStore(4), QUICK, topics=[ORDERS])


class Team:
    """``busy``: the worker of each partition now. ``overlaps``: partitions on which two workers worked at the same
    time."""

    def __init__(self, worker: Callable[..., Worker], protocol: str, group_id: str = "team") -> None:
        self._worker = worker
        self._options = {"protocol": protocol, **(CLASSIC if protocol == "classic" else {})}
        self._group_id = group_id
        self.busy: dict[TopicPartition, str] = {}
        self.overlaps: list[str] = []
        self.shares: dict[str, list[frozenset[TopicPartition]]] = {}
        self.done: dict[TopicPartition, int] = dict.fromkeys(EVERY, 0)

    def member(self, **options: object) -> AbstractAsyncContextManager[Worker]:
        """Start one more worker."""
        return self._worker(self._group_id, ["orders"], **{**self._options, **options})

    async def works(
        self, name: str, worker: Worker, step: Callable[[Share], Awaitable[None]] | None = None, tail_s: float = 0.02
    ) -> None:
        """Iterate, work in small steps, commit, and return to the loop late."""
        async for share in worker:
            self.shares.setdefault(name, []).append(share.partitions)
            for each in share:
                other = self.busy.setdefault(each, name)
                if other != name:
                    self.overlaps.append(f"{each} of {other} is worked on by {name}")
            with suppress(ShareLost):  # another worker does it
                while await share.rest(0.02):
                    await (self._a_little(share) if step is None else step(share))
            await asyncio.sleep(tail_s)
            for each in share:
                if self.busy.get(each) == name:
                    del self.busy[each]

    async def _a_little(self, share: Share) -> None:
        for each in share:
            self.done[each] += 1
        await share.commit({each: self.done[each] for each in share})

    def holding(self, name: str) -> frozenset[TopicPartition]:
        """Return the partitions that this worker works on now."""
        return frozenset(each for each, who in self.busy.items() if who == name)


async def until(true: Callable[[], bool], within_s: float = 15.0) -> None:
    """Wait for the condition. Raise ``TimeoutError``."""
    async with asyncio.timeout(within_s):
        while not true():
            await asyncio.sleep(0.01)
