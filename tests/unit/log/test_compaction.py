"""A compacted log gives the state of the whole one, whenever and however often it is compacted, and does not grow
without limit."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost import log as lg
from fencepost.aio.choices import RandomChoices
from fencepost.coordinator import CoordinatorState, consumer_views, initial_state, offsets_view, replay, step, views
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.choices import Choices
from fencepost.protocol.events import Appended, Event, Load, Request, Topic, TopicsChanged
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.store import MemoryStore
from fencepost_conformance.targets.hard_state import Groups, lost

A, B = Producer(1, 0), Producer(2, 0)


def offset(partition: int, value: int | None, producer: Producer | None = None) -> Record:
    key = OffsetCommitKey("g", "t", partition)
    return Record(key, None if value is None else OffsetCommitValue(value, commit_timestamp=0), producer)


def end(producer: Producer, *, committed: bool) -> Record:
    return Record(ControlKey(committed), ControlValue(0), producer)


def log_of(*records: Record) -> lg.PartitionLog:
    return lg.of_records(records)


def places(log: lg.PartitionLog) -> list[int]:
    return [row.offset for row in log.rows]


def stored(records: tuple[Record, ...]) -> object:
    """Return the offsets of a coordinator that loads these records, without their places in the log."""
    view = offsets_view(replay(initial_state(Settings(), INTENDED), records))
    rows = [
        (each.group_id, each.topic, each.partition, each.offset, each.producer_id)
        for each in (*view.committed, *view.pending)
    ]
    return rows, view.open_transactions


def test_the_last_of_each_key_stays_where_it_was() -> None:
    log = lg.compact(log_of(offset(0, 1), offset(1, 1), offset(0, 2), offset(1, 2), offset(0, 3)), 0)
    assert (places(log), log.end, log.clean) == ([3, 4], 5, 5)


def test_unreplicated_records_do_not_count() -> None:
    log = lg.append(log_of(offset(0, 1)), [offset(0, 2)], 1)
    assert places(lg.compact(log, 0)) == [0, 1]
    assert places(lg.compact(lg.replicated(log, 2), 0)) == [1]


def test_a_tombstone_stays_for_readers_that_may_need_it() -> None:
    log = log_of(offset(0, 1), offset(0, None), offset(1, 1))
    first = lg.compact(log, 1_000, retention_ms=500)
    assert places(first) == [1, 2]
    assert places(lg.compact(first, 1_499, retention_ms=500)) == [1, 2]
    assert places(lg.compact(first, 1_500, retention_ms=500)) == [2]
    assert places(lg.compact(log, 0, readers=(1,))) == [1, 2]
    assert places(lg.compact(log, 0, readers=(0, 2))) == [2]


def test_compaction_keeps_an_open_transaction() -> None:
    """Neither does any later record (O-TXN-07)."""
    log = log_of(offset(0, 1), offset(0, 2), offset(1, 5, A), offset(0, 3), offset(0, 4), offset(1, 6, A))
    log = lg.compact(log, 0, readers=())
    assert (places(log), log.clean) == ([1, 2, 3, 4, 5], 2)


def test_aborted_records_are_removed_before_their_marker() -> None:
    """O-TXN-08."""
    log = log_of(offset(0, 1), offset(0, 2, A), end(A, committed=False))
    first = lg.compact(log, 0, retention_ms=10)
    assert places(first) == [0, 2]
    assert places(lg.compact(first, 10, retention_ms=10)) == [0]


def test_a_marker_stays_as_long_as_the_records_that_it_committed() -> None:
    log = log_of(offset(0, 1), offset(0, 2, A), end(A, committed=True))
    log = lg.compact(log, 0, readers=())
    assert places(log) == [1, 2]
    later = lg.append(log, [offset(0, 3)], 1)
    assert places(lg.compact(lg.replicated(later, 4), 0, readers=())) == [3]


RECORDS = st.one_of(
    st.builds(offset, st.integers(0, 1), st.integers(0, 9) | st.none()),
    st.builds(offset, st.integers(0, 1), st.integers(0, 9), st.sampled_from([A, B])),
    st.builds(end, st.sampled_from([A, B]), committed=st.booleans()),
)


@given(
    st.lists(
        st.tuples(st.lists(RECORDS, min_size=1, max_size=3), st.sampled_from(["", "", "bare", "kept"])), max_size=15
    )
)
def test_a_compacted_log_gives_the_state_of_the_whole_log(steps: list[tuple[list[Record], str]]) -> None:
    """At every moment, after any earlier compaction (F-REPLAY-02 to 05, O-TXN-08, O-TXN-10)."""
    log = lg.PartitionLog()
    whole: list[Record] = []
    for now, (records, how) in enumerate(steps):
        whole += records
        log = lg.append(log, records, 1)
        log = lg.replicated(log, log.end)
        if how:
            log = lg.compact(log, now, retention_ms=2, readers=() if how == "bare" else None)
        assert stored(log.records) == stored(tuple(whole))


@given(st.lists(st.lists(RECORDS, min_size=1, max_size=3), min_size=1, max_size=12), st.data())
def test_a_reader_that_is_overtaken_finds_the_same(steps: list[list[Record]], data: st.DataObject) -> None:
    """A load reads a batch at a time while the log is compacted; the compaction respects the reader (F-REPLAY-18)."""
    log = lg.PartitionLog()
    for records in steps:
        log = lg.append(log, records, 1)
    whole = log.records
    log = lg.replicated(log, log.end)
    at, found = 0, []
    while rows := lg.read(log, at, 1):
        found += [row.record for row in rows]
        at = rows[-1].offset + 1
        if data.draw(st.booleans()):
            log = lg.compact(log, 0, readers=(at,))
    assert stored(tuple(found)) == stored(whole)


def test_compaction_of_a_whole_log_keeps_or_removes_tombstones() -> None:
    """Tombstones, and the marker of a transaction without remaining records (F-REPLAY-14)."""
    writer = Producer(7, 0)
    log = [offset(1, 1), offset(2, 2), offset(1, None), offset(2, 3, writer), end(writer, committed=False)]
    assert lg.left(log) == [log[1], log[2], log[4]]
    assert lg.left(log, tombstones=False) == [log[1]]


def test_a_compaction_is_due_when_half_of_the_log_is_new() -> None:
    log = log_of(*(offset(each, 1) for each in range(20)))
    assert not lg.due(log, 21)
    assert lg.due(log, 20)
    log = lg.compact(log, 0)
    for _ in range(19):
        log = lg.append(log, [offset(0, 2)], 1)
    assert not lg.due(lg.replicated(log, 39), 5)
    log = lg.append(log, [offset(0, 2)], 1)
    assert lg.due(lg.replicated(log, 40), 5)


@pytest.mark.parametrize("rounds", [1_500, pytest.param(25_000, marks=pytest.mark.all)])
def test_the_data_of_an_embedder_does_not_grow_and_gives_the_same_groups(rounds: int) -> None:
    """Each round has four requests, written immediately: a member of a consumer group joins, sends a heartbeat or
    leaves; offsets are committed, also of a group without members, and deleted. A new coordinator loads the live state.
    """
    store, state, written, longest = MemoryStore(), CLOSED, 0, 0
    choices: Choices = RandomChoices()

    async def feed(event: Event) -> object:
        nonlocal state, written, longest
        state, outcome = step(state, event, choices)
        if outcome.records:
            await store.append(0, outcome.records, leader_epoch=1)
            if store.due(0):
                await store.compact(0)
            written += len(outcome.records)
            longest = max(longest, len(store.records())) if written % 50 == 0 else longest
            await feed(Appended(event.at_ms, offset=state.end))
        return outcome.replies[0].body if outcome.replies else None

    async def play() -> None:
        await store.open()
        assert await store.lead(0) == 1
        await feed(TopicsChanged(0, (Topic("t", bytes(15) + b"\1", 4),), version=1))
        await feed(Load(0, leader_epoch=1, records=()))
        for now in range(1, rounds + 1):
            name = f"m{now % 3}"
            joins = now % 9 < 3
            beat = c.ConsumerGroupHeartbeatRequest(
                "g",
                member_id=name,
                member_epoch=0 if joins else -1,
                rebalance_timeout_ms=30_000 if joins else -1,
                subscribed_topic_names=("t",) if joins else None,
                topic_partitions=() if joins else None,
            )
            rows = (o.OffsetCommitRequestPartition(now % 4, committed_offset=now),)
            commit = o.OffsetCommitRequest(
                f"s{now % 5}", topics=(o.OffsetCommitRequestTopic(name="t", partitions=rows),)
            )
            for number, body in enumerate((beat, commit, commit, m.DeleteGroupsRequest((f"s{now % 7}",)))):
                version = m.VERSIONS[type(body)][1] if not isinstance(body, o.OffsetCommitRequest) else 9
                await feed(Request(now, id=4 * now + number, version=version, client_id="", client_host="", body=body))

    asyncio.run(play())
    again = replay(initial_state(Settings(), INTENDED), store.records())
    assert views(state).keys() == views(again).keys() != set()  # simple groups have only offsets
    assert not lost(Groups({}, consumer_views(state)), Groups({}, consumer_views(again)), store.records())
    assert _values(state) == _values(again)
    assert written > 2 * rounds
    assert longest < 2_200


CLOSED = initial_state(Settings(), INTENDED)


def _values(state: CoordinatorState) -> list[object]:
    return [(each.group_id, each.partition, each.offset) for each in offsets_view(state).committed]
