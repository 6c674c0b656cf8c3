"""The join loop of the classic consumer: states, reasons to rejoin, and the order of listener calls."""

from __future__ import annotations

import pytest

from fencepost.member import IllegalEvent, MemberState
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

from .desk import CLUSTER, T0, T1, T2, Desk
from .fixed import Fixed

COOPERATIVE = (Fixed(name="cooperative-sticky", protocols=Fixed.COOPERATIVE),)


def test_first_join_asks_for_an_id_and_takes_the_states_in_order():
    desk = Desk()
    desk.start()
    first = desk.only(Send)
    assert isinstance(first.body, JoinGroupRequest)
    assert first.body.member_id == ""
    assert first.timeout_ms == 305_000  # K-HB-07
    desk.answer(JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id="m"))
    assert desk.member.state is MemberState.PREPARING_REBALANCE  # K-ST-17
    desk.poll()
    second = desk.only(Send).body
    assert (second.member_id, second.reason) == ("m", "need to re-join with the given member-id: m")
    desk.follow()
    assert isinstance(desk.only(Send).body, SyncGroupRequest)
    desk.sync(T0)
    assert desk.member.assignment == frozenset()  # adopted by the next poll
    desk.poll()
    assert desk.member.assignment == {T0}
    assert desk.calls() == [("assigned", (T0,))]  # K-CB-05; nothing was owned before (K-CB-02)
    assert desk.states == list(MemberState)  # K-ST-10…12


def test_offers_each_assignor_with_the_subscription_in_configuration_order():
    desk = Desk(assignors=(RoundRobinAssignor(), Fixed()), rack="a")
    desk.start("u", "t")
    offered = desk.only(Send).body.protocols
    assert [entry.name for entry in offered] == ["roundrobin", "fixed"]  # K-JOIN-12
    told = decode_subscription(offered[1].metadata)
    assert (told.topics, told.user_data, told.rack_id, told.generation_id) == (("t", "u"), b"data", "a", -1)


def test_follower_ignores_metadata():
    desk = Desk()
    desk.settle(T0)
    desk.do(MetadataChanged(desk.now, (Topic("t", b"\1" * 16, 4),)))
    desk.poll()
    desk.none(Send)


def test_changed_subscription_rejoins():
    desk = Desk()
    desk.settle(T0)
    desk.calls()
    desk.do(Subscribe(desk.now, frozenset({"u"})))
    desk.poll()
    assert desk.only(Send).body.reason == "subscription has changed"  # K-JOIN-03
    assert desk.calls() == [("revoked", (T0,))]
    assert desk.member.assignment == frozenset()


def test_enforced_rebalance_and_its_reason():
    desk = Desk()
    desk.settle(T0)
    desk.do(EnforceRebalance(desk.now, "because"))
    desk.poll()
    assert desk.only(Send).body.reason == "because"  # K-JOIN-01


def test_assignment_for_another_subscription_is_not_adopted():
    desk = Desk()
    desk.start()
    desk.calls()
    desk.follow()
    desk.sync(TopicPartition("u", 0))
    desk.poll()
    assert desk.calls() == [("revoked", ())]  # K-CB-08: only the join prepare of the rejoin
    assert desk.only(Send).body.reason == "received assignment does not match the current subscription"


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1\0"])
def test_unusable_assignment_is_thrown_by_every_poll(data):
    desk = Desk()
    desk.start()
    desk.follow()
    desk.answer(SyncGroupResponse(ErrorCode.NONE, protocol_type="consumer", protocol_name="range", assignment=data))
    for _ in range(2):
        failure = desk.poll()
        assert failure is not None
        assert failure.kind is FailureKind.ASSIGNMENT  # K-JOIN-14


# --- cooperative ---


def test_cooperative_member_keeps_possible_partitions_and_rejoins_after_revoking():
    desk = Desk(assignors=COOPERATIVE)
    desk.settle(T0, T1)
    assert desk.calls() == [("assigned", (T0, T1))]
    desk.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    desk.poll()
    assert desk.calls() == []  # K-CB-04: nothing to revoke yet
    told = decode_subscription(desk.only(Send).body.protocols[0].metadata)
    assert told.owned_partitions == (T0, T1)
    desk.follow(2)
    desk.sync(T1, T2)
    desk.poll()
    assert desk.calls() == [("revoked", (T0,)), ("assigned", (T2,))]  # K-CB-06, K-CB-13
    assert desk.member.assignment == {T1, T2}
    assert desk.only(Send).body.reason == "need to revoke partitions and re-join"


def test_cooperative_member_gets_a_callback_for_an_empty_addition():
    desk = Desk(assignors=COOPERATIVE)
    desk.settle(T0)
    desk.calls()
    desk.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    desk.poll()
    desk.follow(2)
    desk.sync(T0)
    desk.poll()
    assert desk.calls() == [("assigned", ())]


def test_cooperative_member_gives_up_topics_that_it_dropped():
    desk = Desk(assignors=COOPERATIVE)
    desk.start("t", "u")
    desk.follow()
    desk.sync(T0, TopicPartition("u", 0))
    desk.poll()
    desk.calls()
    desk.do(Subscribe(desk.now, frozenset({"t"})))
    desk.poll()
    assert desk.calls() == [("revoked", (TopicPartition("u", 0),))]  # K-CB-04
    assert desk.member.assignment == {T0}


def test_cooperative_member_loses_everything_on_an_old_generation():
    desk = Desk(assignors=COOPERATIVE)
    desk.settle(T0, T1)
    desk.calls()
    desk.beat(ErrorCode.ILLEGAL_GENERATION)
    assert desk.member.generation.member_id == "m"
    assert desk.member.assignment == {T0, T1}  # until the next poll
    desk.poll()
    assert desk.calls() == [("lost", (T0, T1))]  # K-ERR-15
    assert decode_subscription(desk.only(Send).body.protocols[0].metadata).owned_partitions == ()


def test_retry_after_a_failed_sync_claims_old_partitions_with_the_new_generation():
    desk = Desk(assignors=COOPERATIVE)
    desk.settle(T0)
    desk.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    desk.poll()
    desk.follow(2)
    desk.answer(SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))
    desk.poll()
    told = decode_subscription(desk.only(Send).body.protocols[0].metadata)
    assert (told.owned_partitions, told.generation_id) == ((T0,), 2)  # K-ERR-16


# --- listeners that fail ---


def test_listener_failing_at_join_prepare_is_thrown_and_prepare_is_not_repeated():
    desk = Desk()
    desk.settle(T0)
    desk.do(EnforceRebalance(desk.now))
    desk.poll(listener=False)
    desk.calls()
    desk.done("no")
    assert desk.only(Returned).failure.kind is FailureKind.LISTENER  # K-CB-09
    assert desk.member.assignment == frozenset()
    assert desk.poll() is None
    assert isinstance(desk.only(Send).body, JoinGroupRequest)
    assert desk.calls() == []


def test_listener_failing_at_join_complete_is_thrown_until_it_does_not():
    desk = Desk()
    desk.start()
    desk.follow()
    desk.sync(T0)
    desk.calls()
    for partitions in ((T0,), (), ()):
        desk.poll(listener=False)
        assert desk.calls() == [("assigned", partitions)]  # K-CB-09: again, with nothing added
        desk.done("no")
        assert desk.only(Returned).failure.text == "no"
        assert desk.member.assignment == {T0}
    assert desk.poll() is None
    assert desk.member.join is None


def test_first_failure_of_a_join_complete_is_the_one_thrown():
    desk = Desk(assignors=COOPERATIVE)
    desk.settle(T0)
    desk.do(EnforceRebalance(desk.now))
    desk.poll()
    desk.follow(2)
    desk.sync(T1)
    desk.poll(listener=False)
    desk.done("first")
    desk.done("second")
    assert desk.only(Returned).failure.text == "first"
    assert desk.member.assignment == {T1}


def test_a_call_while_the_listener_runs_is_refused_and_changes_nothing():
    desk = Desk()
    desk.settle(T0)
    desk.do(EnforceRebalance(desk.now))
    desk.poll(listener=False)
    before = desk.member
    for event in (EnforceRebalance(desk.now), Unsubscribe(desk.now), Close(desk.now)):
        with pytest.raises(IllegalEvent):
            desk.do(event)
    assert desk.member is before


# --- patterns ---


def test_pattern_matches_whole_names_at_each_metadata_update():
    desk = Desk()
    desk.do(SubscribePattern(desk.now, "t.?"))
    desk.only(RequestMetadata)
    desk.do(CoordinatorFound(desk.now, node=1))
    desk.poll()
    desk.none(Send)  # not before the pattern was matched once
    desk.do(MetadataChanged(desk.now, (*CLUSTER, Topic("tall", b"\3" * 16, 1))))
    desk.poll()
    assert decode_subscription(desk.only(Send).body.protocols[0].metadata).topics == ("t",)
    desk.follow()
    desk.sync(T0)
    desk.poll()
    desk.do(MetadataChanged(desk.now, (*CLUSTER, Topic("t2", b"\3" * 16, 1))))
    desk.poll()
    assert desk.only(Send).body.reason == "subscription has changed"  # K-JOIN-15


def test_pattern_subscriber_adopts_a_topic_that_its_leader_saw_first():
    desk = Desk()
    desk.do(MetadataChanged(desk.now, CLUSTER))
    desk.do(SubscribePattern(desk.now, "t.?"))
    desk.do(CoordinatorFound(desk.now, node=1))
    desk.poll()
    desk.follow()
    desk.sync(T0, TopicPartition("t2", 0))
    desk.poll()
    assert desk.member.assignment == {T0, TopicPartition("t2", 0)}  # K-JOIN-16, K-JOIN-19
    desk.none(Send)
    assert desk.member.joined_topics == {"t", "t2"}


def test_one_kind_of_subscription_at_a_time():
    desk = Desk()
    desk.do(Subscribe(desk.now, frozenset({"t"})))
    with pytest.raises(ValueError, match="by name"):
        desk.do(SubscribePattern(desk.now, "t"))  # K-SUB-01
    desk.do(Unsubscribe(desk.now))
    desk.do(SubscribePattern(desk.now, "t"))
    with pytest.raises(ValueError, match="pattern"):
        desk.do(Subscribe(desk.now, frozenset({"t"})))


# --- the commit before a rejoin ---


def test_commit_before_rejoin_delays_the_join_and_marks_partitions():
    desk = Desk(auto_commit=True)
    desk.settle(T0)
    desk.calls()
    desk.do(EnforceRebalance(desk.now))
    desk.poll()
    commit = desk.only(Commit)
    assert commit.partitions == {T0}
    assert desk.member.subscription.pending_revocation == {T0}  # K-CB-01: eager
    desk.poll()
    desk.none(Commit, Send, Listener)
    desk.do(CommitFinished(desk.now, commit_id=commit.commit_id, result=CommitResult.RETRIABLE))
    desk.wait(100)
    desk.poll()
    commit = desk.only(Commit)
    desk.do(
        CommitFinished(desk.now, commit_id=commit.commit_id, result=CommitResult.FAILED)
    )  # a failure does not stop it
    desk.poll()
    assert isinstance(desk.only(Send).body, JoinGroupRequest)
    assert desk.calls() == [("revoked", (T0,))]


def test_commit_before_rejoin_is_waited_for_no_longer_than_the_rebalance_timeout():
    desk = Desk(auto_commit=True, max_poll_interval_ms=40_000)
    desk.settle(T0)
    desk.do(EnforceRebalance(desk.now))
    desk.poll()
    for _ in range(4):
        desk.wait(10_000)
        desk.poll()
    assert desk.calls()[-1] == ("revoked", (T0,))


# --- the coordinator ---


def test_lookup_backs_off_after_a_retriable_failure_and_throws_a_fatal_one():
    desk = Desk()
    desk.do(Subscribe(desk.now, frozenset({"t"})))
    desk.poll()
    desk.do(LookupFailed(desk.now, ErrorCode.COORDINATOR_NOT_AVAILABLE), jitter=1.2)
    assert desk.timers[MemberTimer.LOOKUP] == desk.now + 120  # K-FIND-01, K-HB-05
    desk.poll()
    assert desk.commands == (Returned(),)
    desk.wait(120)
    desk.poll()
    desk.do(LookupFailed(desk.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert desk.poll().error is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert desk.poll() is None


def asked(commands: tuple[Command, ...]) -> list[frozenset[str]]:
    return [each.topics for each in commands if isinstance(each, RequestMetadata)]


def test_the_poll_that_finds_a_look_up_failed_refreshes_metadata():
    desk = Desk()
    desk.do(Subscribe(desk.now, frozenset({"t"})))
    desk.poll()
    assert asked(desk.do(LookupFailed(desk.now, None))) == []  # K-FIND-01
    desk.poll()
    assert asked(desk.commands) == []
    desk.wait(100)
    desk.poll()
    assert asked(desk.commands) == [frozenset({"t"})]
    assert desk.only(FindCoordinator)
    desk.poll()
    assert asked(desk.commands) == []


def test_a_look_up_of_the_heartbeat_thread_in_between_leaves_nothing_to_refresh():
    desk = Desk()
    desk.settle(T0)
    assert FindCoordinator("g") in desk.do(CoordinatorLost(desk.now))
    desk.do(LookupFailed(desk.now, None))
    desk.wait(100)
    assert FindCoordinator("g") in desk.commands
    desk.poll()
    assert asked(desk.commands) == []  # K-FIND-01


def test_defaults_are_range_and_cooperative_sticky():
    assert [each.name for each in Desk().member.assignors] == ["range", "cooperative-sticky"]  # G-CFG-47
    assert Desk().member.settings.protocol is RebalanceProtocol.EAGER  # A-PROTO-02
    assert Call.LOST.value == "lost"
