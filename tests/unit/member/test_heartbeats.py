"""The heartbeat thread, the poll interval, leaving and closing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.member import IllegalEvent, MemberState
from fencepost.member.assignors.base import RebalanceProtocol
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.events import (
    Answered,
    Close,
    CloseOption,
    Commit,
    CommitFinished,
    CommitResult,
    CoordinatorLost,
    Disconnect,
    EnforceRebalance,
    FailureKind,
    FindCoordinator,
    ListenerDone,
    MemberTimer,
    MemberTimerFired,
    Poll,
    Returned,
    Send,
    Unsubscribe,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatRequest, HeartbeatResponse, LeaveGroupRequest, LeaveGroupResponse

from .desk import T0, Desk


def cooperative():
    """The range assignor under a cooperative name: the member does not depend on how partitions are shared."""
    return replace(RangeAssignor(), protocols=frozenset(RebalanceProtocol))


def leaves(desk):
    return [
        command.body
        for command in desk.commands
        if isinstance(command, Send) and isinstance(command.body, LeaveGroupRequest)
    ]


def test_timers_start_when_join_group_is_answered():
    desk = Desk()
    desk.start()
    assert not desk.timers  # K-HB-01: nothing while the JoinGroup is parked (K-HB-06)
    desk.follow()
    assert {timer: at - desk.now for timer, at in desk.timers.items()} == {
        MemberTimer.HEARTBEAT: 3_000,
        MemberTimer.SESSION: 45_000,
        MemberTimer.POLL: 300_000,
    }


def test_a_slow_answer_does_not_hold_back_the_next_heartbeat():
    desk = Desk()
    desk.settle(T0)
    desk.wait(9_000)
    beats = [command for command in desk.commands if isinstance(command, Send)]
    assert len(beats) == 3  # K-HB-08
    desk.answer(HeartbeatResponse(ErrorCode.NONE), beats[0].request_id)
    assert desk.timers[MemberTimer.SESSION] == desk.now + 45_000


def test_heartbeats_continue_while_the_listener_runs():
    desk = Desk()
    desk.settle(T0)
    desk.do(EnforceRebalance(desk.now))
    desk.poll(listener=False)
    desk.wait(3_000)
    assert isinstance(desk.only(Send).body, HeartbeatRequest)  # K-HB-06


def test_silent_coordinator_is_forgotten_once_a_session_timeout():
    desk = Desk(heartbeat_interval_ms=40_000)
    desk.settle(T0)
    desk.wait(45_000)
    desk.only(Disconnect)
    desk.only(FindCoordinator)  # K-HB-02
    assert desk.member.state is MemberState.STABLE


def test_only_poll_feeds_the_poll_timer():
    desk = Desk(max_poll_interval_ms=10_000)
    desk.settle(T0)
    desk.wait(6_000)
    desk.poll()
    desk.wait(6_000)
    assert not leaves(desk)
    desk.wait(4_000)
    assert len(leaves(desk)) == 1  # K-HB-03, K-HB-09


def test_expired_poll_interval_leaves_and_keeps_the_assignment_until_the_next_poll():
    desk = Desk(max_poll_interval_ms=10_000)
    desk.settle(T0)
    desk.calls()
    desk.wait(10_000)
    (leave,) = leaves(desk)
    assert leave.members[0].member_id == "m"
    assert leave.members[0].group_instance_id is None  # K-LEAVE-01
    assert leave.members[0].reason == "consumer poll timeout has expired."
    assert desk.member.state is MemberState.UNJOINED
    assert desk.member.assignment == {T0}  # K-HB-04
    assert not desk.timers
    desk.poll()
    assert desk.calls() == [("lost", (T0,))]


def test_static_member_that_stalls_sends_nothing():
    desk = Desk(max_poll_interval_ms=10_000, group_instance_id="i")
    desk.settle(T0)
    desk.wait(10_000)
    assert not leaves(desk)
    assert desk.member.state is MemberState.UNJOINED


def test_unsubscribe_revokes_then_leaves():
    desk = Desk()
    desk.settle(T0)
    desk.calls()
    desk.do(Unsubscribe(desk.now))
    assert desk.calls() == [("revoked", (T0,))]  # K-CB-07
    assert not leaves(desk)
    desk.done()
    (leave,) = leaves(desk)
    assert leave.members[0].reason == "the consumer unsubscribed from all topics"
    desk.only(Returned)
    assert not desk.member.subscription.subscribed
    desk.answer(LeaveGroupResponse(ErrorCode.NONE))
    desk.poll()
    desk.none(Send)


def test_unsubscribe_during_a_rebalance_loses():
    desk = Desk(assignors=(cooperative(),))
    desk.settle(T0)
    desk.calls()
    desk.do(EnforceRebalance(desk.now))
    desk.poll()
    desk.do(Unsubscribe(desk.now))
    assert desk.calls() == [("lost", (T0,))]  # K-CB-07


@pytest.mark.parametrize(
    ("option", "instance", "sends"),
    [
        (CloseOption.DEFAULT, None, True),
        (CloseOption.DEFAULT, "i", False),  # K-LEAVE-03
        (CloseOption.LEAVE_GROUP, None, True),
        (CloseOption.LEAVE_GROUP, "i", True),
        (CloseOption.REMAIN_IN_GROUP, None, False),  # K-LEAVE-05
        (CloseOption.REMAIN_IN_GROUP, "i", False),
    ],
)
def test_close_options(option, instance, sends):
    desk = Desk(group_instance_id=instance)
    desk.settle(T0)
    desk.calls()
    desk.do(Close(desk.now, option))
    assert desk.calls() == [("revoked", (T0,))]
    desk.done()
    assert bool(leaves(desk)) is sends
    assert desk.member.state is MemberState.UNJOINED
    assert not desk.timers
    with pytest.raises(IllegalEvent):
        desk.do(Poll(desk.now))


def test_close_commits_first():
    desk = Desk(auto_commit=True)
    desk.settle(T0)
    desk.calls()
    desk.do(Close(desk.now))
    commit = desk.only(Commit)
    desk.none(Returned, Send)
    with pytest.raises(IllegalEvent):
        desk.do(ListenerDone(desk.now))
    desk.do(CommitFinished(desk.now, commit_id=commit.commit_id, result=CommitResult.FAILED))
    assert desk.calls() == [("revoked", (T0,))]  # K-LEAVE-04
    desk.done()
    assert leaves(desk)


def test_listener_failing_at_close_is_thrown():
    desk = Desk()
    desk.settle(T0)
    desk.do(Close(desk.now))
    desk.done("no")
    assert desk.only(Returned).failure.kind is FailureKind.LISTENER


def test_close_without_coordinator_sends_nothing():
    desk = Desk()
    desk.settle(T0)
    desk.do(CoordinatorLost(desk.now))
    desk.do(Close(desk.now))
    desk.done()
    assert not leaves(desk)


def test_a_timer_that_is_not_set_is_refused():
    desk = Desk()
    with pytest.raises(IllegalEvent):
        desk.do(MemberTimerFired(desk.now, MemberTimer.POLL))
    desk.settle(T0)
    with pytest.raises(IllegalEvent):
        desk.do(MemberTimerFired(desk.now, MemberTimer.SESSION))


def test_an_answer_of_the_wrong_kind_is_refused():
    desk = Desk()
    desk.start()
    before = desk.member
    with pytest.raises(IllegalEvent):
        desk.do(Answered(desk.now, request_id=desk.member.sent[0].request_id, body=HeartbeatResponse(ErrorCode.NONE)))
    assert desk.member is before
