"""The work of an elected leader, and its failures."""

from __future__ import annotations

from fencepost.member import ClassicMemberState
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

from .driver import CLUSTER, T0, T1, Driver, subscription
from .fixed import Fixed


def test_leader_waits_for_metadata_of_the_groups_topics_then_assigns():
    driver = Driver()
    driver.start()
    driver.lead(("n", subscription("t", "u")))
    driver.none(Send)
    assert driver.only(RequestMetadata).topics == {"t", "u"}  # K-JOIN-10
    driver.metadata()
    sync = driver.only(Send).body
    assert [row.member_id for row in sync.assignments] == ["m", "n"]
    driver.sync(T0, T1)
    driver.poll()
    assert driver.member.is_leader


def test_leader_rejoins_when_a_watched_topic_grows_but_not_for_others():
    driver = Driver()
    driver.start()
    driver.lead()
    driver.sync(T0)
    driver.poll()
    driver.do(MetadataChanged(driver.now, (CLUSTER[0], Topic("u", b"\2" * 16, 9))))
    driver.poll()
    driver.none(Send)
    driver.do(MetadataChanged(driver.now, (Topic("t", b"\1" * 16, 4),)))
    driver.poll()
    assert driver.only(Send).body.reason == "cached metadata has changed"  # K-JOIN-02, K-JOIN-18


def test_racks_count_as_metadata_only_for_a_client_that_has_one():
    for rack, rejoins in (("a", True), (None, False)):
        driver = Driver(rack=rack)
        driver.start()
        driver.lead()
        driver.sync(T0)
        driver.poll()
        racks = (frozenset({"a"}),) * 3
        driver.do(MetadataChanged(driver.now, (Topic("t", b"\1" * 16, 3, racks),)))
        driver.poll()
        assert any(isinstance(command, Send) for command in driver.commands) is rejoins


def test_skip_assignment_sends_nothing_but_keeps_watching():
    driver = Driver(group_instance_id="i")
    driver.start()
    driver.lead(skip=True)
    assert driver.only(Send).body.assignments == ()  # K-JOIN-11
    driver.sync(T0)
    driver.poll()
    driver.do(MetadataChanged(driver.now, (Topic("t", b"\1" * 16, 4),)))
    driver.poll()
    assert isinstance(driver.only(Send).body, JoinGroupRequest)


# --- leaders whose assignor misbehaves ---


def test_failing_assignor_is_thrown_from_poll_and_sends_nothing():
    driver = Driver(assignors=(Fixed(raises="oh"),))
    driver.start()
    driver.lead()
    driver.none(Send)
    assert driver.member.state is ClassicMemberState.COMPLETING_REBALANCE  # K-JOIN-20: its heartbeats continue
    failure = driver.poll()
    assert (failure.kind, failure.text) == (FailureKind.ASSIGNOR, "oh")
    driver.poll()
    body = driver.only(Send).body
    assert body.reason == "rebalance failed due to RuntimeError"
    assert decode_subscription(body.protocols[0].metadata).generation_id == 1


def test_cooperative_plugin_must_not_move_partitions_directly():
    moves = Fixed((("m", (T0,)), ("n", ())), protocols=Fixed.COOPERATIVE)
    driver = Driver(assignors=(moves,))
    driver.start()
    driver.lead(("n", subscription("t", owned=(T0,), generation=1)))
    assert driver.poll().kind is FailureKind.ASSIGNOR  # K-JOIN-13


def test_plugin_may_assign_topics_without_subscribers():
    driver = Driver(assignors=(Fixed((("m", (TopicPartition("u", 0),)),)),))
    driver.start()
    driver.lead()
    assert driver.only(RequestMetadata).topics == {"t", "u"}  # K-JOIN-17
    driver.metadata()
    assert driver.only(Send).body.assignments[0].member_id == "m"


def test_assignor_learns_the_assignment():
    driver = Driver(assignors=(Fixed(),))
    driver.settle(T0)
    assert driver.member.assignors[0].seen == (T0,)


def test_a_failing_on_assignment_is_thrown_but_the_assignment_is_adopted():
    """K-CB-09."""
    driver = Driver(assignors=(Fixed(deaf="oh"),))
    driver.start()
    driver.follow()
    driver.sync(T0)
    failure = driver.poll()
    assert (failure.kind, failure.text) == (FailureKind.ASSIGNOR, "oh")
    assert driver.member.assignment == {T0}


# --- leaders that cannot assign ---


def test_a_subscription_that_cannot_be_read_is_thrown_and_nothing_is_sent():
    """K-JOIN-20, A-EMB-05."""
    driver = Driver()
    driver.start()
    driver.lead(("n", b"\0"))
    driver.none(Send, RequestMetadata)
    failure = driver.poll()
    assert failure.kind is FailureKind.ASSIGNOR
    driver.poll()
    assert driver.only(Send).body.reason == "rebalance failed due to SchemaException"


def test_an_assignor_that_the_leader_does_not_have_is_thrown():
    driver = Driver()
    driver.start()
    rows = (JoinGroupMember("m", metadata=subscription("t")),)
    driver.answer(
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
    driver.none(Send)
    failure = driver.poll()
    assert (failure.kind, failure.text) == (
        FailureKind.ASSIGNOR,
        "the coordinator selected the unknown protocol 'other'",
    )


def test_an_assignment_by_an_unknown_assignor_is_thrown():
    driver = Driver()
    driver.start()
    driver.follow(protocol="other")
    driver.sync(T0)
    failure = driver.poll()
    assert (failure.kind, failure.text) == (
        FailureKind.ASSIGNMENT,
        "the coordinator selected the unknown protocol 'other'",
    )
    assert driver.member.assignment == frozenset()


def test_a_leader_that_was_thrown_out_while_it_waited_for_metadata_joins_again():
    """Its generation is reset, so its assignment would have no effect (K-ST-12)."""
    driver = Driver()
    driver.start()
    driver.lead(("n", subscription("u")))
    driver.only(RequestMetadata)
    driver.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    driver.do(MetadataChanged(driver.now, CLUSTER))
    driver.none(Send)
    driver.poll()
    again = driver.only(Send).body
    assert isinstance(again, JoinGroupRequest)
    assert (again.member_id, again.reason) == ("", "rebalance failed due to IllegalGenerationException")


def test_a_leader_that_loses_its_coordinator_while_it_waits_for_metadata_assigns_nothing():
    driver = Driver()
    driver.start()
    driver.lead(("n", subscription("u")))
    driver.do(CoordinatorLost(driver.now))
    driver.do(MetadataChanged(driver.now, CLUSTER))
    driver.none(Send)
    driver.do(CoordinatorFound(driver.now, node=2))
    driver.poll()  # the join has failed; K-ERR-14: after the back-off
    driver.none(Send)
    driver.wait(driver.member.settings.retry_backoff_ms)
    driver.poll()
    assert driver.only(Send).body.reason == "rebalance failed due to CoordinatorNotAvailableException"


def test_a_coordinator_that_is_lost_while_the_listener_runs_is_looked_up_before_the_join():
    driver = Driver()
    driver.settle(T0)
    driver.do(EnforceRebalance(driver.now))
    driver.poll(listener=False)
    driver.do(CoordinatorLost(driver.now))
    driver.done()
    driver.none(Send)
    assert driver.only(Returned).failure is None
    driver.do(CoordinatorFound(driver.now, node=2))
    driver.poll()
    driver.wait(driver.member.settings.retry_backoff_ms)
    driver.poll()
    assert isinstance(driver.only(Send).body, JoinGroupRequest)
    assert driver.calls() == [("assigned", (T0,)), ("revoked", (T0,))]  # prepared once (K-CB-09)
