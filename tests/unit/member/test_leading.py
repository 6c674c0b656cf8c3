"""The work of an elected leader, and its failures."""

from __future__ import annotations

from fencepost.member import MemberState
from fencepost.member.consumer_protocol import decode_subscription
from fencepost.member.events import (
    CoordinatorFound,
    CoordinatorLost,
    EnforceRebalance,
    FailureKind,
    MetadataChanged,
    RequestMetadata,
    Returned,
    Send,
)
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import JoinGroupMember, JoinGroupRequest, JoinGroupResponse

from .desk import CLUSTER, T0, T1, Desk, subscription
from .fixed import Fixed


def test_leader_waits_for_metadata_of_the_groups_topics_then_assigns():
    desk = Desk()
    desk.start()
    desk.lead(("n", subscription("t", "u")))
    desk.none(Send)
    assert desk.only(RequestMetadata).topics == {"t", "u"}  # K-JOIN-10
    desk.metadata()
    sync = desk.only(Send).body
    assert [row.member_id for row in sync.assignments] == ["m", "n"]
    desk.sync(T0, T1)
    desk.poll()
    assert desk.member.is_leader


def test_leader_rejoins_when_a_watched_topic_grows_but_not_for_others():
    desk = Desk()
    desk.start()
    desk.lead()
    desk.sync(T0)
    desk.poll()
    desk.do(MetadataChanged(desk.now, (CLUSTER[0], Topic("u", b"\2" * 16, 9))))
    desk.poll()
    desk.none(Send)
    desk.do(MetadataChanged(desk.now, (Topic("t", b"\1" * 16, 4),)))
    desk.poll()
    assert desk.only(Send).body.reason == "cached metadata has changed"  # K-JOIN-02, K-JOIN-18


def test_racks_count_as_metadata_only_for_a_client_that_has_one():
    for rack, rejoins in (("a", True), (None, False)):
        desk = Desk(rack=rack)
        desk.start()
        desk.lead()
        desk.sync(T0)
        desk.poll()
        racks = (frozenset({"a"}),) * 3
        desk.do(MetadataChanged(desk.now, (Topic("t", b"\1" * 16, 3, racks),)))
        desk.poll()
        assert any(isinstance(command, Send) for command in desk.commands) is rejoins


def test_skip_assignment_sends_nothing_but_keeps_watching():
    desk = Desk(group_instance_id="i")
    desk.start()
    desk.lead(skip=True)
    assert desk.only(Send).body.assignments == ()  # K-JOIN-11
    desk.sync(T0)
    desk.poll()
    desk.do(MetadataChanged(desk.now, (Topic("t", b"\1" * 16, 4),)))
    desk.poll()
    assert isinstance(desk.only(Send).body, JoinGroupRequest)


# --- leaders whose assignor misbehaves ---


def test_failing_assignor_is_thrown_from_poll_and_tells_the_broker_nothing():
    desk = Desk(assignors=(Fixed(raises="oh"),))
    desk.start()
    desk.lead()
    desk.none(Send)
    assert desk.member.state is MemberState.COMPLETING_REBALANCE  # K-JOIN-20: its heartbeats continue
    failure = desk.poll()
    assert (failure.kind, failure.text) == (FailureKind.ASSIGNOR, "oh")
    desk.poll()
    body = desk.only(Send).body
    assert body.reason == "rebalance failed due to RuntimeError"
    assert decode_subscription(body.protocols[0].metadata).generation_id == 1


def test_cooperative_plugin_must_not_move_partitions_directly():
    moves = Fixed((("m", (T0,)), ("n", ())), protocols=Fixed.COOPERATIVE)
    desk = Desk(assignors=(moves,))
    desk.start()
    desk.lead(("n", subscription("t", owned=(T0,), generation=1)))
    assert desk.poll().kind is FailureKind.ASSIGNOR  # K-JOIN-13


def test_plugin_may_assign_topics_without_subscribers():
    desk = Desk(assignors=(Fixed((("m", (TopicPartition("u", 0),)),)),))
    desk.start()
    desk.lead()
    assert desk.only(RequestMetadata).topics == {"t", "u"}  # K-JOIN-17
    desk.metadata()
    assert desk.only(Send).body.assignments[0].member_id == "m"


def test_assignor_learns_the_assignment():
    desk = Desk(assignors=(Fixed(),))
    desk.settle(T0)
    assert desk.member.assignors[0].seen == (T0,)


def test_a_failing_on_assignment_is_thrown_but_the_assignment_is_adopted():
    """K-CB-09."""
    desk = Desk(assignors=(Fixed(deaf="oh"),))
    desk.start()
    desk.follow()
    desk.sync(T0)
    failure = desk.poll()
    assert (failure.kind, failure.text) == (FailureKind.ASSIGNOR, "oh")
    assert desk.member.assignment == {T0}


# --- leaders that cannot assign ---


def test_a_subscription_that_cannot_be_read_is_thrown_and_nothing_is_sent():
    """K-JOIN-20, A-EMB-05."""
    desk = Desk()
    desk.start()
    desk.lead(("n", b"\0"))
    desk.none(Send, RequestMetadata)
    failure = desk.poll()
    assert failure.kind is FailureKind.ASSIGNOR
    desk.poll()
    assert desk.only(Send).body.reason == "rebalance failed due to SchemaException"


def test_an_assignor_that_the_leader_does_not_have_is_thrown():
    desk = Desk()
    desk.start()
    rows = (JoinGroupMember("m", metadata=subscription("t")),)
    desk.answer(
        JoinGroupResponse(
            ErrorCode.NONE,
            generation_id=1,
            protocol_type="consumer",
            protocol_name="other",
            leader="m",
            member_id="m",
            members=rows,
        )
    )
    desk.none(Send)
    failure = desk.poll()
    assert (failure.kind, failure.text) == (
        FailureKind.ASSIGNOR,
        "the coordinator selected the unknown protocol 'other'",
    )


def test_an_assignment_by_an_unknown_assignor_is_thrown():
    desk = Desk()
    desk.start()
    desk.follow(protocol="other")
    desk.sync(T0)
    failure = desk.poll()
    assert (failure.kind, failure.text) == (
        FailureKind.ASSIGNMENT,
        "the coordinator selected the unknown protocol 'other'",
    )
    assert desk.member.assignment == frozenset()


def test_a_leader_that_was_thrown_out_while_it_waited_for_metadata_joins_again():
    """Its generation is reset, so its assignment would have no effect (K-ST-12)."""
    desk = Desk()
    desk.start()
    desk.lead(("n", subscription("u")))
    desk.only(RequestMetadata)
    desk.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    desk.do(MetadataChanged(desk.now, CLUSTER))
    desk.none(Send)
    desk.poll()
    again = desk.only(Send).body
    assert isinstance(again, JoinGroupRequest)
    assert (again.member_id, again.reason) == ("", "rebalance failed due to IllegalGenerationException")


def test_a_leader_that_loses_its_coordinator_while_it_waits_for_metadata_assigns_nothing():
    desk = Desk()
    desk.start()
    desk.lead(("n", subscription("u")))
    desk.do(CoordinatorLost(desk.now))
    desk.do(MetadataChanged(desk.now, CLUSTER))
    desk.none(Send)
    desk.do(CoordinatorFound(desk.now, node=2))
    desk.poll()  # the join has failed; K-ERR-14: after the back-off
    desk.none(Send)
    desk.wait(desk.member.settings.retry_backoff_ms)
    desk.poll()
    assert desk.only(Send).body.reason == "rebalance failed due to CoordinatorNotAvailableException"


def test_a_coordinator_that_is_lost_while_the_listener_runs_is_looked_up_before_the_join():
    desk = Desk()
    desk.settle(T0)
    desk.do(EnforceRebalance(desk.now))
    desk.poll(listener=False)
    desk.do(CoordinatorLost(desk.now))
    desk.done()
    desk.none(Send)
    assert desk.only(Returned).failure is None
    desk.do(CoordinatorFound(desk.now, node=2))
    desk.poll()
    desk.wait(desk.member.settings.retry_backoff_ms)
    desk.poll()
    assert isinstance(desk.only(Send).body, JoinGroupRequest)
    assert desk.calls() == [("assigned", (T0,)), ("revoked", (T0,))]  # prepared once (K-CB-09)
