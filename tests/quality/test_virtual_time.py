"""asyncio code in virtual time: the properties of brokers and workers hold in 2,000 schedules (4,000 in ``make
test-all``), and each can fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache
from random import Random

import pytest

from fencepost.aio.engine import Engine
from fencepost.work import Worker
from fencepost.work.driver import Driver
from fencepost_conformance.generate.virtual.kinds import KINDS, judge
from fencepost_conformance.generate.virtual.loop import run
from fencepost_conformance.generate.virtual.store import FaultyStore
from fencepost_conformance.run.seeds import seed_line, seed_of_run

#: schedules of each kind in ``make test``; half of them have fixed seeds, half have seeds of this run
SCHEDULES = {"requests": 1_640, "workers": 240, "remote": 64, "secured": 56}
#: the parts that ``make test`` plays, those with even numbers with fixed seeds, and all parts
SAMPLED, PARTS = 4, 8

played = cache(judge)


def seeds_of(kind: str, part: int, seed: int) -> range:
    some = SCHEDULES[kind] // SAMPLED
    first = (seed if part % 2 else 0) + part * some
    return range(first, first + some)


@pytest.mark.parametrize(
    "part", [*range(SAMPLED), *(pytest.param(part, marks=pytest.mark.all) for part in range(SAMPLED, PARTS))]
)
@pytest.mark.parametrize("kind", KINDS)
def test_promises_hold(kind: str, part: int) -> None:
    drawn = seed_of_run()
    seeds = seeds_of(kind, part, drawn)
    wrong = [f"{kind} {seed}: {broken}" for seed in seeds if (broken := played(kind, seed).broken)]
    assert wrong == [], seed_line(drawn)


def test_a_slow_static_member_that_leaves_has_given_up_what_it_should_have_revoked() -> None:
    """Its program still works when another member begins with one of these partitions (M-PE-04)."""
    result = judge("secured", 1_865_963_677)
    assert (result.broken, result.seen["overlap after removal"] > 0) == ("", True)


def test_a_schedule_is_the_same_twice() -> None:
    """The same seed gives the same schedule, also where members choose their ids and their jitter."""
    for kind in KINDS:
        for seed in (11, 12, 13):
            assert judge(kind, seed) == played(kind, seed)


def test_schedules_have_failures_waits_and_moves() -> None:
    """Failures, waits, moves and ends are in the schedules, and not only in their plan."""
    for kind, least in {
        "requests": {"OffsetCommitResponse": 300, "SyncGroupResponse": 20, "ConsumerGroupHeartbeatResponse": 200},
        "workers": {
            "commit": 1_000,
            "move": 3,
            "crash": 3,
            "leave": 3,
            "cancel": 3,
            "slow program": 3,
            "share lost": 2,
        },
        "remote": {"commit": 300, "cut": 3, "restart": 1},
        "secured": {"commit": 200, "handshake": 80, "cut": 3, "strange certificate": 1},
    }.items():
        seeds = range(min(60, max(18, SCHEDULES[kind] // SAMPLED)))
        seen = sum((played(kind, seed).seen for seed in seeds), start=Counter[str]())
        assert {what: number for what, number in least.items() if seen[what] < number} == {}


def test_time_is_virtual_and_the_order_of_tasks_follows_the_seed() -> None:
    def order(seed: int) -> list[int]:
        ran: list[int] = []

        async def step(number: int) -> None:
            await asyncio.sleep(1_200)
            ran.append(number)

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(6):
                    group.create_task(step(number))

        assert run(main(), Random(seed)).failure is None
        return ran

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(10)}) > 3


def test_endless_and_leftover_tasks_are_reported() -> None:
    async def waits() -> None:
        await asyncio.Event().wait()

    async def leaves() -> None:
        asyncio.get_running_loop().create_task(asyncio.sleep(100))

    async def forgets() -> None:
        async def fails() -> None:
            raise ValueError("unseen")

        task = asyncio.get_running_loop().create_task(fails())
        await asyncio.sleep(1)
        del task

    assert run(waits(), Random(1)).failure is not None
    assert run(leaves(), Random(1)).leaked == ("sleep",)
    assert run(forgets(), Random(1)).unhandled == ("Task exception was never retrieved: ValueError: unseen",)


@pytest.mark.parametrize("fault", ["acknowledged early", "not loaded again", "two at a time", "left over"])
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    kind = "requests"
    if fault == "acknowledged early":
        add = FaultyStore._add
        monkeypatch.setattr(
            FaultyStore,
            "_add",
            lambda self, place, each: None if self._random.random() < 0.1 else add(self, place, each),
        )
    elif fault == "not loaded again":
        monkeypatch.setattr(Engine, "_load_again", lambda self, led: led.flights.clear())
    elif fault == "two at a time":
        kind = "workers"
        monkeypatch.setattr(Worker, "_given_up", _at_once)
    else:
        kind = "workers"
        monkeypatch.setattr(Driver, "end", lambda self: None)
    assert any(judge(kind, seed).broken for seed in range(150))


async def _at_once(self: Worker) -> None:
    del self
