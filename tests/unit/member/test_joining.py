"""The join loop of the classic consumer: states, reasons to rejoin, and the order of listener calls."""

from __future__ import annotations

import pytest

from fencepost.member import ClassicMemberState, IllegalEvent
from fencepost.member.assignors.base import RebalanceProtocol
from fencepost.member.assignors.round_robin import RoundRobinAssignor
from fencepost.member.consumer_protocol import decode_subscription
from fencepost.member.events import (
    Call,
    Close,
    Command,
    Commit,
    CommitFinished,
    CommitResult,
    CoordinatorFound,
    CoordinatorLost,
    EnforceRebalance,
    FailureKind,
    FindCoordinator,
    Listener,
    LookupFailed,
    MemberTimer,
    MetadataChanged,
    RequestMetadata,
    Returned,
    Send,
    Subscribe,
    SubscribePattern,
    Unsubscribe,
)
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse

from .driver import CLUSTER, T0, T1, T2, Driver
from .fixed import Fixed

COOPERATIVE = (Fixed(name="cooperative-sticky", protocols=Fixed.COOPERATIVE),)


def test_first_join_asks_for_an_id_and_takes_the_states_in_order():
    driver = Driver()
    driver.start()
    first = driver.only(Send)
    assert isinstance(first.body, JoinGroupRequest)
    assert first.body.member_id == ""
    assert first.timeout_ms == 305_000  # K-HB-07
    driver.answer(JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id="m"))
    assert driver.member.state is ClassicMemberState.PREPARING_REBALANCE  # K-ST-17
    driver.poll()
    second = driver.only(Send).body
    assert (second.member_id, second.reason) == ("m", "need to re-join with the given member-id: m")
    driver.follow()
    assert isinstance(driver.only(Send).body, SyncGroupRequest)
    driver.sync(T0)
    assert driver.member.assignment == frozenset()  # adopted by the next poll
    driver.poll()
    assert driver.member.assignment == {T0}
    assert driver.calls() == [("assigned", (T0,))]  # K-CB-05; nothing was owned before (K-CB-02)
    assert driver.states == list(ClassicMemberState)  # K-ST-10…12


def test_offers_each_assignor_with_the_subscription_in_configuration_order():
    driver = Driver(assignors=(RoundRobinAssignor(), Fixed()), rack="a")
    driver.start("u", "t")
    offered = driver.only(Send).body.protocols
    assert [entry.name for entry in offered] == ["roundrobin", "fixed"]  # K-JOIN-12
    subscription = decode_subscription(offered[1].metadata)
    assert (subscription.topics, subscription.user_data, subscription.rack_id, subscription.generation_id) == (
        ("t", "u"),
        b"data",
        "a",
        -1,
    )


def test_follower_ignores_metadata():
    driver = Driver()
    driver.settle(T0)
    driver.do(MetadataChanged(driver.now, (Topic("t", b"\1" * 16, 4),)))
    driver.poll()
    driver.none(Send)


def test_changed_subscription_rejoins():
    driver = Driver()
    driver.settle(T0)
    driver.calls()
    driver.do(Subscribe(driver.now, frozenset({"u"})))
    driver.poll()
    assert driver.only(Send).body.reason == "subscription has changed"  # K-JOIN-03
    assert driver.calls() == [("revoked", (T0,))]
    assert driver.member.assignment == frozenset()


def test_enforced_rebalance_and_its_reason():
    driver = Driver()
    driver.settle(T0)
    driver.do(EnforceRebalance(driver.now, "because"))
    driver.poll()
    assert driver.only(Send).body.reason == "because"  # K-JOIN-01


def test_assignment_for_another_subscription_is_not_adopted():
    driver = Driver()
    driver.start()
    driver.calls()
    driver.follow()
    driver.sync(TopicPartition("u", 0))
    driver.poll()
    assert driver.calls() == [("revoked", ())]  # K-CB-08: only the join prepare of the rejoin
    assert driver.only(Send).body.reason == "received assignment does not match the current subscription"


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1\0"])
def test_unusable_assignment_is_thrown_by_every_poll(data):
    driver = Driver()
    driver.start()
    driver.follow()
    driver.answer(SyncGroupResponse(ErrorCode.NONE, protocol_type="consumer", protocol_name="range", assignment=data))
    for _ in range(2):
        failure = driver.poll()
        assert failure is not None
        assert failure.kind is FailureKind.ASSIGNMENT  # K-JOIN-14


# --- cooperative ---


def test_cooperative_member_keeps_possible_partitions_and_rejoins_after_revoking():
    driver = Driver(assignors=COOPERATIVE)
    driver.settle(T0, T1)
    assert driver.calls() == [("assigned", (T0, T1))]
    driver.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    driver.poll()
    assert driver.calls() == []  # K-CB-04: nothing to revoke yet
    subscription = decode_subscription(driver.only(Send).body.protocols[0].metadata)
    assert subscription.owned_partitions == (T0, T1)
    driver.follow(2)
    driver.sync(T1, T2)
    driver.poll()
    assert driver.calls() == [("revoked", (T0,)), ("assigned", (T2,))]  # K-CB-06, K-CB-13
    assert driver.member.assignment == {T1, T2}
    assert driver.only(Send).body.reason == "need to revoke partitions and re-join"


def test_cooperative_member_gets_a_callback_for_an_empty_addition():
    driver = Driver(assignors=COOPERATIVE)
    driver.settle(T0)
    driver.calls()
    driver.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    driver.poll()
    driver.follow(2)
    driver.sync(T0)
    driver.poll()
    assert driver.calls() == [("assigned", ())]


def test_cooperative_member_revokes_topics_that_it_dropped():
    driver = Driver(assignors=COOPERATIVE)
    driver.start("t", "u")
    driver.follow()
    driver.sync(T0, TopicPartition("u", 0))
    driver.poll()
    driver.calls()
    driver.do(Subscribe(driver.now, frozenset({"t"})))
    driver.poll()
    assert driver.calls() == [("revoked", (TopicPartition("u", 0),))]  # K-CB-04
    assert driver.member.assignment == {T0}


def test_cooperative_member_loses_everything_on_an_old_generation():
    driver = Driver(assignors=COOPERATIVE)
    driver.settle(T0, T1)
    driver.calls()
    driver.beat(ErrorCode.ILLEGAL_GENERATION)
    assert driver.member.generation.member_id == "m"
    assert driver.member.assignment == {T0, T1}  # until the next poll
    driver.poll()
    assert driver.calls() == [("lost", (T0, T1))]  # K-ERR-15
    assert decode_subscription(driver.only(Send).body.protocols[0].metadata).owned_partitions == ()


def test_retry_after_a_failed_sync_claims_old_partitions_with_the_new_generation():
    driver = Driver(assignors=COOPERATIVE)
    driver.settle(T0)
    driver.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    driver.poll()
    driver.follow(2)
    driver.answer(SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))
    driver.poll()
    subscription = decode_subscription(driver.only(Send).body.protocols[0].metadata)
    assert (subscription.owned_partitions, subscription.generation_id) == ((T0,), 2)  # K-ERR-16


# --- listeners that fail ---


def test_listener_failing_at_join_prepare_is_thrown_and_prepare_is_not_repeated():
    driver = Driver()
    driver.settle(T0)
    driver.do(EnforceRebalance(driver.now))
    driver.poll(listener=False)
    driver.calls()
    driver.done("no")
    assert driver.only(Returned).failure.kind is FailureKind.LISTENER  # K-CB-09
    assert driver.member.assignment == frozenset()
    assert driver.poll() is None
    assert isinstance(driver.only(Send).body, JoinGroupRequest)
    assert driver.calls() == []


def test_listener_failing_at_join_complete_is_thrown_until_it_does_not():
    driver = Driver()
    driver.start()
    driver.follow()
    driver.sync(T0)
    driver.calls()
    for partitions in ((T0,), (), ()):
        driver.poll(listener=False)
        assert driver.calls() == [("assigned", partitions)]  # K-CB-09: again, with nothing added
        driver.done("no")
        assert driver.only(Returned).failure.text == "no"
        assert driver.member.assignment == {T0}
    assert driver.poll() is None
    assert driver.member.join is None


def test_first_failure_of_a_join_complete_is_the_one_thrown():
    driver = Driver(assignors=COOPERATIVE)
    driver.settle(T0)
    driver.do(EnforceRebalance(driver.now))
    driver.poll()
    driver.follow(2)
    driver.sync(T1)
    driver.poll(listener=False)
    driver.done("first")
    driver.done("second")
    assert driver.only(Returned).failure.text == "first"
    assert driver.member.assignment == {T1}


def test_a_call_while_the_listener_runs_is_refused_and_changes_nothing():
    driver = Driver()
    driver.settle(T0)
    driver.do(EnforceRebalance(driver.now))
    driver.poll(listener=False)
    before = driver.member
    for event in (EnforceRebalance(driver.now), Unsubscribe(driver.now), Close(driver.now)):
        with pytest.raises(IllegalEvent):
            driver.do(event)
    assert driver.member is before


# --- patterns ---


def test_pattern_matches_whole_names_at_each_metadata_update():
    driver = Driver()
    driver.do(SubscribePattern(driver.now, "t.?"))
    driver.only(RequestMetadata)
    driver.do(CoordinatorFound(driver.now, node=1))
    driver.poll()
    driver.none(Send)  # not before the pattern was matched once
    driver.do(MetadataChanged(driver.now, (*CLUSTER, Topic("tall", b"\3" * 16, 1))))
    driver.poll()
    assert decode_subscription(driver.only(Send).body.protocols[0].metadata).topics == ("t",)
    driver.follow()
    driver.sync(T0)
    driver.poll()
    driver.do(MetadataChanged(driver.now, (*CLUSTER, Topic("t2", b"\3" * 16, 1))))
    driver.poll()
    assert driver.only(Send).body.reason == "subscription has changed"  # K-JOIN-15


def test_pattern_subscriber_adopts_a_topic_that_its_leader_saw_first():
    driver = Driver()
    driver.do(MetadataChanged(driver.now, CLUSTER))
    driver.do(SubscribePattern(driver.now, "t.?"))
    driver.do(CoordinatorFound(driver.now, node=1))
    driver.poll()
    driver.follow()
    driver.sync(T0, TopicPartition("t2", 0))
    driver.poll()
    assert driver.member.assignment == {T0, TopicPartition("t2", 0)}  # K-JOIN-16, K-JOIN-19
    driver.none(Send)
    assert driver.member.joined_topics == {"t", "t2"}


def test_one_kind_of_subscription_at_a_time():
    driver = Driver()
    driver.do(Subscribe(driver.now, frozenset({"t"})))
    with pytest.raises(ValueError, match="by name"):
        driver.do(SubscribePattern(driver.now, "t"))  # K-SUB-01
    driver.do(Unsubscribe(driver.now))
    driver.do(SubscribePattern(driver.now, "t"))
    with pytest.raises(ValueError, match="pattern"):
        driver.do(Subscribe(driver.now, frozenset({"t"})))


# --- the commit before a rejoin ---


def test_commit_before_rejoin_delays_the_join_and_marks_partitions():
    driver = Driver(auto_commit=True)
    driver.settle(T0)
    driver.calls()
    driver.do(EnforceRebalance(driver.now))
    driver.poll()
    commit = driver.only(Commit)
    assert commit.partitions == {T0}
    assert driver.member.subscription.pending_revocation == {T0}  # K-CB-01: eager
    driver.poll()
    driver.none(Commit, Send, Listener)
    driver.do(CommitFinished(driver.now, commit_id=commit.commit_id, result=CommitResult.RETRIABLE))
    driver.wait(100)
    driver.poll()
    commit = driver.only(Commit)
    driver.do(
        CommitFinished(driver.now, commit_id=commit.commit_id, result=CommitResult.FAILED)
    )  # a failure does not stop it
    driver.poll()
    assert isinstance(driver.only(Send).body, JoinGroupRequest)
    assert driver.calls() == [("revoked", (T0,))]


def test_commit_before_rejoin_is_awaited_up_to_the_rebalance_timeout():
    driver = Driver(auto_commit=True, max_poll_interval_ms=40_000)
    driver.settle(T0)
    driver.do(EnforceRebalance(driver.now))
    driver.poll()
    for _ in range(4):
        driver.wait(10_000)
        driver.poll()
    assert driver.calls()[-1] == ("revoked", (T0,))


# --- the coordinator ---


def test_lookup_backs_off_after_a_retriable_failure_and_throws_a_fatal_one():
    driver = Driver()
    driver.do(Subscribe(driver.now, frozenset({"t"})))
    driver.poll()
    driver.do(LookupFailed(driver.now, ErrorCode.COORDINATOR_NOT_AVAILABLE), jitter=1.2)
    assert driver.timers[MemberTimer.LOOKUP] == driver.now + 120  # K-FIND-01, K-HB-05
    driver.poll()
    assert driver.commands == (Returned(),)
    driver.wait(120)
    driver.poll()
    driver.do(LookupFailed(driver.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert driver.poll().error is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert driver.poll() is None


def asked(commands: tuple[Command, ...]) -> list[frozenset[str]]:
    return [each.topics for each in commands if isinstance(each, RequestMetadata)]


def test_the_poll_that_finds_a_look_up_failed_refreshes_metadata():
    driver = Driver()
    driver.do(Subscribe(driver.now, frozenset({"t"})))
    driver.poll()
    assert asked(driver.do(LookupFailed(driver.now, None))) == []  # K-FIND-01
    driver.poll()
    assert asked(driver.commands) == []
    driver.wait(100)
    driver.poll()
    assert asked(driver.commands) == [frozenset({"t"})]
    assert driver.only(FindCoordinator)
    driver.poll()
    assert asked(driver.commands) == []


def test_a_look_up_of_the_heartbeat_thread_in_between_leaves_nothing_to_refresh():
    driver = Driver()
    driver.settle(T0)
    assert FindCoordinator("g") in driver.do(CoordinatorLost(driver.now))
    driver.do(LookupFailed(driver.now, None))
    driver.wait(100)
    assert FindCoordinator("g") in driver.commands
    driver.poll()
    assert asked(driver.commands) == []  # K-FIND-01


def test_defaults_are_range_and_cooperative_sticky():
    assert [each.name for each in Driver().member.assignors] == ["range", "cooperative-sticky"]  # G-CFG-47
    assert Driver().member.settings.protocol is RebalanceProtocol.EAGER  # A-PROTO-02
    assert Call.LOST.value == "lost"
