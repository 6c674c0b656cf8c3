"""The asyncio driver of many coordinators: real timers (short ones), a store that may fail or be slow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fencepost import host
from fencepost.aio import GroupBroker, Started, Stopped
from fencepost.host import broker as hosted
from fencepost.host.broker import OnPartition
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.consumer_records import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    TopicPartitions,
)
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.events import Appended, AppendFailed, GroupConfig, Load, Request, Topic
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost.store import AppendError, MemoryStore, StoreError

from .scenes import QUICK, TOPIC, SlowStore, commit, committed, join, member, offsets, play

GROUPS = tuple(f"group {number}" for number in range(12))


def test_groups_of_many_partitions_are_served_and_loaded_again() -> None:
    store = MemoryStore(4)

    async def first(groups: GroupBroker) -> None:
        assert groups.partitions == 4
        assert groups.led == frozenset(range(4))
        assert {groups.partition_of(name) for name in GROUPS} == set(range(4))
        await asyncio.gather(*[member(groups, name) for name in GROUPS])
        for number, name in enumerate(GROUPS):
            assert await committed(groups, f"{name} without members", number) is ErrorCode.NONE
        assert sorted(groups.views()) == sorted([*GROUPS, *(f"{name} without members" for name in GROUPS)])
        rows = (await groups.list_groups(m.ListGroupsRequest())).groups
        assert len(rows) == 24

    async def second(groups: GroupBroker) -> None:
        for number, name in enumerate(GROUPS):
            assert offsets(groups, f"{name} without members") == [number]
            view = groups.view(name)
            assert view is not None
            (only,) = view.members
            beat = m.HeartbeatRequest(name, generation_id=1, member_id=only.member_id)
            assert (await groups.heartbeat(beat)).error_code is ErrorCode.NONE

    play(first, store)
    play(second, store)


def test_each_start_is_a_new_leader_epoch() -> None:
    store, epochs = MemoryStore(4), []

    async def scene(groups: GroupBroker) -> None:
        epochs.append(await store.lead(0))

    for _ in range(3):
        play(scene, store)
    assert epochs == [2, 4, 6]


def test_a_session_expires_by_itself() -> None:
    async def scene(groups: GroupBroker) -> None:
        given = await groups.join(join("g", session=15))
        while (view := groups.view("g")) is not None and view.pending_join:
            await asyncio.sleep(0.005)
        late = await groups.join(join("g", given.member_id))
        assert late.error_code is ErrorCode.UNKNOWN_MEMBER_ID

    play(scene)


def test_a_consumer_group_is_assigned_the_existing_partitions() -> None:
    async def scene(groups: GroupBroker) -> None:
        asks = c.ConsumerGroupHeartbeatRequest(
            "g",
            member_id="ada",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("t", "u"),
            topic_partitions=(),
        )
        answer = await groups.consumer_heartbeat(asks)
        assert answer.assignment is not None
        assert [len(each.partitions) for each in answer.assignment] == [4]
        groups.set_topics([TOPIC, Topic("u", bytes(15) + b"\2", 2)])
        beat = c.ConsumerGroupHeartbeatRequest("g", member_id="ada", member_epoch=answer.member_epoch)
        while True:
            answer = await groups.consumer_heartbeat(beat)
            if answer.member_epoch > beat.member_epoch:
                break
            await asyncio.sleep(0.05)  # the assignment interval
        assert answer.assignment is not None
        assert sum(len(each.partitions) for each in answer.assignment) == 6
        groups.configure("g", GroupConfig(consumer_heartbeat_interval_ms=6_000))
        beat = c.ConsumerGroupHeartbeatRequest("g", member_id="ada", member_epoch=answer.member_epoch)
        assert (await groups.consumer_heartbeat(beat)).heartbeat_interval_ms == 6_000

    play(scene)


def test_answers_wait_for_the_log_while_other_requests_continue() -> None:
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        store.slow = True
        first = [groups.submit(commit("g", 1), version=9), groups.submit(commit("g", 2), version=9)]
        other = groups.submit(commit("h", 3), version=9)
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(store.asked) == 3
        assert not any(each.done() for each in (*first, other))
        await store.land()
        assert all(each.done() for each in (*first, other))
        assert offsets(groups, "g") == [2]
        before = groups.counts.events
        twice = [groups.submit(commit("g", each), version=9) for each in (4, 5, 6)]
        await store.land()
        assert all(each.done() for each in twice)
        assert groups.counts.events == before + 4  # three requests, and one report that all three are durable

    play(scene, store)


def test_a_watcher_that_is_given_before_the_start_sees_the_loads() -> None:
    async def scene() -> None:
        seen = []
        groups = GroupBroker(MemoryStore(3))
        groups.watch(lambda event, served: seen.append(event))
        async with groups:
            loads = [each.partition for each in seen if isinstance(each, OnPartition) and isinstance(each.event, Load)]
            assert loads == [0, 1, 2]

    asyncio.run(scene())


def test_a_failed_append_is_taken_back_when_nothing_was_handled_since() -> None:
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        assert await committed(groups, "g", 1) is ErrorCode.NONE
        seen = []
        groups.watch(lambda event, served: seen.append(event))
        store.slow = True
        answer = groups.submit(commit("g", 2), version=9)
        await store.land(AppendError(ErrorCode.KAFKA_STORAGE_ERROR))
        assert (await answer).topics[0].partitions[0].error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
        assert offsets(groups, "g") == [1]
        assert any(isinstance(each, OnPartition) and isinstance(each.event, AppendFailed) for each in seen)
        assert groups.counts.loaded == 0
        # from now on appends go one at a time: the next one in the partition waits for the pending one
        third, fourth = groups.submit(commit("g", 3), version=9), groups.submit(commit("g", 4), version=9)
        assert len(store.asked) == 1
        await store.land(AppendError(ErrorCode.KAFKA_STORAGE_ERROR))
        assert third.done()
        assert not fourth.done()
        await store.land()
        assert fourth.done()
        assert offsets(groups, "g") == [4]
        several = [groups.submit(commit("g", each), version=9) for each in (5, 6)]
        assert len(store.asked) == 2
        await store.land()
        assert all(each.done() for each in several)
        assert groups.counts.loaded == 0

    play(scene, store)


def test_an_answer_is_sent_when_its_records_land_although_the_next_have_not() -> None:
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        store.slow = True
        first, second = (groups.submit(commit("g", each), version=9) for each in (1, 2))
        later = store.asked.pop()
        await store.land()
        assert first.done()
        assert not second.done()
        store.asked.append(later)
        await store.land()
        assert second.done()

    play(scene, store)


def test_a_failed_append_is_not_taken_back_when_something_was_read_since() -> None:
    """Later steps depend on the records that were read, and the core can only take back its last step (F-RT-08,
    F-RT-12)."""
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        assert await committed(groups, "g", 1) is ErrorCode.NONE
        store.slow = True
        answer = groups.submit(commit("g", 2), version=9)
        read = groups.submit(o.OffsetFetchRequest((o.OffsetFetchRequestGroup("g"),), require_stable=True), version=9)
        assert len(store.asked) == 1
        await store.land(AppendError(ErrorCode.KAFKA_STORAGE_ERROR))
        store.slow = False
        answers = [await asyncio.wait_for(each, 60) for each in (answer, read)]
        assert answers[0].topics[0].partitions[0].error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
        assert answers[1].groups[0].error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
        while await committed(groups, "g", 3) is not ErrorCode.NONE:
            await asyncio.sleep(0)
        assert (offsets(groups, "g"), groups.counts.loaded) == ([3], 1)

    play(scene, store)


def test_a_timer_that_is_set_again_for_an_earlier_time_runs_out_then() -> None:
    """A member joins again with a session of 50 ms instead of a minute, and then sends nothing."""

    async def scene(groups: GroupBroker) -> None:
        name = await member(groups, "g")
        again = asyncio.ensure_future(groups.join(join("g", name, session=50)))
        answer = await again
        share = (m.SyncGroupAssignment(name, b"all"),)
        sync = m.SyncGroupRequest(
            "g", generation_id=answer.generation_id, member_id=name, protocol_type="work", protocol_name="even",
            assignments=share,
        )  # fmt: skip
        await groups.sync(sync)
        async with asyncio.timeout(60):
            while (seen := groups.view("g")) is not None and seen.members:
                await asyncio.sleep(0.01)

    play(scene)


def asked_of(event: Any) -> str | None:
    """Return the group of a request; None for another event."""
    return event.body.group_id if isinstance(event, Request) else None


def test_a_request_from_a_watcher_is_handled_after_the_step() -> None:
    async def scene(groups: GroupBroker) -> None:
        seen: list[str] = []

        def asks(event: Any, served: host.Served) -> None:
            if asked_of(event) == "g":
                groups.submit(commit("h", 1), version=9)

        groups.watch(asks)
        groups.watch(lambda event, served: seen.append(name) if (name := asked_of(event)) else None)
        beat = m.HeartbeatRequest("g", generation_id=1, member_id="nobody")
        await groups.submit(beat)  # it writes nothing, so no append is pending
        assert seen == ["g", "h"]

    play(scene)


def test_requests_keep_their_order_while_the_last_compaction_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """No append is pending any longer, but an earlier request still waits."""
    store, compacted = SlowStore(), asyncio.Event()

    async def compact(partition: int) -> int:
        await compacted.wait()
        return 0

    async def scene(groups: GroupBroker) -> None:
        seen: list[str] = []
        groups.watch(lambda event, served: seen.append(name) if (name := asked_of(event)) else None)
        monkeypatch.setattr(store, "due", lambda partition: True)
        monkeypatch.setattr(store, "compact", compact)
        store.slow = True
        asked = [groups.submit(commit("g", 1), version=9)]
        draining = asyncio.ensure_future(groups.drain())
        await asyncio.sleep(0)
        asked.append(groups.submit(commit("h", 1), version=9))
        await store.land()
        for _ in range(5):
            await asyncio.sleep(0)
        assert groups.led == frozenset()
        assert not draining.done()
        asked.append(groups.submit(commit("i", 1), version=9))
        compacted.set()
        await draining
        codes = [(await each).topics[0].partitions[0].error_code for each in asked]  # type: ignore[union-attr]
        assert codes == [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR]
        assert seen == ["g", "h", "i"]

    play(scene, store)


@pytest.mark.parametrize("failure", [AppendError(ErrorCode.KAFKA_STORAGE_ERROR), OSError("the disk is gone")])
def test_a_partition_is_loaded_again_when_steps_depend_on_lost_records(failure: Exception) -> None:
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        assert await committed(groups, "g", 1) is ErrorCode.NONE
        assert await committed(groups, "h", 1) is ErrorCode.NONE
        store.slow = True
        asked = [groups.submit(commit("g", each), version=9) for each in (2, 3)]
        await store.land(failure)
        for each in asked:
            assert (await each).topics[0].partitions[0].error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
        store.slow = False
        while await committed(groups, "g", 4) is not ErrorCode.NONE:
            await asyncio.sleep(0)
        assert (offsets(groups, "g"), offsets(groups, "h")) == ([4], [1])
        assert groups.counts.loaded == 1

    play(scene, store)


def test_no_append_follows_a_failed_one_before_the_broker_knows_it() -> None:
    """The store accepts appends again as soon as one has failed, and a step may run before any caller is notified."""
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        assert await committed(groups, "g", 1) is ErrorCode.NONE
        store.slow = True
        asked = [groups.submit(commit("g", each), version=9) for each in (2, 3)]
        for *_, done in store.asked:
            done.set_exception(AppendError(ErrorCode.KAFKA_STORAGE_ERROR))
        store.asked.clear()
        asked.append(groups.submit(commit("g", 4), version=9))
        await store.land()
        for each in asked:
            assert (await each).topics[0].partitions[0].error_code is not ErrorCode.NONE  # type: ignore[union-attr]
        records = [each for place in range(4) for each in await store.load(place)]
        assert [each.value.offset for each in records if isinstance(each.value, OffsetCommitValue)] == [1]

    play(scene, store)


def test_second_writes_are_not_queued_behind_a_failed_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some requests write again when their first records are in the log (C-ADM-09). In this test every request does."""
    store, real = SlowStore(), hosted.step
    further = Record(OffsetCommitKey("further", "t", 0), None)

    def step(broker: host.Broker, event: Any, choices: Any) -> Any:
        after, served = real(broker, event, choices)
        if isinstance(event, OnPartition) and isinstance(event.event, Appended):
            served = replace(served, parts=tuple((at, replace(each, records=(further,))) for at, each in served.parts))
        return after, served

    async def scene(groups: GroupBroker) -> None:
        store.slow = True
        asked = [groups.submit(commit("g", each), version=9) for each in (2, 3)]
        (partition, records, epoch, first), (_, _, _, second) = store.asked
        store.asked.clear()
        await MemoryStore.append(store, partition, records, leader_epoch=epoch)
        first.set_result(None)
        second.set_exception(OSError("the disk is gone"))
        monkeypatch.setattr(hosted, "step", step)
        for _ in range(5):
            await asyncio.sleep(0)
        monkeypatch.setattr(hosted, "step", real)
        assert store.asked == []
        assert all(each.done() for each in asked)
        while groups.counts.loaded == 0:
            await asyncio.sleep(0)
        assert offsets(groups, "g") == [2]
        for _ in range(5):
            await asyncio.sleep(0)
        assert (groups.counts.failed, groups.counts.loaded) == (1, 1)

    play(scene, store)


class Compacted(MemoryStore):
    """Compact as often as ``wanted`` allows. ``began`` counts the runs; each runs until the test ends it, or fails."""

    def __init__(self) -> None:
        super().__init__(4)
        self.wanted, self.began, self.end = False, 0, asyncio.Event()
        self.fails = False

    def due(self, partition: int) -> bool:
        return self.wanted

    async def compact(self, partition: int) -> int:
        self.began += 1
        await self.end.wait()
        if self.fails:
            raise OSError("the disk is full")
        return 3


def test_one_partition_at_a_time_is_compacted_if_it_is_due() -> None:
    store = Compacted()

    async def commits(groups: GroupBroker) -> None:
        for group in GROUPS[:6]:
            assert await committed(groups, group, 1) is ErrorCode.NONE
        for _ in range(3):
            await asyncio.sleep(0)

    async def scene(groups: GroupBroker) -> None:
        await commits(groups)
        assert store.began == 0
        store.wanted = True
        await commits(groups)
        assert store.began == 1
        store.end.set()
        await commits(groups)
        assert groups.counts.compacted >= 3
        store.fails = True
        await commits(groups)
        began, compacted = store.began, groups.counts.compacted
        await commits(groups)
        assert (store.began, groups.counts.compacted) == (began, compacted)  # the host pauses for a while

    play(scene, store)


class Unreadable(SlowStore):
    """A store that cannot be read for the first few attempts."""

    broken = 0

    async def load(self, partition: int) -> Sequence[Record]:
        if self.broken:
            self.broken -= 1
            raise StoreError("cannot be read")
        return await super().load(partition)


def test_a_partition_that_cannot_be_loaded_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.aio.engine.RETRY_S", 0.01)
    store = Unreadable()

    async def scene(groups: GroupBroker) -> None:
        assert await committed(groups, "g", 1) is ErrorCode.NONE
        store.slow, store.broken = True, 3
        asked = [groups.submit(commit("g", each), version=9) for each in (2, 3)]
        await store.land(OSError("the disk is gone"))
        assert all(each.done() for each in asked)
        store.slow = False
        assert await committed(groups, "g", 4) is not ErrorCode.NONE
        while store.broken or groups.counts.loaded == 0:
            await asyncio.sleep(0.005)
        assert offsets(groups, "g") == [1]
        assert await committed(groups, "g", 4) is ErrorCode.NONE

    play(scene, store)
    store.broken = 1
    with pytest.raises(StoreError, match="cannot be read"):
        play(scene, store)


def test_a_broker_that_the_store_fences_gives_the_partition_up() -> None:
    store = MemoryStore(4)

    async def scene(old: GroupBroker) -> None:
        assert await committed(old, "g", 1) is ErrorCode.NONE
        async with GroupBroker(store, QUICK, topics=[TOPIC]) as new:
            assert await committed(new, "g", 2) is ErrorCode.NONE
            assert not old.fenced.is_set()
            assert await committed(old, "g", 3) is ErrorCode.NOT_COORDINATOR
            assert old.fenced.is_set()
            assert old.led == frozenset(range(4)) - {old.partition_of("g")}
            assert await committed(old, "g", 4) is ErrorCode.NOT_COORDINATOR
            assert offsets(new, "g") == [2]

    play(scene, store)


def test_a_transaction_ends_in_the_partitions_of_its_groups() -> None:
    async def scene(groups: GroupBroker) -> None:
        names = GROUPS[:3]
        for name in names:
            body = o.TxnOffsetCommitRequest(
                name, transactional_id="tx", producer_id=7, producer_epoch=0, topics=commit(name, 5).topics
            )
            await groups.request(body, version=5)
            assert offsets(groups, name) == []
            assert [row.producer_id for row in groups.offsets_view(name).pending] == [7]
        marker = o.WriteTxnMarkerRequest(producer_id=7, producer_epoch=0, coordinator_epoch=0, committed=True)
        answers = await groups.write_markers(marker, names)
        assert set(answers) == {groups.partition_of(name) for name in names}
        assert all(answer == o.WriteTxnMarkerResponse(ErrorCode.NONE) for answer in answers.values())
        assert [offsets(groups, name) for name in names] == [[5], [5], [5]]

    play(scene)


def test_a_drain_answers_durable_requests_and_rejects_the_others() -> None:
    store = SlowStore()

    async def scene(groups: GroupBroker) -> None:
        given = await groups.join(join("w"))
        waiting = groups.submit(join("w", given.member_id))
        store.slow = True
        writes = groups.submit(commit("g", 2), version=9)
        draining = asyncio.create_task(groups.drain())
        await asyncio.sleep(0)
        late = groups.submit(commit("g", 3), version=9)
        await asyncio.sleep(0.01)
        assert not draining.done()
        await store.land()
        await draining
        assert (await writes).topics[0].partitions[0].error_code is ErrorCode.NONE  # type: ignore[union-attr]
        assert (await waiting).error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
        assert (await late).topics[0].partitions[0].error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
        assert await committed(groups, "g", 4) is ErrorCode.NOT_COORDINATOR
        assert groups.led == frozenset()

    play(scene, store)


def test_a_log_is_compacted_while_it_is_written() -> None:
    store = MemoryStore(1)

    async def scene(groups: GroupBroker) -> None:
        for number in range(3_000):
            assert await committed(groups, "g", number) is ErrorCode.NONE
            await asyncio.sleep(0)
        async with asyncio.timeout(10):  # the last append may be pending
            while groups.counts.compacted <= 1_000:
                await asyncio.sleep(0.01)
        assert len(store.records(0)) < 2_100

    play(scene, store)
    play(_last, store)


async def _last(groups: GroupBroker) -> None:
    assert offsets(groups, "g") == [2_999]


class LoadedLate(MemoryStore):
    """Elect a leader, and wait with the load until ``may_load`` is set."""

    def __init__(self) -> None:
        super().__init__(1)
        self.may_load = asyncio.Event()

    async def lead(self, partition: int) -> int:
        epoch = await super().lead(partition)
        await self.may_load.wait()
        return epoch


def test_topics_that_come_during_the_start_are_assigned() -> None:
    """M-META-03."""

    async def main() -> None:
        store = LoadedLate()
        groups = GroupBroker(store, topics=[TOPIC])
        starts = asyncio.create_task(groups.start())
        await asyncio.sleep(0)
        groups.set_topics([TOPIC, Topic("u", bytes(15) + b"\2", 2)])
        store.may_load.set()
        await starts
        joins = c.ConsumerGroupHeartbeatRequest(
            "g",
            member_id="ada",
            member_epoch=0,
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=("t", "u"),
            topic_partitions=(),
        )
        answer = await groups.consumer_heartbeat(joins)
        assert answer.assignment is not None
        assert sum(len(each.partitions) for each in answer.assignment) == 6
        await groups.stop()

    asyncio.run(main())


def test_misuse_is_named() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="store has no methods"):
            GroupBroker(object())  # type: ignore[arg-type]
        groups = GroupBroker(MemoryStore(2))
        with pytest.raises(Stopped):
            await groups.request(m.ListGroupsRequest())
        await groups.start()
        with pytest.raises(Started):
            await groups.start()
        with pytest.raises(IllegalEvent, match="body must be a request"):
            await groups.request(1)  # type: ignore[arg-type]
        with pytest.raises(IllegalEvent, match="no version 99"):
            await groups.request(m.ListGroupsRequest(), version=99)
        with pytest.raises(IllegalEvent, match=r"mark|partition"):
            await groups.request(
                o.WriteTxnMarkerRequest(producer_id=1, producer_epoch=0, coordinator_epoch=0, committed=True)
            )
        with pytest.raises(IllegalEvent):
            groups.set_topics([1])  # type: ignore[list-item]
        await groups.stop()
        await groups.stop()
        with pytest.raises(Stopped):
            groups.configure("g", None)
        with pytest.raises(Stopped):
            await groups.request(m.ListGroupsRequest())

    asyncio.run(main())


def test_a_log_that_makes_no_sense_is_not_served() -> None:
    """The target is deleted while a member has an assignment (F-REPLAY-10)."""
    store = MemoryStore(4)

    async def main() -> None:
        await store.open()
        key = ConsumerGroupTargetAssignmentMemberKey("g", "m")
        target = Record(key, ConsumerGroupTargetAssignmentMemberValue((TopicPartitions(TOPIC.topic_id, (0,)),)))
        no_target = Record(ConsumerGroupTargetAssignmentMetadataKey("g"), None)
        await store.append(1, [target, no_target], leader_epoch=0)
        groups = GroupBroker(store)
        with pytest.raises(StoreError, match="partition 1 cannot be loaded: it contains records"):
            await groups.start()
        with pytest.raises(Stopped):
            await groups.request(m.ListGroupsRequest())

    asyncio.run(main())
