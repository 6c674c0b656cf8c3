"""A broker with many coordinators: the coordinator of each request, and the assembly of answers."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost import host
from fencepost.aio.choices import RandomChoices
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.events import Appended, Load, Request, Topic, TopicsChanged, Unload
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.sharding import partition_for

PARTS = 4
NAMES = ("a", "b", "c", "d", "e", "f")  #: names with consecutive hashes (F-LOC-02), so that each partition has one
TOPIC = Topic("t", bytes(15) + b"\1", 4)


class Play:
    """A broker and its outputs; it leads the partitions 0 to 2, but not 3."""

    def __init__(self, led: tuple[int, ...] = (0, 1, 2)) -> None:
        self.broker = host.initial_broker(PARTS, Settings(), INTENDED)
        self.choices = RandomChoices()
        self.number = 0
        self.feed(TopicsChanged(0, (TOPIC,), version=1))
        for place in led:
            self.feed(host.OnPartition(place, Load(0, leader_epoch=1, records=())))

    def feed(self, event: Any) -> host.Served:
        self.broker, served = host.step(self.broker, event, self.choices)
        return served

    def ask(self, body: m.RequestBody, version: int | None = None) -> host.Served:
        self.number += 1
        newest = m.VERSIONS[type(body)][1] if version is None else version
        return self.feed(Request(0, id=self.number, version=newest, client_id="", client_host="", body=body))

    def answered(self, body: m.RequestBody, version: int | None = None) -> Any:
        """Return the answer when everything is replicated; the only outputs may be replies."""
        served = self.ask(body, version)
        replies = list(served.replies)
        for place, _ in served.parts:
            state = self.broker.coordinators[place]
            if state.end > state.committed:
                replies += self.feed(host.OnPartition(place, Appended(0, offset=state.end))).replies
        assert [reply.request_id for reply in replies] == [self.number]
        return replies[0].body


def commit(group: str, offset: int) -> o.OffsetCommitRequest:
    rows = (o.OffsetCommitRequestPartition(0, committed_offset=offset),)
    return o.OffsetCommitRequest(group, topics=(o.OffsetCommitRequestTopic(name="t", partitions=rows),))


def fill(play: Play) -> None:
    for place, name in enumerate(NAMES):
        code = play.answered(commit(name, place), 9).topics[0].partitions[0].error_code
        led = partition_for(name, PARTS) != 3
        assert code is (ErrorCode.NONE if led else ErrorCode.NOT_COORDINATOR), name


def test_a_group_is_in_the_partition_of_its_hash() -> None:
    """F-LOC-01, F-FIND-05."""
    play = Play()
    fill(play)
    for place, state in enumerate(play.broker.coordinators):
        assert set(state.offsets.groups) == {name for name in NAMES if partition_for(name, PARTS) == place != 3}
    assert {partition_for(name, PARTS) for name in NAMES} == set(range(PARTS))


def test_a_request_for_many_groups_gets_one_answer_in_its_order() -> None:
    """Each group has its own error; groups of another broker get NOT_COORDINATOR."""
    play = Play()
    fill(play)
    asked = ("f", "a", "c", "b", "e", "d")
    other = {name for name in asked if partition_for(name, PARTS) == 3}
    described = play.answered(m.DescribeGroupsRequest(asked)).groups
    assert tuple(row.group_id for row in described) == asked
    assert {row.group_id for row in described if row.error_code is ErrorCode.NOT_COORDINATOR} == other
    fetched = play.answered(o.OffsetFetchRequest(tuple(o.OffsetFetchRequestGroup(name) for name in asked)), 9).groups
    assert tuple(row.group_id for row in fetched) == asked
    assert {row.group_id for row in fetched if row.error_code is ErrorCode.NOT_COORDINATOR} == other
    for row in fetched:
        if row.group_id not in other:
            assert row.topics[0].partitions[0].committed_offset == NAMES.index(row.group_id)
    kept = play.answered(c.ConsumerGroupDescribeRequest(asked)).groups
    assert tuple(row.group_id for row in kept) == asked
    deleted = play.answered(m.DeleteGroupsRequest(asked)).results
    assert tuple(row.group_id for row in deleted) == asked
    assert {row.group_id for row in deleted if row.error_code is ErrorCode.NOT_COORDINATOR} == other
    assert not any(state.offsets.groups for state in play.broker.coordinators)
    assert not play.broker.waiting


@pytest.mark.parametrize("stable", [False, True])
def test_a_request_for_stable_offsets_of_many_is_one_in_each_partition(stable: bool) -> None:
    """Two groups in different partitions; one has an open transaction (O-FETCH-08)."""
    play = Play()
    fill(play)
    held, free = (name for name in NAMES[:4] if partition_for(name, PARTS) in (0, 1))
    rows = (o.OffsetCommitRequestPartition(0, committed_offset=7),)
    topics = (o.OffsetCommitRequestTopic(name="t", partitions=rows),)
    body = o.TxnOffsetCommitRequest(held, transactional_id="x", producer_id=1, producer_epoch=0, topics=topics)
    assert play.answered(body, 5).topics[0].partitions[0].error_code is ErrorCode.NONE
    asked = tuple(
        o.OffsetFetchRequestGroup(name, topics=(o.OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),))
        for name in (free, held)
    )
    fetched = play.answered(o.OffsetFetchRequest(asked, require_stable=stable), 9).groups
    answered = [(row.group_id, row.topics[0].partitions[0].error_code) for row in fetched]
    of_held = ErrorCode.UNSTABLE_OFFSET_COMMIT if stable else ErrorCode.NONE
    assert answered == [(free, ErrorCode.NONE), (held, of_held)]


def test_list_groups_skips_partitions_of_other_leaders() -> None:
    play = Play()
    fill(play)
    listed = play.answered(m.ListGroupsRequest())
    assert listed.error_code is ErrorCode.NONE
    assert sorted(row.group_id for row in listed.groups) == [name for name in NAMES if partition_for(name, PARTS) != 3]
    assert play.answered(m.DescribeGroupsRequest(())).groups == ()


def test_requests_that_wait_on_one_partition_end_when_it_is_lost() -> None:
    """The rows of the other partitions are unchanged (F-UNLOAD-01)."""
    play = Play()
    fill(play)
    assert not play.ask(m.DeleteGroupsRequest(("a", "b"))).replies
    first, second = partition_for("a", PARTS), partition_for("b", PARTS)
    end = play.broker.coordinators[first].end
    assert not play.feed(host.OnPartition(first, Appended(0, offset=end))).replies
    (reply,) = play.feed(host.OnPartition(second, Unload(0, leader_epoch=None))).replies
    codes = {row.group_id: row.error_code for row in reply.body.results}
    assert codes == {"a": ErrorCode.NONE, "b": ErrorCode.NOT_COORDINATOR}


def test_a_transaction_ends_in_each_partition_by_itself() -> None:
    """O-TXN-08."""
    play = Play()
    rows = (o.OffsetCommitRequestPartition(0, committed_offset=7),)
    topics = (o.OffsetCommitRequestTopic(name="t", partitions=rows),)
    names = [name for name in NAMES[:4] if partition_for(name, PARTS) != 3]
    for name in names:
        body = o.TxnOffsetCommitRequest(name, transactional_id="x", producer_id=1, producer_epoch=0, topics=topics)
        assert play.answered(body, 5).topics[0].partitions[0].error_code is ErrorCode.NONE
    marker = o.WriteTxnMarkerRequest(producer_id=1, producer_epoch=0, coordinator_epoch=0, committed=True)
    with pytest.raises(IllegalEvent, match="OnPartition"):
        play.ask(marker)
    place = partition_for(names[0], PARTS)
    play.feed(host.OnPartition(place, Request(0, id=99, version=1, client_id="", client_host="", body=marker)))
    for name in names:
        group = play.broker.coordinators[partition_for(name, PARTS)].offsets.of(name)
        assert bool(group.committed) is (name == names[0])
        assert bool(group.pending) is (name != names[0])


def test_find_coordinator_returns_the_leader() -> None:
    """F-FIND-01 to 04, F-FIND-06."""
    node = host.Endpoint(7, "h", 9092)
    leaders = {partition_for("a", PARTS): node}
    asked = host.FindCoordinatorRequest(("b", "a", "c"))
    rows = host.find_coordinator(asked, 4, leaders, PARTS, frozenset({"c"})).coordinators
    assert [(row.key, row.node_id, row.error_code) for row in rows] == [
        ("b", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("a", 7, ErrorCode.NONE),
        ("c", -1, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ]
    (row,) = host.find_coordinator(host.FindCoordinatorRequest(("a",)), 0, None, PARTS).coordinators
    assert row.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    for version, request in ((3, asked), (7, asked), (4, host.FindCoordinatorRequest(("a",), key_type=1))):
        with pytest.raises(IllegalEvent):
            host.find_coordinator(request, version, leaders, PARTS)


def test_a_wrong_partition_is_rejected() -> None:
    with pytest.raises(IllegalEvent, match="must be from 0 to 3"):
        Play().feed(host.OnPartition(4, Unload(0, leader_epoch=None)))
    with pytest.raises(ValueError, match="partitions must be >= 1"):
        host.initial_broker(0, Settings(), INTENDED)
