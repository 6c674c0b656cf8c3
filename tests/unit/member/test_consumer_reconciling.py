"""Reconciliation of a KIP-848 member (8.11), by rule."""

from __future__ import annotations

import pytest

from fencepost.member import events as ev
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3

from .consumer_driver import CLUSTER, INTERVAL, T0, T1, T2, U0, ConsumerDriver, T, U, rows

X = b"\7" * 16


def test_n_rec_07_the_assignment_changes_inside_poll_only():
    driver = ConsumerDriver()
    driver.start()
    driver.answer(T0)
    driver.wait(INTERVAL)
    assert (driver.member.assignment, driver.calls()) == (frozenset(), [])
    driver.do(ev.Poll(driver.now))
    assert driver.member.assignment == {T0}
    assert driver.member.subscription.fetchable == set()
    driver.done()
    assert driver.member.subscription.fetchable == {T0}


def test_n_rec_07_without_listener_one_poll_is_needed_all_the_same():
    driver = ConsumerDriver(listener=False)
    driver.start()
    driver.answer(T0)
    assert (driver.state, driver.member.assignment) == ("RECONCILING", frozenset())
    driver.poll()
    assert (driver.state, driver.member.assignment) == ("STABLE", {T0})


def test_v_97_before_4_3_the_background_replaces_the_assignment():
    driver = ConsumerDriver(profile=KAFKA_4_2)
    driver.start()
    driver.answer(T0)
    assert (driver.member.assignment, driver.member.subscription.fetchable, driver.calls()) == ({T0}, set(), [])
    driver.poll()
    assert driver.calls() == [("assigned", (T0,))]


def test_n_rec_01_a_revocation_needs_a_poll():
    driver = ConsumerDriver()
    driver.settle(T0, T1)
    driver.target(T0)
    assert (driver.member.reconciliation, driver.member.subscription.fetchable) == (None, {T0, T1})
    driver.poll()
    assert driver.calls() == [("revoked", (T1,)), ("assigned", ())]
    assert (driver.state, driver.beat.topic_partitions) == ("STABLE", rows(T0))


def test_v_95_before_4_2_the_background_begins_to_revoke():
    for profile, pending in ((KAFKA_4_1, {T1}), (KAFKA_4_2, set())):
        driver = ConsumerDriver(profile=profile)
        driver.settle(T0, T1)
        driver.target(T0)
        assert driver.member.subscription.pending_revocation == pending


def test_n_rec_02_unknown_topics_are_requested_and_left_out_until_they_are_known():
    driver = ConsumerDriver()
    driver.start("t", "u")
    driver.do(ev.MetadataChanged(driver.now, CLUSTER[:1]))
    driver.answer(T0, U0)
    (asked,) = driver.all(ev.RequestMetadata)
    assert (asked.topics, asked.topic_ids) == ({"t", "u"}, frozenset())
    driver.poll()
    assert driver.calls() == [("assigned", (T0,))]
    assert (driver.state, driver.beat.topic_partitions) == ("RECONCILING", rows(T0, U0))
    driver.answer(assigns=False)
    driver.do(ev.MetadataChanged(driver.now, CLUSTER))
    driver.poll()
    assert driver.calls() == [("assigned", (U0,))]
    assert (driver.state, driver.beat.topic_partitions) == ("STABLE", rows(T0, U0))


def test_n_rec_02_a_subscriber_by_expression_requests_the_topics_of_its_target_by_id():
    driver = ConsumerDriver()
    driver.found()
    driver.do(ev.SubscribeRegex(driver.now, "u.*"))
    driver.poll()
    driver.answer(U0)
    (asked,) = driver.all(ev.RequestMetadata)
    assert (asked.topics, asked.topic_ids) == (frozenset(), {U})


def test_n_rec_02_metadata_that_does_not_help_is_asked_for_again_by_the_next_poll_only():
    driver = ConsumerDriver()
    driver.start()
    driver.answer(topics=(TopicPartitions(X, (0,)),))
    assert len(driver.all(ev.RequestMetadata)) == 1
    driver.do(ev.MetadataChanged(driver.now, CLUSTER))
    assert driver.all(ev.RequestMetadata) == []
    driver.poll()
    assert len(driver.all(ev.RequestMetadata)) == 1


def test_n_rec_02_a_topic_that_is_gone_from_metadata_keeps_its_name():
    driver = ConsumerDriver()
    driver.settle(T0, T1)
    driver.do(ev.MetadataChanged(driver.now, ()))
    driver.target(T0)
    driver.poll()
    assert driver.calls() == [("revoked", (T1,)), ("assigned", ())]


def test_v_96_in_4_0_the_target_is_not_asked_for_by_id():
    driver = ConsumerDriver(profile=KAFKA_4_0)
    driver.start()
    driver.answer(topics=(TopicPartitions(X, (0,)),))
    (asked,) = driver.all(ev.RequestMetadata)
    assert asked == ev.RequestMetadata(frozenset({"t"}))


def test_n_rec_03_unresolved_topics_change_nothing_and_are_acknowledged_without_calls():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    target = (TopicPartitions(T, (0,)), TopicPartitions(X, (0,)))
    driver.answer(topics=target, epoch=2)
    assert (driver.calls(), driver.state) == ([], "RECONCILING")
    assert (driver.beat.topic_partitions, driver.beat.member_epoch) == (target, 2)


def committing() -> ConsumerDriver:
    """Return a member that owns T0 and T1, must revoke T1, and commits first."""
    driver = ConsumerDriver(auto_commit=True, max_poll_interval_ms=60_000)
    driver.start()
    driver.answer(T0, T1)
    driver.poll()
    driver.answer(T0, epoch=2)
    assert driver.member.reconciliation is None
    driver.calls()
    driver.poll()
    return driver


def commit_ended(driver: ConsumerDriver, result: ev.CommitResult) -> None:
    (commit,) = driver.all(ev.Commit)
    driver.do(ev.CommitFinished(driver.now, commit_id=commit.commit_id, result=result))


def test_n_rec_04_all_offsets_are_committed_first_and_revoked_partitions_are_not_fetched():
    driver = committing()
    (commit,) = driver.all(ev.Commit)
    assert commit.partitions == {T0, T1}
    assert (driver.member.subscription.fetchable, driver.calls()) == ({T0}, [])
    commit_ended(driver, ev.CommitResult.FAILED)
    driver.poll()
    assert driver.calls() == [("revoked", (T1,)), ("assigned", ())]


@pytest.mark.parametrize("polls", [False, True])
def test_n_rec_04_a_commit_is_tried_again_until_the_rebalance_timeout(polls):
    """The poll interval does not end the reconciliation while the application polls."""
    driver = committing()
    start = driver.now
    for _ in range(10):
        commit_ended(driver, ev.CommitResult.RETRIABLE)
        if ev.MemberTimer.RETRY not in driver.timers:
            break
        driver.now += 10_000
        if polls:
            driver.do(ev.Poll(driver.now))
        driver.timers.pop(ev.MemberTimer.RETRY)
        driver.do(ev.MemberTimerFired(driver.now, ev.MemberTimer.RETRY))
    assert driver.now - start == 60_000


@pytest.mark.parametrize("when", ["commit", "revoke", "assign"])
def test_n_rec_05_a_reconciliation_of_a_fenced_member_has_no_effect(when):
    driver = committing()
    if when != "commit":
        commit_ended(driver, ev.CommitResult.DONE)
        driver.do(ev.Poll(driver.now))
    if when == "assign":
        driver.done()
    driver.wait(INTERVAL)
    driver.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    if when == "commit":
        driver.do(
            ev.CommitFinished(driver.now, commit_id=driver.member.reconciliation.commit_id, result=ev.CommitResult.DONE)
        )
        driver.poll()
    else:
        driver.done()
        driver.done()
    assert (driver.state, driver.member.assignment, driver.member.reconciliation) == ("JOINING", frozenset(), None)
    assert driver.calls()[-1][0] == "lost"
    assert driver.member.current is None


def test_n_rec_09_a_revocation_that_threw_is_repeated_and_nothing_acknowledged():
    driver = ConsumerDriver()
    driver.settle(T0, T1)
    driver.target(T0)
    failure = driver.poll(error="thrown")
    assert failure is not None
    assert failure.kind is ev.FailureKind.LISTENER
    assert (driver.state, driver.calls(), driver.member.assignment) == ("RECONCILING", [("revoked", (T1,))], {T0, T1})
    assert driver.poll() is None
    assert driver.calls() == [("revoked", (T1,)), ("assigned", ())]


def test_n_rec_09_after_an_assignment_that_threw_the_added_are_not_fetched_until_a_retry_succeeds():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.target(T0, T1)
    assert driver.poll(error="thrown") is not None
    assert (driver.member.assignment, driver.member.subscription.fetchable) == ({T0, T1}, {T0})
    assert driver.state == "RECONCILING"
    assert driver.poll() is None
    assert driver.calls() == [("assigned", (T1,)), ("assigned", ())]
    assert (driver.state, driver.member.subscription.fetchable) == ("STABLE", {T0, T1})


def test_n_rec_11_partitions_that_are_given_back_are_fetched_again_except_in_kafka():
    for profile, fetchable in ((None, {T0, T1}), (KAFKA_4_3, {T0})):
        driver = ConsumerDriver(**({} if profile is None else {"profile": profile}))
        driver.settle(T0, T1)
        driver.target(T0)
        driver.poll(error="thrown")
        driver.target(T0, T1, epoch=3)
        driver.poll()
        assert (driver.member.assignment, driver.member.subscription.fetchable) == ({T0, T1}, fetchable)


def test_n_rec_12_a_newer_target_waits_and_is_worked_on_then():
    driver = ConsumerDriver()
    driver.settle(T0, T1)
    driver.target(T0)
    driver.do(ev.Poll(driver.now))
    driver.wait(INTERVAL)
    driver.answer(T0, T1, T2, epoch=3)
    assert driver.calls() == [("revoked", (T1,))]
    driver.done()
    driver.done()
    assert (driver.beat.topic_partitions, driver.beat.member_epoch) == (rows(T0, T1, T2), 3)
    assert (driver.state, driver.member.assignment) == ("RECONCILING", {T0})
    driver.calls()
    driver.poll()
    assert driver.calls() == [("assigned", (T1, T2))]


def test_n_rec_13_the_same_set_again_only_moves_the_epoch():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    driver.answer(T0, epoch=2)
    assert (driver.state, driver.member.epoch, driver.calls(), driver.beats) == ("STABLE", 2, [], [])
    driver.wait(INTERVAL)
    assert driver.beat.topic_partitions is None


def test_n_rec_10_a_program_that_does_not_poll_does_not_reconcile():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.target()
    for _ in range(5):
        driver.wait(INTERVAL)
        driver.answer(assigns=False, epoch=2)
    assert (driver.state, driver.member.assignment, driver.calls()) == ("RECONCILING", {T0}, [])


def test_n_rec_03_unresolved_topics_are_acknowledged_once_except_in_kafka():
    for profile, beats in ((None, 0), (KAFKA_4_3, 1)):
        driver = ConsumerDriver(**({} if profile is None else {"profile": profile}))
        driver.settle(T0)
        driver.wait(INTERVAL)
        driver.answer(topics=(TopicPartitions(T, (0,)), TopicPartitions(X, (0,))), epoch=2)
        assert len(driver.beats) == 1
        driver.answer(assigns=False, epoch=2)
        assert len(driver.beats) == beats


def test_n_rec_09_partitions_of_a_failed_assignment_are_revoked_when_withdrawn_except_in_kafka():
    for profile, owned in ((None, {T0}), (KAFKA_4_3, {T0, T1})):
        driver = ConsumerDriver(auto_commit=True, **({} if profile is None else {"profile": profile}))
        driver.settle(T0)
        driver.target(T0, T1)
        driver.poll()
        commit_ended(driver, ev.CommitResult.DONE)
        driver.poll(error="thrown")
        driver.wait(INTERVAL)
        driver.answer(T0, epoch=3)
        driver.poll()
        if driver.all(ev.Commit):
            commit_ended(driver, ev.CommitResult.DONE)
            driver.poll()
        assert driver.member.assignment == owned
        assert driver.member.subscription.fetchable == {T0}
