"""The asyncio driver in virtual time: timers, a store that may fail, and the example."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from fencepost.aio import GroupBroker, RandomChoices, Stopped
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView
from fencepost.store import MemoryStore
from fencepost_conformance.generate.virtual.loop import VirtualLoop, run

ROOT = Path(__file__).parents[3]
QUICK = Settings(group_min_session_timeout_ms=10, group_initial_rebalance_delay_ms=20)


def join(member: str = "", *, instance: str | None = None, session: int = 60_000) -> m.JoinGroupRequest:
    return m.JoinGroupRequest(
        "g",
        session_timeout_ms=session,
        rebalance_timeout_ms=60_000,
        member_id=member,
        group_instance_id=instance,
        protocol_type="work",
        protocols=(m.Protocol("even", b""),),
    )


def sync(member: str, generation: int, share: bytes) -> m.SyncGroupRequest:
    return m.SyncGroupRequest(
        "g",
        generation_id=generation,
        member_id=member,
        protocol_type="work",
        protocol_name="even",
        assignments=(m.SyncGroupAssignment(member, share),),
    )


def play(scene: Callable[[GroupBroker], Awaitable[None]], store: MemoryStore | None = None) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), GroupBroker(store or MemoryStore(), QUICK) as groups:
            await scene(groups)

    ran = run(main(), Random(1))
    if ran.failure is not None:
        raise ran.failure
    assert (ran.leaked, ran.unhandled) == ((), ())


async def member(groups: GroupBroker, share: bytes = b"all") -> str:
    """Bring one member to generation 1, Stable."""
    joined = await groups.join(join((await groups.join(join())).member_id))
    assert joined.generation_id == 1
    synced = await groups.sync(sync(joined.member_id, 1, share))
    assert synced.assignment == share
    return joined.member_id


def test_a_member_joins_syncs_heartbeats_and_leaves() -> None:
    async def scene(groups: GroupBroker) -> None:
        name = await member(groups)
        assert (
            await groups.heartbeat(m.HeartbeatRequest("g", generation_id=1, member_id=name))
        ).error_code is ErrorCode.NONE
        rows = (await groups.describe(m.DescribeGroupsRequest(("g",)))).groups
        assert rows[0].members[0].member_assignment == b"all"
        assert len((await groups.list_groups(m.ListGroupsRequest())).groups) == 1
        left = await groups.leave(m.LeaveGroupRequest("g", (m.LeaveGroupMember(name),)))
        assert left.members[0].error_code is ErrorCode.NONE
        deleted = await groups.delete(m.DeleteGroupsRequest(("g",)))
        assert deleted.results[0].error_code is ErrorCode.NONE
        assert groups.view("g") is None

    play(scene)


def test_timers_use_the_clock_of_the_loop_and_not_the_wall_clock() -> None:
    async def main() -> None:
        times = [5_000, 90, *[7] * 1_000]
        async with asyncio.timeout(30), GroupBroker(MemoryStore(), QUICK, clock=lambda: times.pop(0)) as groups:
            await member(groups)

    asyncio.run(main())


def test_a_session_expires_by_itself() -> None:
    async def scene(groups: GroupBroker) -> None:
        given = await groups.join(join(session=15))
        view = groups.view("g")
        while view is not None and view.pending_join:
            await asyncio.sleep(0.005)
            view = groups.view("g")
        late = await groups.join(join(given.member_id))
        assert late.error_code is ErrorCode.UNKNOWN_MEMBER_ID

    play(scene)


def test_a_failed_append_is_an_error_and_changes_nothing() -> None:
    store = MemoryStore()

    async def scene(groups: GroupBroker) -> None:
        name = await member(groups)
        store.failing = ErrorCode.KAFKA_STORAGE_ERROR
        back = await groups.leave(m.LeaveGroupRequest("g", (m.LeaveGroupMember(name),)))
        assert back.error_code is ErrorCode.NOT_COORDINATOR
        refused = await groups.delete(m.DeleteGroupsRequest(("g",)))
        assert refused.results[0].error_code is ErrorCode.NOT_COORDINATOR
        assert groups.view("g") is not None
        store.failing = None
        deleted = await groups.delete(m.DeleteGroupsRequest(("g",)))
        assert deleted.results[0].error_code is ErrorCode.NONE

    play(scene, store)


def test_a_timer_that_was_set_again_while_it_waited_its_turn_does_not_fire() -> None:
    """The heartbeat is handled first, although the session timer is already due (F-RT-17)."""

    async def scene(groups: GroupBroker) -> None:
        given = (await groups.join(join(session=200))).member_id
        joined = await groups.join(join(given, session=200))
        await groups.sync(sync(joined.member_id, 1, b"all"))
        beat = asyncio.create_task(groups.heartbeat(m.HeartbeatRequest("g", generation_id=1, member_id=given)))
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.advance(0.3)  # the loop sees both at the same time
        assert (await beat).error_code is ErrorCode.NONE
        await asyncio.sleep(0)
        view = groups.view("g")
        assert view is not None
        assert [row.member_id for row in view.members] == [given]

    play(scene)


def test_a_coordinator_starts_once_and_may_be_stopped_repeatedly() -> None:
    async def main() -> None:
        groups = GroupBroker(MemoryStore())
        await groups.start()
        with pytest.raises(RuntimeError, match="running already"):
            await groups.start()
        await groups.stop()
        await groups.stop()

    asyncio.run(main())


def test_a_new_coordinator_continues_from_the_store() -> None:
    store = MemoryStore()
    names = []

    async def first(groups: GroupBroker) -> None:
        names.append(await member(groups, b"mine"))

    async def second(groups: GroupBroker) -> None:
        (name,) = names
        assert (
            await groups.heartbeat(m.HeartbeatRequest("g", generation_id=1, member_id=name))
        ).error_code is ErrorCode.NONE
        assert (await groups.sync(sync(name, 1, b""))).assignment == b"mine"

    play(first, store)
    play(second, store)


def test_stopping_answers_waiting_requests() -> None:
    async def main() -> None:
        groups = GroupBroker(MemoryStore(), Settings(group_initial_rebalance_delay_ms=60_000))
        with pytest.raises(Stopped):
            await groups.join(join())
        await groups.start()
        given = await groups.join(join())
        waiting = asyncio.create_task(groups.join(join(given.member_id)))
        while (view := groups.view("g")) is None or not view.members:
            await asyncio.sleep(0)
        await groups.stop()
        assert (await waiting).error_code is ErrorCode.NOT_COORDINATOR
        with pytest.raises(Stopped):
            await groups.join(join())

    asyncio.run(main())


def test_a_wait_can_be_cancelled_and_a_bad_version_affects_no_other_caller() -> None:
    async def scene(groups: GroupBroker) -> None:
        given = await groups.join(join())
        waiting = asyncio.create_task(groups.join(join(given.member_id)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(ValueError, match="no version 99"):
            await groups.request(join(), version=99)
        again = await groups.join(join(given.member_id))
        assert again.generation_id == 1

    play(scene)


def test_the_example_runs() -> None:
    source = ROOT / "examples" / "embed.py"
    assert len(source.read_text().splitlines()) < 80
    ran = subprocess.run([sys.executable, source], capture_output=True, text=True, timeout=60, check=True)
    shares: dict[str, list[int]] = {}
    for line in ran.stdout.splitlines():
        generation, share = line.removeprefix("generation ").split(": ")
        shares.setdefault(generation, []).extend(json.loads(share.partition("[")[1] + share.partition("[")[2]))
    assert all(len(taken) == len(set(taken)) for taken in shares.values())  # no two members share a partition
    assert ran.stdout.endswith("ada works on [0, 1, 2, 3, 4, 5]\n")


def test_offsets_are_committed_and_fetched() -> None:
    """Fetch by name or by id; a fetch of all offsets returns names."""
    topic_id = bytes(15) + b"\x01"

    async def scene(groups: GroupBroker) -> None:
        groups.set_topics((Topic("t", topic_id, 2),))
        for number, named in enumerate(({"name": "t"}, {"topic_id": topic_id})):
            parts = (o.OffsetCommitRequestPartition(number, committed_offset=7),)
            topics = (o.OffsetCommitRequestTopic(partitions=parts, **named),)  # type: ignore[arg-type]
            answer = await groups.commit_offsets(o.OffsetCommitRequest("g", topics=topics))
            assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE
            wanted = (o.OffsetFetchRequestTopic(partition_indexes=(number,), **named),)  # type: ignore[arg-type]
            asked = o.OffsetFetchRequestGroup("g", topics=wanted)
            fetched = await groups.fetch_offsets(o.OffsetFetchRequest((asked,), require_stable=True))
            assert fetched.groups[0].topics[0].partitions[0].committed_offset == 7
        transaction = o.TxnOffsetCommitRequest(
            "g", transactional_id="tx", producer_id=1, producer_epoch=0, topics=topics
        )
        refused = await groups.request(transaction, denied_transactional_ids=frozenset({"tx"}))
        assert isinstance(refused, o.TxnOffsetCommitResponse)
        assert refused.topics[0].partitions[0].error_code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        everything = await groups.fetch_offsets(o.OffsetFetchRequest((o.OffsetFetchRequestGroup("g"),)))
        assert [(each.name, len(each.partitions)) for each in everything.groups[0].topics] == [("t", 2)]
        assert [row.offset for row in groups.offsets_view("g").committed] == [7, 7]

    play(scene)


def test_an_answer_without_a_waiting_member_delays_no_other() -> None:
    """Two members wait in one rebalance, and the first one stops waiting."""

    async def scene(groups: GroupBroker) -> None:
        ids = [(await groups.join(join())).member_id for _ in range(2)]
        first = asyncio.ensure_future(groups.join(join(ids[0])))
        await asyncio.sleep(0.001)
        first.cancel()
        second = await asyncio.wait_for(groups.join(join(ids[1])), 60)
        assert second.error_code is ErrorCode.NONE

    play(scene)


def test_one_offset_and_a_group_of_either_kind_can_be_looked_up() -> None:
    async def scene(groups: GroupBroker) -> None:
        groups.set_topics((Topic("t", bytes(15) + b"\x01", 2),))
        await member(groups)
        joins = c.ConsumerGroupHeartbeatRequest(
            "k",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )
        await groups.consumer_heartbeat(joins)
        rows = (o.OffsetCommitRequestPartition(1, committed_offset=7),)
        await groups.commit_offsets(
            o.OffsetCommitRequest("s", topics=(o.OffsetCommitRequestTopic(name="t", partitions=rows),))
        )
        assert isinstance(groups.group_view("g"), GroupView)
        assert isinstance(groups.group_view("k"), ConsumerGroupView)
        assert groups.group_view("missing") is None
        found = groups.committed_offset("s", TopicPartition("t", 1))
        assert found is not None
        assert (found.offset, found) == (7, groups.offsets_view("s").committed[0])
        assert groups.committed_offset("s", TopicPartition("t", 0)) is None
        assert groups.committed_offset("missing", TopicPartition("t", 1)) is None

    play(scene)


def test_choices_with_a_seed_are_the_same_in_each_run() -> None:
    def ids(choices: RandomChoices) -> list[str]:
        return [choices.member_id("client"), choices.uuid(), choices.uuid()]

    assert ids(RandomChoices(seed=7)) == ids(RandomChoices(seed=7)) != ids(RandomChoices(seed=8))
    assert ids(RandomChoices()) != ids(RandomChoices())
