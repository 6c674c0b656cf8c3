"""Member and reader as one consumer: which half gets each event, and in which order (K-POLL-01, K-LEAVE-04,
K-FIND-01)."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.member import Member, MemberSettings
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.consumer import ConsumerMember, ConsumerSettings
from fencepost.member.consumer_protocol import Assignment, encode_assignment
from fencepost.member.events import (
    Answered,
    CancelMemberTimer,
    Close,
    CoordinatorFound,
    CoordinatorLost,
    Disconnect,
    EnforceRebalance,
    FindCoordinator,
    Listener,
    ListenerDone,
    MetadataChanged,
    Poll,
    PollPart,
    RequestLost,
    Returned,
    Send,
    SetMemberTimer,
    Subscribe,
    Unsubscribe,
)
from fencepost.member.state import ClassicMemberState
from fencepost.member.step import step as member_step
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import (
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from fencepost.protocol.settings import BadSettings
from fencepost_consumer import Client, Reader, ReaderSettings
from fencepost_consumer.consumer import Consumer, consumer_of, step
from fencepost_consumer.events import (
    Assign,
    CallReturned,
    CancelReaderTimer,
    CommitAsync,
    CommitCallback,
    CommitSync,
    LeadersChanged,
    OffsetAndMetadata,
    PassToMember,
    PollReturned,
    ReaderTimer,
    ReaderTimerFired,
    Refused,
    Seek,
    SendToLeader,
    SetReaderTimer,
    Wakeup,
)
from fencepost_consumer.partition import Leader

from .driver import EARLIEST, IDS, T0, T1

NOTHING = OffsetFetchResponse((OffsetFetchResponseGroup("g", topics=()),))
FIVE = ((T0, OffsetAndMetadata(5)),)


class Whole:
    """A classic consumer with automatic commits, in a stable generation, that owns T0 and T1."""

    def __init__(self) -> None:
        member = Member(MemberSettings("g", auto_commit=True, assignors=(RangeAssignor(),)))
        reader = Reader(ReaderSettings("g", auto_commit=True, reset=EARLIEST))
        self.consumer: Consumer = consumer_of(member, reader)
        self.sent: list[Send | SendToLeader] = []
        self.commands: tuple[Any, ...] = ()
        self.do(Subscribe(0, frozenset({"t"})))
        self.do(MetadataChanged(0, ()))
        self.do(LeadersChanged(0, ((T0, Leader(1, 0)), (T1, Leader(1, 0))), IDS))
        self.do(Poll(0))
        self.do(CoordinatorFound(0, node=9))
        self.do(Poll(0))
        self.join(1)

    def join(self, generation: int, now: int = 0) -> None:
        self.answer(
            JoinGroupRequest,
            JoinGroupResponse(
                ErrorCode.NONE,
                generation_id=generation,
                protocol_type="consumer",
                protocol_name="range",
                leader="x",
                member_id="m",
            ),
        )
        data = encode_assignment(Assignment((T0, T1)))
        number = self.sent.pop().request_id
        body = SyncGroupResponse(ErrorCode.NONE, protocol_type="consumer", protocol_name="range", assignment=data)
        self.do(Answered(now, request_id=number, body=body))
        self.do(Poll(now))
        while any(isinstance(each, Listener) for each in self.commands):
            self.do(ListenerDone(now))

    def do(self, event: Any) -> tuple[Any, ...]:
        self.consumer, self.commands = step(self.consumer, event)
        self.sent += [each for each in self.commands if isinstance(each, Send | SendToLeader)]
        return self.commands

    def kinds(self) -> list[type]:
        timers = (SetMemberTimer, CancelMemberTimer, SetReaderTimer, CancelReaderTimer)
        return [type(each) for each in self.commands if not isinstance(each, timers)]

    def request(self, kind: type) -> Send | SendToLeader:
        found = next(each for each in self.sent if isinstance(each.body, kind))
        self.sent.remove(found)
        return found

    def answer(self, kind: type, body: Any, now: int = 0) -> None:
        self.do(Answered(now, request_id=self.request(kind).request_id, body=body))

    def commit_answer(self, error: ErrorCode = ErrorCode.NONE, now: int = 0) -> None:
        rows = OffsetCommitResponsePartition(0, error)
        topics = (OffsetCommitResponseTopic(name="t", partitions=(rows,)),)
        self.answer(OffsetCommitRequest, OffsetCommitResponse(topics), now)


def test_halves_of_different_consumers_do_not_go_together() -> None:
    with pytest.raises(BadSettings, match="these differ: group_id, auto_commit"):
        consumer_of(Member(MemberSettings("g")), Reader(ReaderSettings("h", auto_commit=True)))
    with pytest.raises(BadSettings, match="does not fit ReaderSettings"):
        consumer_of(ConsumerMember(ConsumerSettings("g"), "m"), Reader(ReaderSettings("g")))
    consumer_of(ConsumerMember(ConsumerSettings("g"), "m"), Reader(ReaderSettings("g", client=Client.CONSUMER)))


def test_a_poll_ends_with_the_readers_part() -> None:
    whole = Whole()
    assert whole.kinds()[-1] is PollReturned
    assert Returned not in whole.kinds()
    assert set(whole.consumer.reader.partitions) == {T0, T1}
    assert isinstance(whole.request(OffsetFetchRequest), Send)


def test_requests_of_both_are_distinguished() -> None:
    whole = Whole()
    fetch = whole.request(OffsetFetchRequest)
    assert fetch.request_id % 2 == 1
    with pytest.raises(IllegalEvent, match="HeartbeatResponse does not answer a request about offsets"):
        whole.do(Answered(0, request_id=fetch.request_id, body=HeartbeatResponse(ErrorCode.NONE)))
    whole.do(RequestLost(0, request_id=fetch.request_id))
    assert whole.consumer.reader.coordinator.node is None
    assert whole.consumer.member.coordinator.node is None  # one connection


def test_one_look_up_serves_both() -> None:
    whole = Whole()
    whole.do(CoordinatorLost(0))
    assert whole.kinds().count(FindCoordinator) == 1  # for the heartbeats
    whole.do(CommitAsync(0, FIVE, 1))
    assert FindCoordinator not in whole.kinds()
    whole.do(Poll(0))
    assert FindCoordinator not in whole.kinds()
    whole.do(CoordinatorFound(0, node=9))
    assert whole.consumer.member.coordinator.node == whole.consumer.reader.coordinator.node == 9
    assert whole.request(OffsetCommitRequest)


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_refused_commit_puts_the_member_out(error: ErrorCode) -> None:
    """K-OFF-13."""
    whole = Whole()
    whole.do(CommitSync(0, FIVE))
    whole.commit_answer(error)
    assert whole.consumer.member.state is ClassicMemberState.UNJOINED
    assert PassToMember not in whole.kinds()
    assert whole.consumer.reader.membership.epoch == -1


def test_a_coordinator_that_has_moved_is_forgotten_by_both() -> None:
    """K-OFF-11."""
    whole = Whole()
    whole.do(CommitSync(0, FIVE))
    whole.commit_answer(ErrorCode.NOT_COORDINATOR)
    assert Disconnect in whole.kinds()
    assert whole.consumer.member.coordinator.node is None


def test_before_a_rebalance_positions_are_committed() -> None:
    """The member waits for the commit (K-CB-01)."""
    whole = Whole()
    whole.do(Seek(0, T0, 7))
    whole.do(CommitSync(0, FIVE))
    whole.commit_answer(ErrorCode.REBALANCE_IN_PROGRESS)
    whole.do(Poll(0))
    sent = whole.request(OffsetCommitRequest)
    assert isinstance(sent.body, OffsetCommitRequest)
    assert sent.body.topics[0].partitions[0].committed_offset == 7
    assert not whole.consumer.reader.fetchable(T0)
    assert not [each for each in whole.sent if isinstance(each.body, JoinGroupRequest)]
    whole.sent.append(sent)
    whole.commit_answer()
    whole.do(Poll(0))
    assert Listener in whole.kinds()
    whole.do(ListenerDone(0))
    assert whole.request(JoinGroupRequest)
    assert whole.consumer.reader.partitions == {}


def test_a_close_commits_leaves_and_runs_the_last_callbacks() -> None:
    """K-LEAVE-04."""
    whole = Whole()
    whole.do(Seek(0, T0, 7))
    whole.answer(OffsetFetchRequest, NOTHING)
    whole.do(CommitAsync(0, FIVE, 1))
    whole.do(Close(0))
    whole.commit_answer()
    assert Listener not in whole.kinds()
    whole.commit_answer()
    assert whole.kinds() == [CommitCallback, Listener]
    whole.do(ListenerDone(0))
    assert CallReturned not in whole.kinds()  # it waits until no request to the coordinator is outstanding
    whole.answer(LeaveGroupRequest, LeaveGroupResponse(ErrorCode.NONE))
    assert whole.kinds()[-1] is CallReturned
    with pytest.raises(IllegalEvent, match="closed"):
        whole.do(Poll(0))


def test_unsubscribe_then_manual_assignment() -> None:
    whole = Whole()
    with pytest.raises(Refused, match="cannot mix subscribing"):
        whole.do(Assign(0, (T0,)))
    whole.do(Unsubscribe(0))
    whole.do(ListenerDone(0))
    assert whole.kinds()[-1] is Returned
    whole.do(Assign(0, (T0,)))
    whole.do(Poll(0))
    assert whole.kinds()[-1] is PollReturned
    assert whole.consumer.reader.mode.value == "manual"
    whole.do(Unsubscribe(0))
    assert whole.kinds()[-1] is Returned


def test_an_assignment_that_is_adopted_restarts_the_interval() -> None:
    """K-CB-05, K-CB-13."""
    whole = Whole()
    whole.do(CommitSync(1_000, FIVE))
    whole.commit_answer(ErrorCode.ILLEGAL_GENERATION)
    due = whole.consumer.reader.commit_due_ms
    whole.do(Poll(4_000))
    whole.do(ListenerDone(4_000))
    assert whole.consumer.reader.commit_due_ms == due
    whole.join(2, 4_500)
    assert whole.consumer.reader.commit_due_ms == 9_500


def test_an_abandoned_commit_still_informs_the_member() -> None:
    """The state of the member in the answer counts, even if the call gave up (K-OFF-13)."""
    whole = Whole()
    whole.do(CommitSync(0, FIVE, 150))
    whole.do(ReaderTimerFired(200, ReaderTimer.CALL))
    assert whole.kinds()[-1] is CallReturned
    assert whole.consumer.member.state is ClassicMemberState.STABLE
    whole.commit_answer(ErrorCode.ILLEGAL_GENERATION, now=300)
    assert whole.consumer.member.state is ClassicMemberState.UNJOINED


def test_a_commit_of_nothing_before_a_rejoin_costs_no_poll() -> None:
    """It ends immediately, and the poll continues (K-CB-01)."""
    whole = Whole()
    whole.do(EnforceRebalance(0, "asked"))
    whole.do(Poll(0))
    assert Listener in whole.kinds()


def test_a_wakeup_ends_a_poll_before_its_member_has_a_turn() -> None:
    """K-POLL-06."""
    whole = Whole()
    whole.do(EnforceRebalance(0, "asked"))
    whole.do(Wakeup(0))
    whole.do(Poll(0))
    assert whole.kinds() == [PollReturned]
    whole.do(Poll(0))
    assert Listener in whole.kinds()


def test_a_close_outside_of_the_group_calls_back_first() -> None:
    """The commit of a close fails without a request, and runs callbacks nevertheless (K-LEAVE-04, K-OFF-02)."""
    whole = Whole()
    whole.do(CommitSync(0, FIVE))
    whole.commit_answer(ErrorCode.UNKNOWN_MEMBER_ID)
    whole.do(CommitAsync(0, FIVE, 1))
    assert CommitCallback not in whole.kinds()
    whole.do(Close(0))
    assert whole.kinds() == [CommitCallback, Listener]
    assert not [each for each in whole.sent if isinstance(each.body, OffsetCommitRequest)]


def test_a_poll_that_continues_looks_at_no_newer_metadata() -> None:
    """Metadata that came while a listener ran are for the next poll (K-CB-01, K-JOIN-18)."""
    member = Whole().consumer.member
    assert isinstance(member, Member)
    member, _ = member_step(member, MetadataChanged(0, (Topic("t", b"\1" * 16, 2),)))
    resumed, _ = member_step(member, Poll(0, PollPart.RESUMED))
    assert resumed.snapshot == member.snapshot
    polled, _ = member_step(member, Poll(0))
    assert polled.snapshot.topics == (("t", (frozenset(), frozenset())),)
