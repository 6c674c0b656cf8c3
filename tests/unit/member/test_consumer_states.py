"""States and transitions of the KIP-848 member (8.9), its poll and its leave (8.12), by rule."""

from __future__ import annotations

import pytest

from fencepost.member import events as ev
from fencepost.member.consumer import ConsumerMember, ConsumerSettings, IllegalEvent, consumer_step
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3

from .consumer_desk import INTERVAL, T0, T1, T2, ConsumerDesk, T, rows


def test_n_tr_01_the_first_poll_after_subscribe_joins_at_epoch_0():
    desk = ConsumerDesk()
    desk.do(ev.Subscribe(desk.now, frozenset({"t"})))
    assert desk.state == "UNSUBSCRIBED"
    desk.found()
    assert not desk.beats
    assert desk.poll() is None
    assert (desk.state, desk.beat.member_epoch, desk.beat.member_id) == ("JOINING", 0, "me")


def test_n_tr_02_the_first_assignment_is_reconciled_even_if_it_is_empty():
    desk = ConsumerDesk()
    desk.start()
    desk.answer()
    assert desk.state == "RECONCILING"
    desk.poll()
    assert desk.calls() == [("assigned", ())]
    assert desk.beat.topic_partitions == ()
    assert desk.state == "STABLE"


def test_n_tr_03_without_assignment_a_joining_member_sends_everything_again_at_the_new_epoch():
    desk = ConsumerDesk()
    desk.start()
    desk.answer(assigns=False, epoch=3)
    assert desk.state == "JOINING"
    assert desk.beat.member_epoch == 3
    assert desk.beat.subscribed_topic_names == ("t",)


def test_n_tr_05_sending_the_acknowledgement_is_enough():
    desk = ConsumerDesk()
    desk.start()
    desk.answer(T0)
    desk.poll()
    assert desk.calls() == [("assigned", (T0,))]
    assert desk.beat.topic_partitions == rows(T0)
    assert desk.state == "STABLE"
    assert desk.member.assignment == {T0}


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_n_tr_06_a_fenced_member_is_silent_until_its_listener_has_run_and_then_joins(error):
    desk = ConsumerDesk()
    desk.settle(T0, T1)
    desk.wait(INTERVAL)
    desk.refuse(error)
    assert (desk.state, desk.member.epoch) == ("FENCED", 0)
    assert desk.member.subscription.fetchable == set()
    desk.wait(10 * INTERVAL)
    assert not desk.beats
    desk.poll(error="thrown")
    assert desk.calls() == [("lost", (T0, T1))]
    assert (desk.state, desk.beat.member_epoch, desk.beat.topic_partitions) == ("JOINING", 0, ())


def test_n_tr_06_without_listener_or_partitions_the_join_goes_out_in_the_same_step():
    for desk in (ConsumerDesk(listener=False), ConsumerDesk()):
        desk.settle(*([T0] if not desk.member.settings.listener else []))
        desk.wait(INTERVAL)
        desk.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert (desk.state, desk.beat.member_epoch, desk.member.assignment) == ("JOINING", 0, frozenset())


def test_v_98_a_fenced_member_may_still_fetch_before_4_3():
    for profile, fetchable in ((KAFKA_4_2, {T0}), (KAFKA_4_3, set())):
        desk = ConsumerDesk(profile=profile)
        desk.settle(T0)
        desk.wait(INTERVAL)
        desk.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        assert desk.member.subscription.fetchable == fetchable


def test_n_tr_07_unsubscribe_tells_then_leaves_and_returns_when_that_is_answered():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.do(ev.Unsubscribe(desk.now))
    assert (desk.state, desk.calls()) == ("PREPARE_LEAVING", [("revoked", (T0,))])
    desk.done()
    assert (desk.state, desk.beat.member_epoch) == ("UNSUBSCRIBED", -1)
    assert (desk.beat.subscribed_topic_names, desk.beat.topic_partitions) == ((), ())
    assert not desk.all(ev.Returned)
    desk.answer(assigns=False, epoch=-1)
    assert desk.all(ev.Returned) == [ev.Returned()]
    assert desk.member.commits_as == ("me", -1)  # N-CMT-01


def test_n_tr_07_a_leave_continues_after_a_listener_that_throws():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.do(ev.Unsubscribe(desk.now))
    desk.done("thrown")
    assert desk.beat.member_epoch == -1
    (returned,) = desk.all(ev.Returned)  # immediately, not when the leave is answered
    assert returned.failure is not None
    assert returned.failure.kind is ev.FailureKind.LISTENER
    desk.answer(assigns=False, epoch=-1)
    assert not desk.member.leaving


@pytest.mark.parametrize("ended", [True, False])
def test_n_tr_07_after_an_ignored_error_an_unsubscribe_waits_for_the_leave(ended: bool):
    """An error that comes while the listener runs is thrown by the next poll if the leave ends meanwhile."""
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.do(ev.LookupFailed(desk.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    desk.found()
    desk.do(ev.Unsubscribe(desk.now))
    desk.do(ev.LookupFailed(desk.now, ErrorCode.INVALID_GROUP_ID))
    desk.found()
    desk.done()
    assert desk.beat.member_epoch == -1
    assert not desk.all(ev.Returned)
    if ended:
        desk.answer(assigns=False, epoch=-1)
        (returned,) = desk.all(ev.Returned)
        assert returned.failure is None
        desk.do(ev.Subscribe(desk.now, frozenset({"t"})))
        failure = desk.poll()
    else:
        desk.do(ev.MetadataChanged(desk.now, ()))
        (returned,) = desk.all(ev.Returned)
        failure = returned.failure
    assert failure is not None
    assert failure.error is ErrorCode.INVALID_GROUP_ID


def test_n_err_02_a_fence_while_leaving_needs_no_leave_request():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    desk.do(ev.Unsubscribe(desk.now))
    desk.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    assert desk.state == "UNSUBSCRIBED"
    desk.done()
    assert not desk.beats
    assert desk.all(ev.Returned) == [ev.Returned()]


def test_n_tr_08_no_code_makes_a_member_that_has_left_fatal_except_in_kafka():
    for profile, state in ((None, "UNSUBSCRIBED"), (KAFKA_4_3, "FATAL")):
        desk = ConsumerDesk(**({} if profile is None else {"profile": profile}))
        desk.settle()
        desk.do(ev.Unsubscribe(desk.now))
        desk.refuse(ErrorCode.INVALID_REQUEST)
        assert desk.state == state
        assert len(desk.all(ev.Returned)) == 1


def test_v_94_group_id_not_found_ends_a_leave_from_4_2_on():
    for profile, state in ((KAFKA_4_1, "FATAL"), (KAFKA_4_2, "UNSUBSCRIBED")):
        desk = ConsumerDesk(profile=profile)
        desk.settle()
        desk.do(ev.Unsubscribe(desk.now))
        desk.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        assert desk.state == state


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_n_tr_09_a_stalled_program_leaves_without_being_asked_and_comes_back_with_a_poll(instance, epoch):
    desk = ConsumerDesk(group_instance_id=instance, max_poll_interval_ms=7_000)
    desk.settle(T0)
    desk.wait(INTERVAL)
    (heartbeat,) = desk.beats
    assert heartbeat.member_epoch == 1
    desk.wait(2_000)  # the heartbeat is in flight, and does not delay the leave
    assert (desk.state, desk.beat.member_epoch, desk.beat.topic_partitions) == ("STALE", epoch, ())
    assert desk.member.assignment == {T0}
    desk.poll()
    assert desk.calls() == [("lost", (T0,))]
    assert (desk.state, desk.beat.member_epoch) == ("JOINING", 0)


def test_n_hb_11_an_answer_from_before_the_leave_is_taken_for_the_joins_only_by_kafka():
    for profile, state in ((None, "JOINING"), (KAFKA_4_3, "RECONCILING")):
        desk = ConsumerDesk(max_poll_interval_ms=7_000, **({} if profile is None else {"profile": profile}))
        desk.settle(T0)
        desk.wait(INTERVAL)
        desk.wait(2_000)
        desk.poll()
        desk.answer(T0, T1, epoch=1, request=0)
        assert desk.state == state


def test_n_tr_09_the_answer_to_a_stale_leave_counts_for_nothing():
    desk = ConsumerDesk(max_poll_interval_ms=7_000)
    desk.settle()
    desk.wait(INTERVAL)
    desk.answer(assigns=False, epoch=1)
    desk.wait(2_000)
    assert desk.state == "STALE"
    desk.refuse(ErrorCode.INVALID_REQUEST)
    assert desk.state == "STALE"


def test_n_tr_11_a_fatal_error_is_thrown_once_and_is_permanent():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    desk.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
    failure = desk.poll()
    assert failure is not None
    assert failure.error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert (desk.state, desk.calls(), desk.member.assignment) == ("FATAL", [("lost", (T0,))], frozenset())
    assert desk.poll() is None
    desk.do(ev.Unsubscribe(desk.now))
    desk.do(ev.Subscribe(desk.now, frozenset({"t"})))
    assert desk.poll() is None
    desk.wait(100 * INTERVAL)
    assert (desk.state, desk.beats) == ("FATAL", [])


def test_n_tr_12_a_leave_without_coordinator_is_skipped():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.do(ev.CoordinatorLost(desk.now))
    desk.do(ev.Unsubscribe(desk.now))
    desk.done()
    assert (desk.state, desk.beats, len(desk.all(ev.Returned))) == ("UNSUBSCRIBED", [], 1)


def test_n_tr_13_the_poll_interval_is_not_looked_at_without_a_coordinator():
    desk = ConsumerDesk(max_poll_interval_ms=7_000)
    desk.settle(T0)
    desk.do(ev.CoordinatorLost(desk.now))
    desk.wait(60_000)
    desk.poll()
    desk.found()
    assert (desk.state, desk.beat.member_epoch) == ("STABLE", 1)


def test_n_tr_14_a_changed_subscription_travels_with_the_next_heartbeat_that_is_due():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.do(ev.Subscribe(desk.now, frozenset({"u"})))
    desk.poll()
    assert (desk.state, desk.beats) == ("STABLE", [])
    assert desk.member.subscription.fetchable == set()  # K-SUB-03
    desk.wait(INTERVAL)
    assert desk.beat.subscribed_topic_names == ("u",)


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
    desk = ConsumerDesk(group_instance_id=instance)
    desk.settle(T0)
    desk.do(ev.Close(desk.now, option))
    assert desk.calls() == [("revoked", (T0,))]
    desk.done()
    assert [beat.member_epoch for beat in desk.beats] == epochs
    assert len(desk.all(ev.Returned)) == 1 - len(epochs)


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
    desk = ConsumerDesk(group_instance_id=instance, profile=profile)
    desk.settle()
    desk.do(ev.Close(desk.now, ev.CloseOption.REMAIN_IN_GROUP))
    assert [beat.member_epoch for beat in desk.beats] == epochs


def test_n_close_01_commits_then_tells_then_leaves():
    desk = ConsumerDesk(auto_commit=True)
    desk.settle(T0)
    desk.do(ev.Close(desk.now))
    (commit,) = desk.all(ev.Commit)
    assert (commit.partitions, desk.calls()) == ({T0}, [])
    desk.do(ev.CommitFinished(desk.now, commit_id=commit.commit_id, result=ev.CommitResult.FAILED))
    assert desk.calls() == [("revoked", (T0,))]
    desk.done()
    assert desk.beat.member_epoch == -1
    with pytest.raises(IllegalEvent):
        desk.do(ev.Poll(desk.now))


def test_inv_cl_01_a_waiting_revocation_is_called_once_except_in_kafka():
    """The member is fenced while the revocation of T1 waits for a poll."""
    for profile, told in ((None, ["lost"]), (KAFKA_4_3, ["revoked", "lost"])):
        desk = ConsumerDesk(auto_commit=True, **({} if profile is None else {"profile": profile}))
        desk.start()
        desk.answer(T0, T1)
        desk.poll()
        desk.answer(T0, epoch=2)
        desk.poll()
        (commit,) = desk.all(ev.Commit)
        desk.do(ev.CommitFinished(desk.now, commit_id=commit.commit_id, result=ev.CommitResult.DONE))
        desk.calls()
        desk.wait(INTERVAL)
        desk.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        desk.poll()
        assert [call for call, partitions in desk.calls() if T1 in partitions] == told
        assert desk.state == "JOINING"


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


def test_k_join_15_a_client_pattern_is_matched_anew_at_a_poll():
    desk = ConsumerDesk()
    desk.do(ev.MetadataChanged(desk.now, ()))
    desk.found()
    desk.do(ev.SubscribePattern(desk.now, "t|u"))
    desk.poll()
    assert desk.beat.subscribed_topic_names == ()
    desk.answer(assigns=True)
    desk.poll()
    desk.answer(assigns=False)
    desk.do(ev.MetadataChanged(desk.now, (ev.Topic("t", T, 1),)))
    desk.poll()
    desk.wait(INTERVAL)
    assert desk.beat.subscribed_topic_names == ("t",)


def test_n_poll_04_enforce_rebalance_does_nothing():
    desk = ConsumerDesk()
    desk.settle(T0)
    before = desk.member
    assert desk.do(ev.EnforceRebalance(desk.now)) == ()
    assert desk.member == before


def test_illegal_events_change_nothing():
    desk = ConsumerDesk()
    desk.settle(T0)
    for event in (ev.ListenerDone(desk.now), ev.MemberTimerFired(desk.now, ev.MemberTimer.RETRY)):
        with pytest.raises(IllegalEvent):
            desk.do(event)
    desk.do(ev.Unsubscribe(desk.now))
    with pytest.raises(IllegalEvent):
        desk.do(ev.Poll(desk.now))


def test_n_tr_06_an_assignment_after_a_fence_is_new():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    desk.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    desk.poll()
    desk.calls()
    desk.answer(topics=(TopicPartitions(T, (0, 2)),), epoch=5)
    desk.poll()
    assert desk.calls() == [("assigned", (T0, T2))]
    assert desk.beat.member_epoch == 5


def test_n_tr_07_a_fenced_member_that_unsubscribes_calls_the_listener_and_no_coordinator():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    desk.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    assert desk.state == "FENCED"
    desk.do(ev.Unsubscribe(desk.now))
    assert (desk.state, desk.member.assignment) == ("UNSUBSCRIBED", frozenset())
    assert desk.calls() == [("lost", (T0,))]
    desk.done()
    assert len(desk.all(ev.Returned)) == 1
    assert not desk.beats
    assert desk.poll() is None
    assert not desk.beats


def test_n_err_06_a_leave_ends_when_its_connection_breaks():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.do(ev.Close(desk.now))
    desk.done()
    assert desk.beat.member_epoch == -1
    assert not desk.all(ev.Returned)
    desk.do(ev.CoordinatorLost(desk.now))
    (returned,) = desk.all(ev.Returned)
    assert returned.failure is None
    assert not desk.all(ev.FindCoordinator)  # K-FIND-01: the member is closed
