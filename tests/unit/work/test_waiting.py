"""A waiting worker logs the reason, and an instance id that is not free yet does not end it. In virtual time, with the
default settings of a broker."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from fencepost import GroupBroker, MemoryStore, Settings, Topic
from fencepost.work import Worker, WorkerFailed
from fencepost.work.worker import RELEASE_S
from fencepost_conformance.generate.virtual.loop import run

from .teams import ORDERS

Lines = list[tuple[float, str, str]]
SESSION_S = Settings().group_consumer_session_timeout_ms / 1_000


class _Timed(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: Lines = []

    def emit(self, record: logging.LogRecord) -> None:
        at = asyncio.get_running_loop().time()
        self.lines.append((round(at, 1), record.levelname, record.getMessage()))


@pytest.fixture
def lines() -> Iterator[Lines]:
    """The log of ``fencepost.work``, with virtual seconds."""
    handler, logger = _Timed(), logging.getLogger("fencepost.work")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it in virtual time; no task may be left over, and no exception unhandled."""
    ran = run(story(), Random(1))
    if ran.failure is not None:
        raise ran.failure
    assert (ran.leaked, ran.unhandled) == ((), ())


def now() -> float:
    return asyncio.get_running_loop().time()


def broker(*topics: Topic) -> GroupBroker:
    """A broker whose clock is virtual too, because an assignment waits for the interval of the coordinator."""
    return GroupBroker(MemoryStore(4), topics=topics, clock=lambda: int(now() * 1_000))


@asynccontextmanager
async def killed(groups: GroupBroker, **options: Any):  # type: ignore[no-untyped-def]  # a generator of nothing
    """Run a worker that had a share, and ends without leaving."""
    worker = await groups.worker("team", ["orders"], **options).__aenter__()
    assert len(await anext(worker)) == 6
    worker.crash()
    yield


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_a_static_worker_that_was_killed_starts_again(protocol: str, lines: Lines) -> None:
    """Immediately with the classic protocol; with the other one when the session of the killed worker has ended."""
    took: list[float] = []

    async def story() -> None:
        options: dict[str, Any] = {"protocol": protocol, "instance_id": "a"}
        async with broker(ORDERS) as groups, killed(groups, **options):
            began = now()
            async with groups.worker("team", ["orders"], **options) as again:
                assert len(await anext(again)) == 6
                took.append(now() - began)

    play(story)
    if protocol == "classic":
        assert took[0] < 10
        assert lines == []
        return
    assert SESSION_S - 5 < took[0] < SESSION_S + 5
    assert [(level, message) for _, level, message in lines] == [
        (
            "WARNING",
            "another member of group 'team' still uses instance_id 'a': the worker waits until its session ends, at "
            "most 120 s",
        ),
        ("INFO", "the worker with instance_id 'a' has joined group 'team'"),
    ]


def test_a_live_twin_is_awaited_up_to_a_limit(lines: Lines) -> None:
    async def story() -> None:
        async with broker(ORDERS) as groups, groups.worker("team", ["orders"], instance_id="a") as first:
            share = await anext(first)
            began = now()
            async with groups.worker("team", ["orders"], instance_id="a") as twin:
                with pytest.raises(WorkerFailed, match=r"UNRELEASED_INSTANCE_ID.*give each worker its own"):
                    await anext(twin)
            assert RELEASE_S <= now() - began < RELEASE_S + 5
            assert share.held

    play(story)
    assert len(lines) == 1


@pytest.mark.parametrize("end", ["leave", "cancel", "crash"])
def test_a_worker_that_waits_for_its_instance_id_can_be_ended(end: str) -> None:
    async def story() -> None:
        async with broker(ORDERS) as groups, killed(groups, instance_id="a"):

            async def program() -> None:
                async with groups.worker("team", ["orders"], instance_id="a") as worker:
                    made.append(worker)
                    async for _ in worker:
                        raise AssertionError

            made: list[Worker] = []
            began, task = now(), asyncio.create_task(program())
            await asyncio.sleep(3.5)
            driver = made[0]._driver
            if end == "leave":
                await made[0].leave()
            elif end == "crash":
                made[0].crash()
            else:
                task.cancel()
            await asyncio.wait({task})
            assert now() - began < 10
            await asyncio.sleep(10)
            assert made[0]._driver is driver  # no other member is made

    play(story)


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_topics_that_do_not_exist_are_named_ever_more_rarely(protocol: Any, lines: Lines) -> None:
    async def story() -> None:
        async with broker() as groups, groups.worker("team", ["orders"], protocol=protocol) as worker:
            first = asyncio.create_task(anext(worker))  # type: ignore[arg-type]
            await asyncio.sleep(200)
            assert not first.done()
            groups.set_topics([ORDERS])
            async with asyncio.timeout(20 if protocol == "consumer" else 310):  # which checks topics itself
                await first
            await asyncio.sleep(200)

    play(story)
    warnings = [at for at, level, _ in lines if level == "WARNING"]
    assert warnings[:5] == [5.0, 15.0, 35.0, 75.0, 155.0]
    assert (
        lines[0][2]
        == "a worker of group 'team' has been waiting for 5 s: topic 'orders' must be created (or correct topics=)"
    )
    assert lines[-1][1:] == ("INFO", "a worker of group 'team' is no longer waiting")


def test_one_missing_topic_and_a_regex_without_topics_are_reported(lines: Lines) -> None:
    async def story() -> None:
        async with (
            broker(ORDERS) as groups,
            groups.worker("one", ["orders", "typo"]) as one,
            groups.worker("two", re.compile("ordres-.*")),
        ):
            assert len(await anext(one)) == 6
            await asyncio.sleep(6)

    play(story)
    assert sorted(message for *_, message in lines) == [
        "a worker of group 'one' has been waiting for 5 s: topic 'typo' must be created (or correct topics=)",
        "a worker of group 'two' has been waiting for 5 s: no topic matches 'ordres-.*'",
    ]


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_a_stopped_broker_is_awaited(protocol: Any, lines: Lines) -> None:
    async def story() -> None:
        groups = broker(ORDERS)
        await groups.start()
        async with groups.worker("team", ["orders"], protocol=protocol) as worker:
            await anext(worker)
            await groups.stop()
            await asyncio.sleep(60)
            assert len(lines) in (2, 3, 4)
            await groups.start()
            await asyncio.sleep(120)
        await groups.stop()

    play(story)
    assert re.match(
        r"a worker of group 'team' has been waiting for \d+ s: the coordinator cannot be reached: .+", lines[0][2]
    )
    assert lines[-1][1] == "INFO"


def test_a_worker_without_a_share_beside_full_workers_logs_nothing(lines: Lines) -> None:
    async def story() -> None:
        async with (
            broker(Topic("one", b"1" * 16, 1)) as groups,
            groups.worker("team", ["one"]) as first,
            groups.worker("team", ["one"]) as second,
        ):
            await asyncio.sleep(400)
            assert sorted(len(each.share or ()) for each in (first, second)) == [0, 1]

    play(story)
    assert lines == []
