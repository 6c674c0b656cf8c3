"""Reconciliation of a KIP-848 member (8.11), by rule."""

from __future__ import annotations

import pytest

from fencepost.member import events as ev
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3

from .consumer_desk import CLUSTER, INTERVAL, T0, T1, T2, U0, ConsumerDesk, T, U, rows

X = b"\7" * 16


def test_n_rec_07_the_assignment_changes_inside_poll_only():
    desk = ConsumerDesk()
    desk.start()
    desk.answer(T0)
    desk.wait(INTERVAL)
    assert (desk.member.assignment, desk.calls()) == (frozenset(), [])
    desk.do(ev.Poll(desk.now))
    assert desk.member.assignment == {T0}
    assert desk.member.subscription.fetchable == set()
    desk.done()
    assert desk.member.subscription.fetchable == {T0}


def test_n_rec_07_without_listener_one_poll_is_needed_all_the_same():
    desk = ConsumerDesk(listener=False)
    desk.start()
    desk.answer(T0)
    assert (desk.state, desk.member.assignment) == ("RECONCILING", frozenset())
    desk.poll()
    assert (desk.state, desk.member.assignment) == ("STABLE", {T0})


def test_v_97_before_4_3_the_background_replaces_the_assignment():
    desk = ConsumerDesk(profile=KAFKA_4_2)
    desk.start()
    desk.answer(T0)
    assert (desk.member.assignment, desk.member.subscription.fetchable, desk.calls()) == ({T0}, set(), [])
    desk.poll()
    assert desk.calls() == [("assigned", (T0,))]


def test_n_rec_01_a_revocation_needs_a_poll():
    desk = ConsumerDesk()
    desk.settle(T0, T1)
    desk.target(T0)
    assert (desk.member.reconciliation, desk.member.subscription.fetchable) == (None, {T0, T1})
    desk.poll()
    assert desk.calls() == [("revoked", (T1,)), ("assigned", ())]
    assert (desk.state, desk.beat.topic_partitions) == ("STABLE", rows(T0))


def test_v_95_before_4_2_the_background_begins_to_revoke():
    for profile, pending in ((KAFKA_4_1, {T1}), (KAFKA_4_2, set())):
        desk = ConsumerDesk(profile=profile)
        desk.settle(T0, T1)
        desk.target(T0)
        assert desk.member.subscription.pending_revocation == pending


def test_n_rec_02_unknown_topics_are_asked_for_and_left_out_until_they_are_known():
    desk = ConsumerDesk()
    desk.start("t", "u")
    desk.do(ev.MetadataChanged(desk.now, CLUSTER[:1]))
    desk.answer(T0, U0)
    (asked,) = desk.all(ev.RequestMetadata)
    assert asked.topic_ids == {T, U}
    desk.poll()
    assert desk.calls() == [("assigned", (T0,))]
    assert (desk.state, desk.beat.topic_partitions) == ("RECONCILING", rows(T0, U0))
    desk.answer(assigns=False)
    desk.do(ev.MetadataChanged(desk.now, CLUSTER))
    desk.poll()
    assert desk.calls() == [("assigned", (U0,))]
    assert (desk.state, desk.beat.topic_partitions) == ("STABLE", rows(T0, U0))


def test_n_rec_02_metadata_that_does_not_help_is_asked_for_again_by_the_next_poll_only():
    desk = ConsumerDesk()
    desk.start()
    desk.answer(topics=(TopicPartitions(X, (0,)),))
    assert len(desk.all(ev.RequestMetadata)) == 1
    desk.do(ev.MetadataChanged(desk.now, CLUSTER))
    assert desk.all(ev.RequestMetadata) == []
    desk.poll()
    assert len(desk.all(ev.RequestMetadata)) == 1


def test_n_rec_02_a_topic_that_is_gone_from_metadata_keeps_its_name():
    desk = ConsumerDesk()
    desk.settle(T0, T1)
    desk.do(ev.MetadataChanged(desk.now, ()))
    desk.target(T0)
    desk.poll()
    assert desk.calls() == [("revoked", (T1,)), ("assigned", ())]


def test_v_96_in_4_0_the_target_is_not_asked_for_by_id():
    desk = ConsumerDesk(profile=KAFKA_4_0)
    desk.start()
    desk.answer(topics=(TopicPartitions(X, (0,)),))
    (asked,) = desk.all(ev.RequestMetadata)
    assert asked == ev.RequestMetadata(frozenset({"t"}))


def test_n_rec_03_unresolved_topics_change_nothing_and_are_acknowledged_without_calls():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    target = (TopicPartitions(T, (0,)), TopicPartitions(X, (0,)))
    desk.answer(topics=target, epoch=2)
    assert (desk.calls(), desk.state) == ([], "RECONCILING")
    assert (desk.beat.topic_partitions, desk.beat.member_epoch) == (target, 2)


def committing() -> ConsumerDesk:
    """Return a member that owns T0 and T1, must revoke T1, and commits first."""
    desk = ConsumerDesk(auto_commit=True, max_poll_interval_ms=60_000)
    desk.start()
    desk.answer(T0, T1)
    desk.poll()
    desk.answer(T0, epoch=2)
    assert desk.member.reconciliation is None
    desk.calls()
    desk.poll()
    return desk


def commit_ended(desk: ConsumerDesk, result: ev.CommitResult) -> None:
    (commit,) = desk.all(ev.Commit)
    desk.do(ev.CommitFinished(desk.now, commit_id=commit.commit_id, result=result))


def test_n_rec_04_all_offsets_are_committed_first_and_revoked_partitions_are_not_fetched():
    desk = committing()
    (commit,) = desk.all(ev.Commit)
    assert commit.partitions == {T0, T1}
    assert (desk.member.subscription.fetchable, desk.calls()) == ({T0}, [])
    commit_ended(desk, ev.CommitResult.FAILED)
    desk.poll()
    assert desk.calls() == [("revoked", (T1,)), ("assigned", ())]


@pytest.mark.parametrize("polls", [False, True])
def test_n_rec_04_a_commit_is_tried_again_until_the_rebalance_timeout(polls):
    """The poll interval does not end the reconciliation while the application polls."""
    desk = committing()
    start = desk.now
    for _ in range(10):
        commit_ended(desk, ev.CommitResult.RETRIABLE)
        if ev.MemberTimer.RETRY not in desk.timers:
            break
        desk.now += 10_000
        if polls:
            desk.do(ev.Poll(desk.now))
        desk.timers.pop(ev.MemberTimer.RETRY)
        desk.do(ev.MemberTimerFired(desk.now, ev.MemberTimer.RETRY))
    assert desk.now - start == 60_000


@pytest.mark.parametrize("when", ["commit", "revoke", "assign"])
def test_n_rec_05_a_reconciliation_of_a_fenced_member_has_no_effect(when):
    desk = committing()
    if when != "commit":
        commit_ended(desk, ev.CommitResult.DONE)
        desk.do(ev.Poll(desk.now))
    if when == "assign":
        desk.done()
    desk.wait(INTERVAL)
    desk.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    if when == "commit":
        desk.do(
            ev.CommitFinished(desk.now, commit_id=desk.member.reconciliation.commit_id, result=ev.CommitResult.DONE)
        )
        desk.poll()
    else:
        desk.done()
        desk.done()
    assert (desk.state, desk.member.assignment, desk.member.reconciliation) == ("JOINING", frozenset(), None)
    assert desk.calls()[-1][0] == "lost"
    assert desk.member.current is None


def test_n_rec_09_a_revocation_that_threw_is_repeated_and_nothing_acknowledged():
    desk = ConsumerDesk()
    desk.settle(T0, T1)
    desk.target(T0)
    failure = desk.poll(error="thrown")
    assert failure is not None
    assert failure.kind is ev.FailureKind.LISTENER
    assert (desk.state, desk.calls(), desk.member.assignment) == ("RECONCILING", [("revoked", (T1,))], {T0, T1})
    assert desk.poll() is None
    assert desk.calls() == [("revoked", (T1,)), ("assigned", ())]


def test_n_rec_09_after_an_assignment_that_threw_the_added_are_not_fetched_until_a_retry_succeeds():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.target(T0, T1)
    assert desk.poll(error="thrown") is not None
    assert (desk.member.assignment, desk.member.subscription.fetchable) == ({T0, T1}, {T0})
    assert desk.state == "RECONCILING"
    assert desk.poll() is None
    assert desk.calls() == [("assigned", (T1,)), ("assigned", ())]
    assert (desk.state, desk.member.subscription.fetchable) == ("STABLE", {T0, T1})


def test_n_rec_11_partitions_that_are_given_back_are_fetched_again_except_in_kafka():
    for profile, fetchable in ((None, {T0, T1}), (KAFKA_4_3, {T0})):
        desk = ConsumerDesk(**({} if profile is None else {"profile": profile}))
        desk.settle(T0, T1)
        desk.target(T0)
        desk.poll(error="thrown")
        desk.target(T0, T1, epoch=3)
        desk.poll()
        assert (desk.member.assignment, desk.member.subscription.fetchable) == ({T0, T1}, fetchable)


def test_n_rec_12_a_newer_target_waits_and_is_worked_on_then():
    desk = ConsumerDesk()
    desk.settle(T0, T1)
    desk.target(T0)
    desk.do(ev.Poll(desk.now))
    desk.wait(INTERVAL)
    desk.answer(T0, T1, T2, epoch=3)
    assert desk.calls() == [("revoked", (T1,))]
    desk.done()
    desk.done()
    assert (desk.beat.topic_partitions, desk.beat.member_epoch) == (rows(T0, T1, T2), 3)
    assert (desk.state, desk.member.assignment) == ("RECONCILING", {T0})
    desk.calls()
    desk.poll()
    assert desk.calls() == [("assigned", (T1, T2))]


def test_n_rec_13_the_same_set_again_only_moves_the_epoch():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    desk.answer(T0, epoch=2)
    assert (desk.state, desk.member.epoch, desk.calls(), desk.beats) == ("STABLE", 2, [], [])
    desk.wait(INTERVAL)
    assert desk.beat.topic_partitions is None


def test_n_rec_10_a_program_that_does_not_poll_does_not_reconcile():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.target()
    for _ in range(5):
        desk.wait(INTERVAL)
        desk.answer(assigns=False, epoch=2)
    assert (desk.state, desk.member.assignment, desk.calls()) == ("RECONCILING", {T0}, [])


def test_n_rec_03_unresolved_topics_are_acknowledged_once_except_in_kafka():
    for profile, beats in ((None, 0), (KAFKA_4_3, 1)):
        desk = ConsumerDesk(**({} if profile is None else {"profile": profile}))
        desk.settle(T0)
        desk.wait(INTERVAL)
        desk.answer(topics=(TopicPartitions(T, (0,)), TopicPartitions(X, (0,))), epoch=2)
        assert len(desk.beats) == 1
        desk.answer(assigns=False, epoch=2)
        assert len(desk.beats) == beats


def test_n_rec_09_partitions_of_a_failed_assignment_are_revoked_when_withdrawn_except_in_kafka():
    for profile, owned in ((None, {T0}), (KAFKA_4_3, {T0, T1})):
        desk = ConsumerDesk(auto_commit=True, **({} if profile is None else {"profile": profile}))
        desk.settle(T0)
        desk.target(T0, T1)
        desk.poll()
        commit_ended(desk, ev.CommitResult.DONE)
        desk.poll(error="thrown")
        desk.wait(INTERVAL)
        desk.answer(T0, epoch=3)
        desk.poll()
        if desk.all(ev.Commit):
            commit_ended(desk, ev.CommitResult.DONE)
            desk.poll()
        assert desk.member.assignment == owned
        assert desk.member.subscription.fetchable == {T0}
