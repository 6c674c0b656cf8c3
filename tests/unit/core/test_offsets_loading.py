"""Offsets that are read from a log (11.5, 11.6)."""

import pytest

from fencepost import coordinator
from fencepost.coordinator.kernel.state import Status
from fencepost.protocol import offset_records as r
from fencepost.protocol.consumer_records import ConsumerGroupMetadataKey
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.events import Appended, Load, Request
from fencepost.protocol.messages import RequestBody
from fencepost.protocol.offset_messages import (
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from fencepost.protocol.profiles import INTENDED, KAFKA_4_4
from fencepost.protocol.records import GroupMetadataKey, Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState

from .offset_scene import PRODUCER, OffsetScene, without_places
from .scene import GROUP, FirstOf

BOTH = pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4], ids=lambda profile: profile.name)


def offset(partition: int = 0, value: int | None = 5, producer: int | None = None) -> Record:
    written = None if value is None else r.OffsetCommitValue(value, commit_timestamp=0)
    return Record(
        r.OffsetCommitKey(GROUP, "a", partition), written, None if producer is None else r.Producer(producer, 0)
    )


def end(*, committed: bool = True) -> Record:
    return Record(r.ControlKey(committed), r.ControlValue(0), r.Producer(PRODUCER, 0))


def loaded(profile, *records: Record) -> coordinator.CoordinatorState:
    state = coordinator.initial_state(Settings(), profile)
    return coordinator.step(state, Load(0, leader_epoch=1, records=records), FirstOf())[0]


@BOTH
def test_offsets_alone_are_a_simple_group(profile) -> None:
    """F-REPLAY-02, F-REPLAY-04, O-COMMIT-37."""
    state = loaded(profile, offset(0), offset(1), offset(0, 6), offset(1, None))
    view = coordinator.view(state, GROUP)
    assert view is not None
    assert (view.state, view.protocol_type) == (GroupState.EMPTY, None)
    assert [(row.partition, row.offset, row.record_offset) for row in coordinator.offsets_view(state).committed] == [
        (0, 6, 2)
    ]


@BOTH
def test_open_transactions_are_restored(profile) -> None:
    """F-REPLAY-03, F-REPLAY-05, O-TXN-08, F-SURV-01."""
    opened = loaded(profile, offset(0, 5, PRODUCER), offset(1, 5, 99))
    shown = coordinator.offsets_view(opened)
    assert [(row.partition, row.producer_id) for row in shown.pending] == [(0, PRODUCER), (1, 99)]
    assert shown.open_transactions == ((GROUP, "a", 0, PRODUCER), (GROUP, "a", 1, 99))
    assert GROUP in opened.groups
    over = loaded(profile, offset(0, 5, PRODUCER), offset(0, 4), end(), offset(1, 5, PRODUCER), end(committed=False))
    assert [row.offset for row in coordinator.offsets_view(over).committed] == [4]


@pytest.mark.parametrize(("profile", "loads"), [(INTENDED, True), (KAFKA_4_4, False)], ids=["intended", "kafka-4.4"])
def test_a_tombstone_of_the_group_after_an_offset(profile, loads: bool) -> None:
    """A compacted log may have lost earlier records (F-REPLAY-06)."""
    state = loaded(profile, offset(), Record(ConsumerGroupMetadataKey(GROUP), None), offset(1))
    assert (state.status is Status.ACTIVE) is loads
    assert (GROUP in state.groups) is loads


@BOTH
def test_offsets_stay_when_the_group_is_removed(profile) -> None:
    """Under ``intended``, remaining offsets create a simple group, so that tools can see them (G-DATA-42,
    F-REPLAY-16)."""
    state = loaded(profile, offset(), Record(GroupMetadataKey(GROUP), None))
    assert len(coordinator.offsets_view(state).committed) == 1
    assert (GROUP in state.groups) is (profile is INTENDED)


@BOTH
def test_part_by_part_or_whole(profile) -> None:
    """A later part of a log continues an earlier one (INV-REPLAY-01)."""
    scene = OffsetScene(profile)
    scene.commit({("a", 0): 1, ("b", 0): 1})
    scene.transact({("a", 0): 2, ("a", 1): 2})
    scene.commit({("a", 1): 3})
    scene.transact({("b", 1): 4}, producer=99)
    scene.end()
    scene.delete({"b": (0,)})
    fresh = coordinator.initial_state(Settings(), profile)
    whole = coordinator.replay(fresh, scene.records)
    assert whole.offsets == scene.state.offsets
    for cut in range(len(scene.records) + 1):
        parts = coordinator.replay(coordinator.replay(fresh, scene.records[:cut]), scene.records[cut:])
        assert parts.offsets == whole.offsets
        assert set(parts.groups) == set(whole.groups)
    assert without_places(whole) == without_places(scene.state)


def test_many_offsets_are_stored() -> None:
    """More entries than a small map holds."""
    records = [offset(number % 700, number, 3 if number % 3 == 0 else None) for number in range(2_000)]
    state = loaded(INTENDED, *records)
    shown = coordinator.offsets_view(state)
    plain = {number % 700: number for number in range(2_000) if number % 3}
    pending = {number % 700: number for number in range(0, 2_000, 3)}
    assert {row.partition: row.offset for row in shown.committed} == plain
    assert {row.partition: row.offset for row in shown.pending} == pending
    stored = coordinator.replay(coordinator.initial_state(Settings(), INTENDED), records)
    ended = coordinator.replay(stored, [Record(r.ControlKey(True), r.ControlValue(0), r.Producer(3, 0))])
    assert {row.partition: row.offset for row in coordinator.offsets_view(ended).committed} == {
        number % 700: number for number in range(2_000)
    }
    assert not ended.offsets.producers


def test_unreplicated_records_are_extended_and_not_read() -> None:
    """A load reads up to the end of the log; reads stop at the high watermark (F-LOAD-01, F-RT-11)."""
    records = (offset(0, 5), offset(1, 5), offset(0, 6), offset(1, None))
    for replicated, read in ((4, (6, -1)), (2, (5, 5)), (0, (-1, -1))):
        state = coordinator.initial_state(Settings(), INTENDED)
        load = Load(0, leader_epoch=1, records=records, committed=replicated)
        state, _ = coordinator.step(state, load, FirstOf())
        assert [row.offset for row in coordinator.offsets_view(state).committed] == [6]
        assert fetched(state) == read
        with pytest.raises(IllegalEvent):
            coordinator.step(state, Appended(0, offset=3), FirstOf())
        state, _ = coordinator.step(state, Appended(0, offset=4), FirstOf())
        assert fetched(state) == (6, -1)


def test_an_answer_waits_for_the_loaded_records() -> None:
    """A write after a load that is not completely replicated is answered after the loaded records are (F-RT-07)."""
    state = coordinator.initial_state(Settings(), INTENDED)
    state, _ = coordinator.step(state, Load(0, leader_epoch=1, records=(offset(0, 5),), committed=0), FirstOf())
    body = OffsetDeleteRequest(GROUP, ())
    state, outcome = coordinator.step(state, asked(1, 0, body), FirstOf())
    assert not outcome.records
    assert not outcome.replies
    state, outcome = coordinator.step(state, Appended(0, offset=1), FirstOf())
    assert [reply.request_id for reply in outcome.replies] == [1]


@pytest.mark.parametrize("committed", [-1, 2])
def test_more_than_there_is_cannot_be_replicated(committed: int) -> None:
    state = coordinator.initial_state(Settings(), INTENDED)
    with pytest.raises(IllegalEvent):
        coordinator.step(state, Load(0, leader_epoch=1, records=(offset(),), committed=committed), FirstOf())


def asked(number: int, version: int, body: RequestBody) -> Request:
    return Request(0, id=number, version=version, client_id="", client_host="", body=body)


def fetched(state: coordinator.CoordinatorState) -> tuple[int, ...]:
    topics = (OffsetFetchRequestTopic(name="a", partition_indexes=(0, 1)),)
    body = OffsetFetchRequest((OffsetFetchRequestGroup(GROUP, topics=topics),))
    _, outcome = coordinator.step(state, asked(9, 8, body), FirstOf())
    answer = outcome.replies[0].body
    assert isinstance(answer, OffsetFetchResponse)
    return tuple(each.committed_offset for each in answer.groups[0].topics[0].partitions)
