"""No two workers of a KIP-848 group work on a partition at once while both are members, whatever happens meanwhile.

Each schedule has two workers and one disturbance, and is played for each of many times of that disturbance, in virtual
time. A worker that was removed may not know it yet. Once it is a member again, its earlier shares are lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from fencepost import GroupBroker, MemoryStore, Topic
from fencepost.aio.inside import Inside
from fencepost.remote import Sasl
from fencepost.work import Share, Worker
from fencepost.work.worker import worker_of
from fencepost_conformance.generate.virtual.broker import PARTITIONS, SETTINGS, FaultyBroker
from fencepost_conformance.generate.virtual.link import FaultyLink, Trouble
from fencepost_conformance.generate.virtual.loop import run
from fencepost_conformance.generate.virtual.network import NetworkFaults
from fencepost_conformance.generate.virtual.store import FaultyStore, StoreFaults
from fencepost_conformance.generate.virtual.worker_plan import PASSWORD, USER, Plan, Security

Named = frozenset[Any]


def now() -> float:
    return asyncio.get_running_loop().time()


def topic(partitions: int) -> Topic:
    return Topic("t", b"t" * 16, partitions)


@dataclass(eq=False)
class Site:
    """A broker, workers, and the shares that their programs work on now. ``skew_s``: what a jump has added to the clock
    of the broker."""

    broker: GroupBroker = field(init=False)
    is_member: Callable[[str], bool] = field(init=False)
    working: dict[str, tuple[Worker, Share]] = field(default_factory=dict)
    began: int = 0
    wrong: list[str] = field(default_factory=list)
    skew_s: float = 0.0

    def clock(self) -> int:
        return int((now() + self.skew_s) * 1_000) + 1_700_000_000_000

    def has(self, member_id: str) -> bool:
        view = self.broker.consumer_view("g")
        return view is not None and any(each.member_id == member_id for each in view.members)

    def member(self, **options: Any) -> tuple[Worker, FaultyLink]:
        link = FaultyLink(Inside(self.broker.request, lambda: self.broker.topics, self.broker.gone))
        chosen: dict[str, Any] = {"rebalance_timeout_ms": 3_000, "request_timeout_ms": 1_000, **options}
        return worker_of(link, "g", ["t"], chosen), link  # type: ignore[arg-type]

    async def works(self, name: str, worker: Worker, slow_s: Callable[[], float] = lambda: 0.0) -> None:
        """Work on each share, return to the loop late, and note an overlap."""
        async with worker:
            async for share in worker:
                self._begin(name, worker, share)
                try:
                    while await share.rest(0.1):
                        pass
                    await asyncio.sleep(slow_s())
                finally:
                    self.working.pop(name, None)

    def _begin(self, name: str, worker: Worker, share: Share) -> None:
        self.began += 1
        for other, (its, held) in self.working.items():
            both = held.partitions & share.partitions
            if both and not held.lost and self.is_member(worker.member_id) and self.is_member(its.member_id):
                self.wrong.append(f"{name} begins with {min(both)} at {now():.1f} s while {other} works on it")
        self.working[name] = worker, share


Scene = Callable[[Site, float], Coroutine[Any, Any, None]]


def play(scene: Scene, at: float, seed: int = 1) -> Site:
    site = Site()

    async def main() -> None:
        async with MemoryStore(1) as store:
            site.broker = GroupBroker(store, SETTINGS, topics=[topic(4)], clock=site.clock)
            site.is_member = site.has
            async with site.broker:
                await scene(site, at)

    ran = run(main(), Random(seed))
    if ran.failure is not None:
        raise ran.failure
    assert (ran.leaked, ran.unhandled) == ((), ())
    return site


@asynccontextmanager
async def programs(*running: Awaitable[None]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(each) for each in running]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def gains_while_it_works(site: Site, at: float) -> None:
    """a gets partitions while its program is slow, and loses all; then it joins again."""
    a, link = site.member(rebalance_timeout_ms=30_000)
    b, _ = site.member()
    async with programs(site.works("b", b)):
        await asyncio.sleep(3)
        async with programs(site.works("a", a, lambda: 15.0)):
            await asyncio.sleep(3)
            site.broker.set_topics([topic(8)])
            await asyncio.sleep(2)
            link.fail(Trouble.CUT, at)
            await asyncio.sleep(8)
            link.end()


def _disturbs(trouble: Trouble, late_s: float = 0.0) -> Scene:
    async def scene(site: Site, at: float) -> None:
        """The link of a fails, while b joins and a has to give up partitions."""
        a, link = site.member()
        b, _ = site.member()
        async with programs(site.works("a", a, lambda: 0.9)):
            await asyncio.sleep(2)
            async with programs(site.works("b", b)):
                await asyncio.sleep(at)
                link.fail(trouble, 2.3, late_s)
                await asyncio.sleep(8)
                link.end()

    return scene


async def callback_hangs(site: Site, at: float) -> None:
    """The session of a ends while its callback for revoked partitions hangs."""

    async def hangs(partitions: Named) -> None:
        await asyncio.sleep(at)

    a, link = site.member(revoked=hangs)
    b, _ = site.member()
    async with programs(site.works("a", a)):
        await asyncio.sleep(2)
        async with programs(site.works("b", b)):
            await asyncio.sleep(0.7)
            link.fail(Trouble.CUT, 2.2)
            await asyncio.sleep(8)


async def callback_of_new_partitions_hangs(site: Site, at: float) -> None:
    """The session of a ends while its callback for new partitions hangs, and b takes them."""

    async def hangs(partitions: Named) -> None:
        await asyncio.sleep(at)

    a, link = site.member(gained=hangs)
    b, _ = site.member()
    async with programs(site.works("b", b), site.works("a", a)):
        await asyncio.sleep(2)
        link.fail(Trouble.CUT, 2.2)
        await asyncio.sleep(8)


async def clock_jumps(site: Site, at: float) -> None:
    """The clock of the broker jumps while a gives up partitions."""
    a, _ = site.member()
    b, _ = site.member()
    async with programs(site.works("a", a, lambda: 0.9)):
        await asyncio.sleep(2)
        async with programs(site.works("b", b)):
            await asyncio.sleep(at)
            site.skew_s = 3_600.0
            await asyncio.sleep(1)
            site.skew_s = -3_600.0
            await asyncio.sleep(6)


async def revocation_is_cancelled(site: Site, at: float) -> None:
    """The program of a is cancelled, or its leave is, while b waits for its partitions."""
    a, _ = site.member()
    b, _ = site.member()
    async with programs(site.works("b", b)):
        await asyncio.sleep(2)
        async with programs(site.works("a", a, lambda: 2.0)):
            await asyncio.sleep(at)
            with suppress(TimeoutError):
                await asyncio.wait_for(a.leave(), 0.3)
            await asyncio.sleep(1)
        await asyncio.sleep(3)


def every(first: int, last: int) -> list[float]:
    """Tenths of a second."""
    return [each / 10 for each in range(first, last)]


SCENES: dict[str, tuple[Scene, list[float]]] = {
    "gains while it works": (gains_while_it_works, every(10, 40)),
    "cut": (_disturbs(Trouble.CUT), every(0, 40)),
    "silent": (_disturbs(Trouble.SILENT), every(0, 40)),
    "late answers": (_disturbs(Trouble.LATE_ANSWERS, 0.7), every(0, 40)),
    "callback hangs": (callback_hangs, every(0, 50)),
    "callback of new partitions hangs": (callback_of_new_partitions_hangs, every(0, 50)),
    "clock jumps": (clock_jumps, every(0, 40)),
    "revocation is cancelled": (revocation_is_cancelled, every(6, 40)),
}


def check(name: str, times: list[float], seed: int) -> None:
    for at in times:
        site = play(SCENES[name][0], at, seed)
        assert (site.wrong, site.began > 2) == ([], True), f"{name}, {at} s, seed {seed}"


@pytest.mark.parametrize("name", SCENES)
def test_a_partition_has_one_owner(name: str) -> None:
    check(name, SCENES[name][1][::4], 1)


@pytest.mark.all
@pytest.mark.parametrize("name", SCENES)
def test_a_partition_has_one_owner_at_any_time(name: str) -> None:
    check(name, SCENES[name][1], 2)


def test_a_login_that_ends_during_a_revocation_makes_no_second_owner() -> None:
    """Logins last 1.5 s, and the connections are cut while a gives up partitions."""
    plan = Plan(
        remote=True,
        protocol="consumer",
        workers=2,
        static=False,
        store=StoreFaults(),
        network=NetworkFaults(latency_s=0.01),
        disturbances=1,
        restarts=False,
        security=Security(Sasl(USER, PASSWORD, "PLAIN"), login_ms=1_500),
    )
    for at in every(0, 20)[::4]:
        site, seen = Site(), Counter[str]()

        async def main(at: float = at, site: Site = site, seen: Counter[str] = seen) -> None:
            store = FaultyStore(PARTITIONS, plan.store, Random(1))
            broker = FaultyBroker(plan, store, Random(1), seen)
            async with store, AsyncExitStack() as stack:
                stack.push_async_callback(broker.shut_down)
                await broker.start()
                worker = await broker.connect(stack)
                site.is_member = broker.has_member
                a, b = (worker("g", ["t"], rebalance_timeout_ms=3_000, request_timeout_ms=1_000) for _ in "ab")
                async with programs(site.works("a", a, lambda: 0.9)):
                    await asyncio.sleep(2)
                    async with programs(site.works("b", b)):
                        await asyncio.sleep(at)
                        broker.cut()
                        await asyncio.sleep(5)
            await asyncio.sleep(1)

        ran = run(main(), Random(1))
        if ran.failure is not None:
            raise ran.failure
        assert (ran.leaked, ran.unhandled) == ((), ())
        assert (site.wrong, site.began > 2, seen["handshake"] > 6) == ([], True, True), f"{at} s"
