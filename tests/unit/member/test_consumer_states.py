"""States and transitions of the KIP-848 member (8.9), its poll and its leave (8.12), by rule."""

from __future__ import annotations

import pytest

from fencepost.member import events as ev
from fencepost.member.consumer import ConsumerMember, ConsumerSettings, IllegalEvent, consumer_step
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3

from .consumer_driver import INTERVAL, T0, T1, T2, ConsumerDriver, T, rows


def test_n_tr_01_the_first_poll_after_subscribe_joins_at_epoch_0():
    driver = ConsumerDriver()
    driver.do(ev.Subscribe(driver.now, frozenset({"t"})))
    assert driver.state == "UNSUBSCRIBED"
    driver.found()
    assert not driver.beats
    assert driver.poll() is None
    assert (driver.state, driver.beat.member_epoch, driver.beat.member_id) == ("JOINING", 0, "me")


def test_n_tr_02_the_first_assignment_is_reconciled_even_if_it_is_empty():
    driver = ConsumerDriver()
    driver.start()
    driver.answer()
    assert driver.state == "RECONCILING"
    driver.poll()
    assert driver.calls() == [("assigned", ())]
    assert driver.beat.topic_partitions == ()
    assert driver.state == "STABLE"


def test_n_tr_03_without_assignment_a_joining_member_sends_everything_again_at_the_new_epoch():
    driver = ConsumerDriver()
    driver.start()
    driver.answer(assigns=False, epoch=3)
    assert driver.state == "JOINING"
    assert driver.beat.member_epoch == 3
    assert driver.beat.subscribed_topic_names == ("t",)


def test_n_tr_05_sending_the_acknowledgement_is_enough():
    driver = ConsumerDriver()
    driver.start()
    driver.answer(T0)
    driver.poll()
    assert driver.calls() == [("assigned", (T0,))]
    assert driver.beat.topic_partitions == rows(T0)
    assert driver.state == "STABLE"
    assert driver.member.assignment == {T0}


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_n_tr_06_a_fenced_member_is_silent_until_its_listener_has_run_and_then_joins(error):
    driver = ConsumerDriver()
    driver.settle(T0, T1)
    driver.wait(INTERVAL)
    driver.refuse(error)
    assert (driver.state, driver.member.epoch) == ("FENCED", 0)
    assert driver.member.subscription.fetchable == set()
    driver.wait(10 * INTERVAL)
    assert not driver.beats
    driver.poll(error="thrown")
    assert driver.calls() == [("lost", (T0, T1))]
    assert (driver.state, driver.beat.member_epoch, driver.beat.topic_partitions) == ("JOINING", 0, ())


def test_n_tr_06_without_listener_or_partitions_the_join_is_sent_in_the_same_step():
    for driver in (ConsumerDriver(listener=False), ConsumerDriver()):
        driver.settle(*([T0] if not driver.member.settings.listener else []))
        driver.wait(INTERVAL)
        driver.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert (driver.state, driver.beat.member_epoch, driver.member.assignment) == ("JOINING", 0, frozenset())


def test_v_98_a_fenced_member_may_still_fetch_before_4_3():
    for profile, fetchable in ((KAFKA_4_2, {T0}), (KAFKA_4_3, set())):
        driver = ConsumerDriver(profile=profile)
        driver.settle(T0)
        driver.wait(INTERVAL)
        driver.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        assert driver.member.subscription.fetchable == fetchable


def test_n_tr_07_unsubscribe_calls_the_listener_leaves_and_returns_with_the_answer():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.do(ev.Unsubscribe(driver.now))
    assert (driver.state, driver.calls()) == ("PREPARE_LEAVING", [("revoked", (T0,))])
    driver.done()
    assert (driver.state, driver.beat.member_epoch) == ("UNSUBSCRIBED", -1)
    assert (driver.beat.subscribed_topic_names, driver.beat.topic_partitions) == ((), ())
    assert not driver.all(ev.Returned)
    driver.answer(assigns=False, epoch=-1)
    assert driver.all(ev.Returned) == [ev.Returned()]
    assert driver.member.commits_as == ("me", -1)  # N-CMT-01


def test_n_tr_07_a_leave_continues_after_a_listener_that_throws():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.do(ev.Unsubscribe(driver.now))
    driver.done("thrown")
    assert driver.beat.member_epoch == -1
    (returned,) = driver.all(ev.Returned)  # immediately, not when the leave is answered
    assert returned.failure is not None
    assert returned.failure.kind is ev.FailureKind.LISTENER
    driver.answer(assigns=False, epoch=-1)
    assert not driver.member.leaving


@pytest.mark.parametrize("ended", [True, False])
def test_n_tr_07_after_an_ignored_error_an_unsubscribe_waits_for_the_leave(ended: bool):
    """An error that comes while the listener runs is thrown by the next poll if the leave ends meanwhile."""
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.do(ev.LookupFailed(driver.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    driver.found()
    driver.do(ev.Unsubscribe(driver.now))
    driver.do(ev.LookupFailed(driver.now, ErrorCode.INVALID_GROUP_ID))
    driver.found()
    driver.done()
    assert driver.beat.member_epoch == -1
    assert not driver.all(ev.Returned)
    if ended:
        driver.answer(assigns=False, epoch=-1)
        (returned,) = driver.all(ev.Returned)
        assert returned.failure is None
        driver.do(ev.Subscribe(driver.now, frozenset({"t"})))
        failure = driver.poll()
    else:
        driver.do(ev.MetadataChanged(driver.now, ()))
        (returned,) = driver.all(ev.Returned)
        failure = returned.failure
    assert failure is not None
    assert failure.error is ErrorCode.INVALID_GROUP_ID


def test_n_err_02_a_fence_while_leaving_needs_no_leave_request():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    driver.do(ev.Unsubscribe(driver.now))
    driver.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    assert driver.state == "UNSUBSCRIBED"
    driver.done()
    assert not driver.beats
    assert driver.all(ev.Returned) == [ev.Returned()]


def test_n_tr_08_no_code_makes_a_member_that_has_left_fatal_except_in_kafka():
    for profile, state in ((None, "UNSUBSCRIBED"), (KAFKA_4_3, "FATAL")):
        driver = ConsumerDriver(**({} if profile is None else {"profile": profile}))
        driver.settle()
        driver.do(ev.Unsubscribe(driver.now))
        driver.refuse(ErrorCode.INVALID_REQUEST)
        assert driver.state == state
        assert len(driver.all(ev.Returned)) == 1


def test_v_94_group_id_not_found_ends_a_leave_from_4_2_on():
    for profile, state in ((KAFKA_4_1, "FATAL"), (KAFKA_4_2, "UNSUBSCRIBED")):
        driver = ConsumerDriver(profile=profile)
        driver.settle()
        driver.do(ev.Unsubscribe(driver.now))
        driver.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        assert driver.state == state


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_n_tr_09_a_stalled_program_leaves_without_being_asked_and_comes_back_with_a_poll(instance, epoch):
    driver = ConsumerDriver(group_instance_id=instance, max_poll_interval_ms=7_000)
    driver.settle(T0)
    driver.wait(INTERVAL)
    (heartbeat,) = driver.beats
    assert heartbeat.member_epoch == 1
    driver.wait(2_000)  # the heartbeat is in flight, and does not delay the leave
    assert (driver.state, driver.beat.member_epoch, driver.beat.topic_partitions) == ("STALE", epoch, ())
    assert driver.member.assignment == {T0}
    driver.poll()
    assert driver.calls() == [("lost", (T0,))]
    assert (driver.state, driver.beat.member_epoch) == ("JOINING", 0)


def test_n_hb_11_an_answer_from_before_the_leave_is_taken_for_the_joins_only_by_kafka():
    for profile, state in ((None, "JOINING"), (KAFKA_4_3, "RECONCILING")):
        driver = ConsumerDriver(max_poll_interval_ms=7_000, **({} if profile is None else {"profile": profile}))
        driver.settle(T0)
        driver.wait(INTERVAL)
        driver.wait(2_000)
        driver.poll()
        driver.answer(T0, T1, epoch=1, request=0)
        assert driver.state == state


def test_n_tr_09_the_answer_to_a_stale_leave_counts_for_nothing():
    driver = ConsumerDriver(max_poll_interval_ms=7_000)
    driver.settle()
    driver.wait(INTERVAL)
    driver.answer(assigns=False, epoch=1)
    driver.wait(2_000)
    assert driver.state == "STALE"
    driver.refuse(ErrorCode.INVALID_REQUEST)
    assert driver.state == "STALE"


def test_n_tr_11_a_fatal_error_is_thrown_once_and_is_permanent():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    driver.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
    failure = driver.poll()
    assert failure is not None
    assert failure.error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert (driver.state, driver.calls(), driver.member.assignment) == ("FATAL", [("lost", (T0,))], frozenset())
    assert driver.poll() is None
    driver.do(ev.Unsubscribe(driver.now))
    driver.do(ev.Subscribe(driver.now, frozenset({"t"})))
    assert driver.poll() is None
    driver.wait(100 * INTERVAL)
    assert (driver.state, driver.beats) == ("FATAL", [])


def test_n_tr_12_a_leave_without_coordinator_is_skipped():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.do(ev.CoordinatorLost(driver.now))
    driver.do(ev.Unsubscribe(driver.now))
    driver.done()
    assert (driver.state, driver.beats, len(driver.all(ev.Returned))) == ("UNSUBSCRIBED", [], 1)


def test_n_tr_13_the_poll_interval_is_not_checked_without_a_coordinator():
    driver = ConsumerDriver(max_poll_interval_ms=7_000)
    driver.settle(T0)
    driver.do(ev.CoordinatorLost(driver.now))
    driver.wait(60_000)
    driver.poll()
    driver.found()
    assert (driver.state, driver.beat.member_epoch) == ("STABLE", 1)


def test_n_tr_14_a_changed_subscription_travels_with_the_next_heartbeat_that_is_due():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.do(ev.Subscribe(driver.now, frozenset({"u"})))
    driver.poll()
    assert (driver.state, driver.beats) == ("STABLE", [])
    assert driver.member.subscription.fetchable == set()  # K-SUB-03
    driver.wait(INTERVAL)
    assert driver.beat.subscribed_topic_names == ("u",)


@pytest.mark.parametrize(
    ("option", "instance", "epochs"),
    [
        (ev.CloseOption.DEFAULT, None, [-1]),
        (ev.CloseOption.DEFAULT, "i", [-2]),
        (ev.CloseOption.LEAVE_GROUP, None, [-1]),
        (ev.CloseOption.LEAVE_GROUP, "i", [-1]),
        (ev.CloseOption.REMAIN_IN_GROUP, None, []),
        (ev.CloseOption.REMAIN_IN_GROUP, "i", [-2]),
    ],
)
def test_n_hb_09_leave_epoch_by_close_option(option, instance, epochs):
    driver = ConsumerDriver(group_instance_id=instance)
    driver.settle(T0)
    driver.do(ev.Close(driver.now, option))
    assert driver.calls() == [("revoked", (T0,))]
    driver.done()
    assert [beat.member_epoch for beat in driver.beats] == epochs
    assert len(driver.all(ev.Returned)) == 1 - len(epochs)


@pytest.mark.parametrize(
    ("profile", "instance", "epochs"),
    [
        (KAFKA_4_0, None, [-1]),
        (KAFKA_4_0, "i", [-2]),
        (KAFKA_4_1, "i", []),
        (KAFKA_4_2, "i", [-2]),
        (KAFKA_4_3, None, [-1]),
    ],
)
def test_v_92_remain_in_group_by_release(profile, instance, epochs):
    driver = ConsumerDriver(group_instance_id=instance, profile=profile)
    driver.settle()
    driver.do(ev.Close(driver.now, ev.CloseOption.REMAIN_IN_GROUP))
    assert [beat.member_epoch for beat in driver.beats] == epochs


def test_n_close_01_commits_then_calls_the_listener_then_leaves():
    driver = ConsumerDriver(auto_commit=True)
    driver.settle(T0)
    driver.do(ev.Close(driver.now))
    (commit,) = driver.all(ev.Commit)
    assert (commit.partitions, driver.calls()) == ({T0}, [])
    driver.do(ev.CommitFinished(driver.now, commit_id=commit.commit_id, result=ev.CommitResult.FAILED))
    assert driver.calls() == [("revoked", (T0,))]
    driver.done()
    assert driver.beat.member_epoch == -1
    with pytest.raises(IllegalEvent):
        driver.do(ev.Poll(driver.now))


def test_inv_cl_01_a_waiting_revocation_is_called_once_except_in_kafka():
    """The member is fenced while the revocation of T1 waits for a poll."""
    for profile, expected in ((None, ["lost"]), (KAFKA_4_3, ["revoked", "lost"])):
        driver = ConsumerDriver(auto_commit=True, **({} if profile is None else {"profile": profile}))
        driver.start()
        driver.answer(T0, T1)
        driver.poll()
        driver.answer(T0, epoch=2)
        driver.poll()
        (commit,) = driver.all(ev.Commit)
        driver.do(ev.CommitFinished(driver.now, commit_id=commit.commit_id, result=ev.CommitResult.DONE))
        driver.calls()
        driver.wait(INTERVAL)
        driver.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        driver.poll()
        assert [call for call, partitions in driver.calls() if T1 in partitions] == expected
        assert driver.state == "JOINING"


def test_k_sub_01_one_way_of_subscribing_at_a_time():
    member = ConsumerMember(ConsumerSettings("g"), "me")
    ways = (
        ev.Subscribe(0, frozenset({"t"})),
        ev.SubscribePattern(0, "t.*"),
        ev.SubscribeRegex(0, "t.*"),
    )
    for first in ways:
        subscribed, _ = consumer_step(member, first)
        for second in ways:
            if second is not first:
                with pytest.raises(ValueError, match="subscribed"):
                    consumer_step(subscribed, second)


def test_k_join_15_a_client_pattern_is_matched_again_at_a_poll():
    driver = ConsumerDriver()
    driver.do(ev.MetadataChanged(driver.now, ()))
    driver.found()
    driver.do(ev.SubscribePattern(driver.now, "t|u"))
    driver.poll()
    assert driver.beat.subscribed_topic_names == ()
    driver.answer(assigns=True)
    driver.poll()
    driver.answer(assigns=False)
    driver.do(ev.MetadataChanged(driver.now, (ev.Topic("t", T, 1),)))
    driver.poll()
    driver.wait(INTERVAL)
    assert driver.beat.subscribed_topic_names == ("t",)


def test_n_poll_04_enforce_rebalance_does_nothing():
    driver = ConsumerDriver()
    driver.settle(T0)
    before = driver.member
    assert driver.do(ev.EnforceRebalance(driver.now)) == ()
    assert driver.member == before


def test_illegal_events_change_nothing():
    driver = ConsumerDriver()
    driver.settle(T0)
    for event in (ev.ListenerDone(driver.now), ev.MemberTimerFired(driver.now, ev.MemberTimer.RETRY)):
        with pytest.raises(IllegalEvent):
            driver.do(event)
    driver.do(ev.Unsubscribe(driver.now))
    with pytest.raises(IllegalEvent):
        driver.do(ev.Poll(driver.now))


def test_n_tr_06_an_assignment_after_a_fence_is_new():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    driver.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    driver.poll()
    driver.calls()
    driver.answer(topics=(TopicPartitions(T, (0, 2)),), epoch=5)
    driver.poll()
    assert driver.calls() == [("assigned", (T0, T2))]
    assert driver.beat.member_epoch == 5


def test_n_tr_07_a_fenced_member_that_unsubscribes_calls_the_listener_and_no_coordinator():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    driver.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    assert driver.state == "FENCED"
    driver.do(ev.Unsubscribe(driver.now))
    assert (driver.state, driver.member.assignment) == ("UNSUBSCRIBED", frozenset())
    assert driver.calls() == [("lost", (T0,))]
    driver.done()
    assert len(driver.all(ev.Returned)) == 1
    assert not driver.beats
    assert driver.poll() is None
    assert not driver.beats


def test_n_err_06_a_leave_ends_when_its_connection_breaks():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.do(ev.Close(driver.now))
    driver.done()
    assert driver.beat.member_epoch == -1
    assert not driver.all(ev.Returned)
    driver.do(ev.CoordinatorLost(driver.now))
    (returned,) = driver.all(ev.Returned)
    assert returned.failure is None
    assert not driver.all(ev.FindCoordinator)  # K-FIND-01: the member is closed
