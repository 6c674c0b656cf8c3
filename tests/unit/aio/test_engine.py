"""The asyncio driver of many coordinators handles late and out-of-order results, and results without a waiting
caller."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import async_solipsism
import pytest

from fencepost import host
from fencepost.aio import GroupBroker, Stopped
from fencepost.host import broker as hosted
from fencepost.host.broker import OnPartition
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import GroupConfig, Request, TimerFired, Unload
from fencepost.protocol.settings import Settings
from fencepost.store import AppendError

from .scenes import TOPIC, SlowStore, commit, committed, join, offsets, play

REFUSED = AppendError(ErrorCode.KAFKA_STORAGE_ERROR)


async def ticks(count: int = 6) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def refuse(groups: GroupBroker, store: SlowStore, group: str) -> None:
    """After a failed append of a partition, its next appends go one at a time."""
    store.slow = True
    answer = groups.submit(commit(group, 1), version=9)
    await store.land(REFUSED)
    assert answer.done()


def test_a_commit_after_a_failed_append_is_answered_when_it_lands() -> None:
    """The reports about appends from before the failure delay no later append."""
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        store.slow = True
        before = [groups.submit(commit("g", each), version=9) for each in (1, 2, 3)]
        await store.land(OSError("the disk is gone"))
        assert all(each.done() for each in before)
        while groups.counts.loaded == 0:
            await asyncio.sleep(0)
        after = groups.submit(commit("g", 4), version=9)
        assert len(store.asked) == 1
        await store.land()
        await ticks()
        assert after.done()
        assert offsets(groups, "g") == [4]

    play(scene, store)


def test_a_timer_that_is_set_again_while_its_event_waits_does_not_fire() -> None:
    """A heartbeat waits behind a commit; meanwhile the member's session timer fires, and its event is queued later."""
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        given = await groups.join(join("g", session=1_000))
        joined = await groups.join(join("g", given.member_id, session=1_000))
        sync = m.SyncGroupRequest(
            "g", generation_id=1, member_id=joined.member_id, protocol_type="work", protocol_name="even",
            assignments=(m.SyncGroupAssignment(joined.member_id, b"all"),),
        )  # fmt: skip
        await groups.sync(sync)
        fired: list[Any] = []
        await refuse(groups, store, "h")
        landing = groups.submit(commit("h", 2), version=9)
        beat = groups.submit(m.HeartbeatRequest("g", generation_id=1, member_id=joined.member_id))
        assert not beat.done()
        await asyncio.sleep(1.1)
        groups.watch(lambda event, served: fired.append(event.event) if isinstance(event, OnPartition) else None)
        await store.land()
        assert landing.done()
        assert (await beat).error_code is ErrorCode.NONE  # type: ignore[union-attr]
        await ticks()
        assert not any(isinstance(each, TimerFired) for each in fired)
        store.slow = False
        async with asyncio.timeout(60):
            while (seen := groups.view("g")) is not None and seen.members:
                await asyncio.sleep(0.01)
        assert any(isinstance(each, TimerFired) for each in fired)

    play(scene, store)


def test_requests_are_answered_after_a_partition_is_given_up_behind_a_failed_append() -> None:
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        await refuse(groups, store, "g")
        store.slow = False
        moving = asyncio.ensure_future(groups.move(groups.partition_of("g"), 0.05))
        await asyncio.sleep(0)
        late = groups.submit(commit("g", 2), version=9)
        assert (await late).topics[0].partitions[0].error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
        await moving
        assert await committed(groups, "g", 3) is ErrorCode.NONE

    play(scene, store)


@pytest.mark.parametrize("how", ["cancelled", "informed of a watcher that fails"])
def test_an_answer_without_a_waiting_caller_delays_no_other(how: str) -> None:
    """Two members wait in one rebalance, and the first one stops waiting."""

    async def scene(groups: GroupBroker) -> None:
        ids = [(await groups.join(join("g"))).member_id for _ in range(2)]
        broken = how != "cancelled"

        def watch(event: Any, served: host.Served) -> None:
            if broken and isinstance(event, Request):
                raise ZeroDivisionError

        groups.watch(watch)
        first = groups.submit(join("g", ids[0]))
        if broken:
            with pytest.raises(ZeroDivisionError):
                await first
            broken = False
        else:
            first.cancel()
        second = await asyncio.wait_for(groups.submit(join("g", ids[1])), 60)
        assert second.error_code is ErrorCode.NONE  # type: ignore[union-attr]

    play(scene)


def test_requests_that_wait_on_a_partition_that_cannot_be_given_up_get_stopped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    real = hosted.step

    def step(broker: host.Broker, event: Any, choices: Any) -> Any:
        if isinstance(event, OnPartition) and isinstance(event.event, Unload):
            raise ZeroDivisionError
        return real(broker, event, choices)

    waiting: list[asyncio.Future[Any]] = []

    async def scene(groups: GroupBroker) -> None:
        for _ in range(2):
            given = await groups.join(join("g"))
            waiting.append(groups.submit(join("g", given.member_id)))
        waiting[0].cancel()
        monkeypatch.setattr(hosted, "step", step)

    play(scene)
    assert waiting[0].cancelled()
    assert isinstance(waiting[1].exception(), Stopped)
    assert "could not handle Unload" in caplog.text


def test_a_task_whose_turn_comes_after_its_partition_was_lost_is_not_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A regular expression is resolved in a task, which waits behind a commit that fails permanently."""
    caplog.set_level(logging.ERROR, "fencepost.aio")
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        asks = c.ConsumerGroupHeartbeatRequest(
            "g", member_id="ada", member_epoch=0, rebalance_timeout_ms=60_000, subscribed_topic_regex="t.*",
            topic_partitions=(),
        )  # fmt: skip
        await refuse(groups, store, "g")
        done: list[Any] = []
        groups.watch(lambda event, served: done.append(event))
        joining = groups.submit(asks)  # its records are pending, and its task begins with them
        await ticks()
        await store.land(OSError("the disk is gone"))
        await joining
        while groups.counts.loaded == 0:
            await asyncio.sleep(0)
        await ticks()
        assert [each for each in caplog.messages if "could not handle" in each] == []

    play(scene, store)


def test_a_broker_that_is_still_loading_rejects_requests() -> None:
    async def main() -> None:
        groups = GroupBroker(SlowStore())
        starting = asyncio.ensure_future(groups.start())
        await asyncio.sleep(0)
        with pytest.raises(Stopped):
            await groups.request(m.ListGroupsRequest())
        with pytest.raises(Stopped):
            groups.configure("g", GroupConfig())
        await starting
        await groups.stop()

    asyncio.run(main())


class GatedStore(SlowStore):
    """Loads wait for the test while ``gate`` is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.loading = 0

    async def load(self, partition: int) -> Any:
        self.loading += 1
        await self.gate.wait()
        return await super().load(partition)


async def loads_again(groups: GroupBroker, store: GatedStore, group: str) -> None:
    """The result of an append is unknown, so its partition is loaded again."""
    store.slow, before = True, store.loading
    store.gate.clear()
    answer = groups.submit(commit(group, 1), version=9)
    await store.land(OSError("the disk is gone"))
    assert answer.done()
    store.slow = False
    while store.loading == before:
        await asyncio.sleep(0)


def test_a_partition_given_up_during_its_load_stays_given_up() -> None:
    store = GatedStore()

    async def scene(groups: GroupBroker) -> None:
        await loads_again(groups, store, "g")
        moving = asyncio.ensure_future(groups.move(groups.partition_of("g"), 60))
        await ticks()
        store.gate.set()
        await ticks(20)
        assert await committed(groups, "g", 2) is ErrorCode.NOT_COORDINATOR
        moving.cancel()

    play(scene, store)


def test_groups_are_not_listed_while_a_partition_is_loaded() -> None:
    store = GatedStore()

    async def scene(groups: GroupBroker) -> None:
        assert await committed(groups, "h", 1) is ErrorCode.NONE
        await loads_again(groups, store, "g")
        listed = await groups.request(m.ListGroupsRequest())
        assert isinstance(listed, m.ListGroupsResponse)
        assert listed.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        store.gate.set()
        while groups.counts.loaded == 0:
            await asyncio.sleep(0)
        listed = await groups.request(m.ListGroupsRequest())
        assert isinstance(listed, m.ListGroupsResponse)
        assert (listed.error_code, [row.group_id for row in listed.groups]) == (ErrorCode.NONE, ["h"])

    play(scene, store)


def test_a_compaction_that_failed_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.aio.engine.REST_S", 0.0)
    tried: list[int] = []

    class Full(SlowStore):
        def due(self, partition: int) -> bool:
            return True

        async def compact(self, partition: int) -> int:
            tried.append(partition)
            if len(tried) == 1:
                raise OSError("the disk is full")
            return 0

    async def scene(groups: GroupBroker) -> None:
        for offset in range(4):
            await committed(groups, "g", offset)
            await ticks()

    play(scene, Full())
    assert len(tried) > 1


def test_a_write_that_is_not_durable_in_time_is_answered_when_its_own_time_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The timers of writes share one handle of the loop; each fires at its own time, unless its write is durable by
    then (G-CFG-25, O-COMMIT-12)."""
    store = SlowStore()
    answered: dict[str, tuple[int, ErrorCode]] = {}

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with GroupBroker(store, Settings(offsets_commit_timeout_ms=40), topics=[TOPIC]) as groups:
            began = loop.time()

            def ask(group: str, offset: int) -> asyncio.Future[m.ResponseBody]:
                answer = groups.submit(commit(group, offset), version=9)
                answer.add_done_callback(lambda done: note(f"{group} {offset}", done.result()))
                return answer

            def note(name: str, body: m.ResponseBody) -> None:
                assert isinstance(body, o.OffsetCommitResponse)
                answered[name] = round((loop.time() - began) * 1_000), body.topics[0].partitions[0].error_code

            store.slow = True
            waiting = [ask("g", 1)]
            await asyncio.sleep(0.01)
            waiting += [ask("g", 2), ask("h", 1)]
            await asyncio.sleep(0.01)
            waiting += [ask("g", 3)]
            await asyncio.sleep(0.025)
            await store.land()
            waiting += [ask("g", 4)]
            await asyncio.sleep(0.01)
            waiting += [ask("g", 5)]
            await asyncio.wait(waiting)
            await store.land()
            assert offsets(groups, "g") == [5]

    with asyncio.Runner(loop_factory=async_solipsism.EventLoop) as runner:
        runner.run(main())
    late, none = ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE
    assert answered == {
        "g 1": (40, late),
        "g 2": (45, none),
        "h 1": (45, none),
        "g 3": (45, none),
        "g 4": (85, late),
        "g 5": (95, late),
    }
    assert not caplog.records  # no timer that the coordinator had cancelled has fired
