"""Workers share work: two never work on one partition at the same time, and no record is left."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack

import pytest

from fencepost import GroupBroker, MemoryStore, Topic
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.settings import BadSettings
from fencepost.work import Share, ShareLost, Worker, WorkerFailed

from .teams import CLASSIC, EVERY, ORDERS, QUICK, Team, broker, until

PROTOCOLS = ["consumer", "classic"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_workers_that_join_and_leave_hand_over_without_overlap(protocol: str) -> None:
    async def story() -> Team:
        async with broker() as groups, asyncio.TaskGroup() as running:
            team = Team(groups.worker, protocol)
            async with AsyncExitStack() as first:
                one = await first.enter_async_context(team.member())
                running.create_task(team.works("one", one))
                await until(lambda: team.holding("one") == EVERY)
                async with team.member() as two:
                    running.create_task(team.works("two", two, tail_s=0.2))
                    await until(lambda: len(team.holding("one")) == len(team.holding("two")) == 3)
                await until(lambda: team.holding("one") == EVERY)
                async with team.member() as three:
                    running.create_task(team.works("three", three))
                    await until(lambda: len(team.holding("three")) == 3)
                    await one.leave()
                    await until(lambda: team.holding("three") == EVERY)
        return team

    team = asyncio.run(story())
    assert team.overlaps == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_worker_that_does_not_wait_for_its_program_is_seen(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(worker: Worker) -> None:
        del worker

    monkeypatch.setattr(Worker, "_given_up", at_once)

    async def story() -> Team:
        async with broker() as groups, asyncio.TaskGroup() as running:
            team = Team(groups.worker, protocol)
            async with team.member() as one:
                running.create_task(team.works("one", one, tail_s=0.5))
                await until(lambda: team.holding("one") == EVERY)
                async with team.member() as two:
                    running.create_task(team.works("two", two))
                    await until(lambda: bool(team.overlaps))
        return team

    assert asyncio.run(story()).overlaps


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_worker_that_does_not_return_in_time_is_fenced(protocol: str) -> None:
    async def story() -> None:
        async with broker() as groups, asyncio.TaskGroup() as running:
            team = Team(groups.worker, protocol)
            held: list[Share] = []

            async def stuck(worker: Worker) -> None:
                async for share in worker:
                    held.append(share)
                    await share.over()
                    await until(lambda: held[-1].lost)
                    with pytest.raises(ShareLost):
                        await share.commit(dict.fromkeys(share, 99))
                    return

            async with team.member(rebalance_timeout_ms=700) as slow:
                task = running.create_task(stuck(slow))
                await until(lambda: bool(held))
                async with team.member() as other:
                    other_task = running.create_task(team.works("other", other))
                    await until(lambda: team.holding("other") == EVERY)
                    await task
                    assert other.share is not None
                    assert 99 not in (await other.share.committed()).values()
                await other_task

    asyncio.run(story())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_killed_worker_is_removed_and_the_next_continues_at_its_commit(protocol: str) -> None:
    async def story() -> None:
        async with broker() as groups, asyncio.TaskGroup() as running:
            team = Team(groups.worker, protocol)
            one = await team.member().__aenter__()
            task = running.create_task(team.works("one", one))
            await until(lambda: min(team.done.values()) >= 3)
            one.crash()
            await task
            team.busy.clear()
            async with team.member() as two:
                async for share in two:
                    assert share.partitions == EVERY
                    assert min((await share.committed()).values()) >= 2
                    break

    asyncio.run(story())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_worker_that_comes_back_finds_its_share(protocol: str) -> None:
    async def story() -> None:
        async with broker() as groups, asyncio.TaskGroup() as running:
            team = Team(groups.worker, protocol)
            async with team.member(instance_id="b") as other:
                running.create_task(team.works("other", other))
                for _ in range(2):
                    async with team.member(instance_id="a") as mine:
                        async for share in mine:
                            if len(share) == 3:
                                break
                    first = share.partitions
                await until(lambda: len(team.holding("other")) == 3)
                changes = len(team.shares["other"])
                async with team.member(instance_id="a") as again:
                    async for share in again:
                        assert share.partitions == first
                        break
                assert len(team.shares["other"]) == changes

    asyncio.run(story())


def test_callbacks_are_called_in_order() -> None:
    async def story() -> list[tuple[str, int]]:
        calls: list[tuple[str, int]] = []

        async def gained(partitions: frozenset[TopicPartition]) -> None:
            calls.append(("gained", len(partitions)))

        def revoked(partitions: frozenset[TopicPartition]) -> None:
            calls.append(("revoked", len(partitions)))

        async with (
            broker() as groups,
            groups.worker("team", ["orders"], gained=gained, revoked=revoked),
        ):
            await until(lambda: calls == [("gained", 6)])
            async with groups.worker("team", ["orders"]):
                await until(lambda: len(calls) == 2)
            await until(lambda: len(calls) == 3)
        return calls

    assert asyncio.run(story()) == [("gained", 6), ("revoked", 3), ("gained", 3), ("revoked", 6)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_callback_that_raises_ends_the_worker(protocol: str) -> None:
    async def story() -> None:
        def gained(partitions: frozenset[TopicPartition]) -> None:
            raise LookupError("no such queue")

        async with broker() as groups, groups.worker("team", ["orders"], protocol=protocol, gained=gained) as worker:
            with pytest.raises(WorkerFailed, match="no such queue"):
                await worker.ended()

    asyncio.run(story())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_worker_survives_a_restart_of_its_coordinator(protocol: str) -> None:
    async def story() -> Team:
        store = MemoryStore(4)
        groups = GroupBroker(store, QUICK, topics=[ORDERS])
        await groups.start()
        team = Team(groups.worker, protocol)
        async with asyncio.TaskGroup() as running, team.member() as one, team.member() as two:
            running.create_task(team.works("one", one))
            running.create_task(team.works("two", two))
            await until(lambda: len(team.holding("one")) == len(team.holding("two")) == 3)
            await groups.stop()
            await asyncio.sleep(0.2)
            await groups.start()
            before = dict(team.done)
            await until(lambda: all(team.done[each] > before[each] + 3 for each in EVERY))
        await groups.stop()
        return team

    assert asyncio.run(story()).overlaps == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_regex_matches_existing_and_later_topics(protocol: str) -> None:
    async def story() -> None:
        async with broker() as groups:
            options = {"protocol": protocol, "metadata_max_age_ms": 50, **(CLASSIC if protocol == "classic" else {})}
            later, other = Topic("orders-new", b"n" * 16, 1), Topic("my-orders", b"m" * 16, 1)
            async with groups.worker("team", re.compile("orders(-.*)?"), **options) as worker:
                async for share in worker:
                    assert {each.topic for each in share} <= {"orders", "orders-new"}
                    if len(share) == 7:
                        break
                    groups.set_topics([ORDERS, later, other])

    asyncio.run(asyncio.wait_for(story(), 120))


def test_one_coordinator_serves_workers_as_well() -> None:
    async def story() -> None:
        async with GroupBroker(MemoryStore(), QUICK) as groups:
            groups.set_topics([ORDERS])
            async with groups.worker("team", ["orders"], protocol="classic", **CLASSIC) as worker:  # type: ignore[arg-type]
                async for share in worker:
                    await share.commit({TopicPartition("orders", 1): 7}, metadata="as far as this")
                    assert await share.committed() == {TopicPartition("orders", 1): 7}
                    assert share.numbers("orders") == [0, 1, 2, 3, 4, 5]
                    break

    asyncio.run(story())


def test_mistakes_are_reported_immediately() -> None:
    async def story() -> None:
        async with broker() as groups:
            with pytest.raises(ValueError, match=r"topics must be a list or an expression: \['orders'\]"):
                groups.worker("team", "orders")
            with pytest.raises(ValueError, match="write flags inside the expression"):
                groups.worker("team", re.compile("orders.*", re.IGNORECASE))
            with pytest.raises(ValueError, match="protocol must be 'consumer' or 'classic'"):
                groups.worker("team", ["orders"], protocol="share")  # type: ignore[arg-type]
            with pytest.raises(BadSettings, match="an instance id must be 1 to 249"):
                groups.worker("team", ["orders"], instance_id="no spaces")
            with pytest.raises(TypeError):
                groups.worker("team", ["orders"], sesion_timeout_ms=3)  # type: ignore[call-arg]
            with pytest.raises(RuntimeError, match="async with groups"):
                async for _ in groups.worker("team", ["orders"]):
                    pass
            async with groups.worker("team", ["orders"]) as worker:
                async for share in worker:
                    with pytest.raises(ValueError, match="orders-9 is not a partition of this share"):
                        await share.commit({TopicPartition("orders", 9): 1})
                    break

    asyncio.run(story())


def test_a_second_leave_waits_for_the_first() -> None:
    """Also if the task that began the first iteration is cancelled."""

    async def story() -> None:
        async with broker() as groups:
            before = asyncio.all_tasks()
            async with Team(groups.worker, "consumer").member() as worker:
                share = await anext(worker)
                first = asyncio.create_task(worker.leave())
                await share.over()
                first.cancel()
                assert groups.consumer_view("team").members  # the program has not returned to the start of its loop
            assert groups.consumer_view("team").members == ()
            await asyncio.sleep(0)
            assert asyncio.all_tasks() - {first} == before

    asyncio.run(story())


def test_a_leave_that_is_cancelled_leaves_no_task_behind() -> None:
    async def story() -> None:
        async with broker() as groups:
            before = asyncio.all_tasks()

            async def program() -> None:
                async with Team(groups.worker, "consumer").member(revoked=_never) as worker:
                    await anext(worker)

            running = asyncio.create_task(program())
            await until(lambda: groups.consumer_view("team") is not None)
            await asyncio.sleep(0.2)
            running.cancel()
            await asyncio.wait({running}, timeout=0.1)
            running.cancel()
            await asyncio.wait({running})
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == before

    asyncio.run(story())


async def _never(partitions: object) -> None:
    del partitions
    await asyncio.Event().wait()
