"""The heartbeat thread, the poll interval, leaving and closing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.member import ClassicMemberState, IllegalEvent
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

from .driver import T0, Driver


def cooperative():
    """The range assignor under a cooperative name: the member does not depend on how partitions are shared."""
    return replace(RangeAssignor(), protocols=frozenset(RebalanceProtocol))


def leaves(driver):
    return [
        command.body
        for command in driver.commands
        if isinstance(command, Send) and isinstance(command.body, LeaveGroupRequest)
    ]


def test_timers_start_when_join_group_is_answered():
    driver = Driver()
    driver.start()
    assert not driver.timers  # K-HB-01: nothing while the JoinGroup is parked (K-HB-06)
    driver.follow()
    assert {timer: at - driver.now for timer, at in driver.timers.items()} == {
        MemberTimer.HEARTBEAT: 3_000,
        MemberTimer.SESSION: 45_000,
        MemberTimer.POLL: 300_000,
    }


def test_a_slow_answer_does_not_hold_back_the_next_heartbeat():
    driver = Driver()
    driver.settle(T0)
    driver.wait(9_000)
    beats = [command for command in driver.commands if isinstance(command, Send)]
    assert len(beats) == 3  # K-HB-08
    driver.answer(HeartbeatResponse(ErrorCode.NONE), beats[0].request_id)
    assert driver.timers[MemberTimer.SESSION] == driver.now + 45_000


def test_heartbeats_continue_while_the_listener_runs():
    driver = Driver()
    driver.settle(T0)
    driver.do(EnforceRebalance(driver.now))
    driver.poll(listener=False)
    driver.wait(3_000)
    assert isinstance(driver.only(Send).body, HeartbeatRequest)  # K-HB-06


def test_silent_coordinator_is_forgotten_once_a_session_timeout():
    driver = Driver(heartbeat_interval_ms=40_000)
    driver.settle(T0)
    driver.wait(45_000)
    driver.only(Disconnect)
    driver.only(FindCoordinator)  # K-HB-02
    assert driver.member.state is ClassicMemberState.STABLE


def test_only_poll_feeds_the_poll_timer():
    driver = Driver(max_poll_interval_ms=10_000)
    driver.settle(T0)
    driver.wait(6_000)
    driver.poll()
    driver.wait(6_000)
    assert not leaves(driver)
    driver.wait(4_000)
    assert len(leaves(driver)) == 1  # K-HB-03, K-HB-09


def test_expired_poll_interval_leaves_and_keeps_the_assignment_until_the_next_poll():
    driver = Driver(max_poll_interval_ms=10_000)
    driver.settle(T0)
    driver.calls()
    driver.wait(10_000)
    (leave,) = leaves(driver)
    assert leave.members[0].member_id == "m"
    assert leave.members[0].group_instance_id is None  # K-LEAVE-01
    assert leave.members[0].reason == "consumer poll timeout has expired."
    assert driver.member.state is ClassicMemberState.UNJOINED
    assert driver.member.assignment == {T0}  # K-HB-04
    assert not driver.timers
    driver.poll()
    assert driver.calls() == [("lost", (T0,))]


def test_static_member_that_stalls_sends_nothing():
    driver = Driver(max_poll_interval_ms=10_000, group_instance_id="i")
    driver.settle(T0)
    driver.wait(10_000)
    assert not leaves(driver)
    assert driver.member.state is ClassicMemberState.UNJOINED


def test_unsubscribe_revokes_then_leaves():
    driver = Driver()
    driver.settle(T0)
    driver.calls()
    driver.do(Unsubscribe(driver.now))
    assert driver.calls() == [("revoked", (T0,))]  # K-CB-07
    assert not leaves(driver)
    driver.done()
    (leave,) = leaves(driver)
    assert leave.members[0].reason == "the consumer unsubscribed from all topics"
    driver.only(Returned)
    assert not driver.member.subscription.subscribed
    driver.answer(LeaveGroupResponse(ErrorCode.NONE))
    driver.poll()
    driver.none(Send)


def test_unsubscribe_during_a_rebalance_loses():
    driver = Driver(assignors=(cooperative(),))
    driver.settle(T0)
    driver.calls()
    driver.do(EnforceRebalance(driver.now))
    driver.poll()
    driver.do(Unsubscribe(driver.now))
    assert driver.calls() == [("lost", (T0,))]  # K-CB-07


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
    driver = Driver(group_instance_id=instance)
    driver.settle(T0)
    driver.calls()
    driver.do(Close(driver.now, option))
    assert driver.calls() == [("revoked", (T0,))]
    driver.done()
    assert bool(leaves(driver)) is sends
    assert driver.member.state is ClassicMemberState.UNJOINED
    assert not driver.timers
    with pytest.raises(IllegalEvent):
        driver.do(Poll(driver.now))


def test_close_commits_first():
    driver = Driver(auto_commit=True)
    driver.settle(T0)
    driver.calls()
    driver.do(Close(driver.now))
    commit = driver.only(Commit)
    driver.none(Returned, Send)
    with pytest.raises(IllegalEvent):
        driver.do(ListenerDone(driver.now))
    driver.do(CommitFinished(driver.now, commit_id=commit.commit_id, result=CommitResult.FAILED))
    assert driver.calls() == [("revoked", (T0,))]  # K-LEAVE-04
    driver.done()
    assert leaves(driver)


def test_listener_failing_at_close_is_thrown():
    driver = Driver()
    driver.settle(T0)
    driver.do(Close(driver.now))
    driver.done("no")
    assert driver.only(Returned).failure.kind is FailureKind.LISTENER


def test_close_without_coordinator_sends_nothing():
    driver = Driver()
    driver.settle(T0)
    driver.do(CoordinatorLost(driver.now))
    driver.do(Close(driver.now))
    driver.done()
    assert not leaves(driver)


def test_a_timer_that_is_not_set_is_refused():
    driver = Driver()
    with pytest.raises(IllegalEvent):
        driver.do(MemberTimerFired(driver.now, MemberTimer.POLL))
    driver.settle(T0)
    with pytest.raises(IllegalEvent):
        driver.do(MemberTimerFired(driver.now, MemberTimer.SESSION))


def test_an_answer_of_the_wrong_kind_is_refused():
    driver = Driver()
    driver.start()
    before = driver.member
    with pytest.raises(IllegalEvent):
        driver.do(
            Answered(driver.now, request_id=driver.member.sent[0].request_id, body=HeartbeatResponse(ErrorCode.NONE))
        )
    assert driver.member is before
