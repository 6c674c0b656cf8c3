"""The heartbeats of a KIP-848 member, and its reactions to answers (8.10), by rule."""

from __future__ import annotations

import pytest

from fencepost.member import events as ev
from fencepost.member.consumer import IllegalEvent
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatResponse
from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_1, KAFKA_4_3

from .consumer_desk import INTERVAL, T0, T1, ConsumerDesk, rows


def test_n_hb_02_the_join_is_complete_and_later_heartbeats_carry_changes():
    desk = ConsumerDesk(rack="r", server_assignor="uniform", group_instance_id="i", max_poll_interval_ms=60_000)
    desk.start("t", "u")
    join = desk.beat
    assert (join.group_id, join.instance_id, join.rack_id, join.rebalance_timeout_ms) == ("g", "i", "r", 60_000)
    assert (join.subscribed_topic_names, join.server_assignor, join.topic_partitions) == (("t", "u"), "uniform", ())
    assert join.subscribed_topic_regex is None
    desk.settle(T0)
    desk.wait(INTERVAL)
    later = desk.beat
    assert (later.member_id, later.member_epoch, later.instance_id) == ("me", 1, "i")
    assert (later.rack_id, later.rebalance_timeout_ms, later.server_assignor) == (None, -1, None)
    assert (later.subscribed_topic_names, later.topic_partitions) == (None, None)


def test_v_90_no_rack_in_4_0():
    desk = ConsumerDesk(rack="r", profile=KAFKA_4_0)
    desk.start()
    assert desk.beat.rack_id is None


def test_n_hb_02_a_regex_goes_beside_an_empty_list_of_names():
    desk = ConsumerDesk()
    desk.found()
    desk.do(ev.SubscribeRegex(desk.now, "t.*"))
    desk.poll()
    assert (desk.beat.subscribed_topic_names, desk.beat.subscribed_topic_regex) == ((), "t.*")
    desk.answer(T0)
    desk.do(ev.Unsubscribe(desk.now))
    assert desk.beat.subscribed_topic_regex == ""


def test_n_hb_02_a_regex_needs_version_1():
    desk = ConsumerDesk(version=0)
    desk.found()
    desk.do(ev.SubscribeRegex(desk.now, "t.*"))
    desk.poll()
    assert (desk.state, desk.beats) == ("FATAL", [])
    failure = desk.poll()
    assert failure is not None
    assert failure.error is ErrorCode.UNSUPPORTED_VERSION


def test_n_hb_03_the_same_set_reconciled_anew_is_acknowledged_anew():
    """The target changes from A to B and back before the member reconciles: it has nothing to do, and must report that
    to the coordinator."""
    desk = ConsumerDesk()
    desk.settle(T0, T1)
    desk.target(T0, epoch=2)
    desk.wait(INTERVAL)
    desk.answer(T0, T1, epoch=3)
    assert desk.calls() == []
    assert (desk.state, desk.beat.topic_partitions, desk.beat.member_epoch) == ("STABLE", rows(T0, T1), 3)


@pytest.mark.parametrize("lost", [False, True])
def test_n_hb_04_after_a_failure_the_heartbeat_is_complete_except_for_the_rack(lost):
    desk = ConsumerDesk(rack="r", server_assignor="range")
    desk.settle(T0)
    desk.wait(INTERVAL)
    if lost:
        desk.do(ev.RequestLost(desk.now, request_id=desk.member.sent[-1].request_id))
        desk.found()
    else:
        desk.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    desk.wait(1_000)
    full = desk.beat
    assert (full.member_epoch, full.rebalance_timeout_ms, full.server_assignor) == (1, 300_000, "range")
    assert (full.subscribed_topic_names, full.topic_partitions, full.rack_id) == (("t",), rows(T0), None)


def test_n_hb_06_one_heartbeat_in_flight():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    assert len(desk.beats) == 1
    desk.wait(10 * INTERVAL)
    assert not desk.beats


def test_n_hb_07_the_interval_is_the_coordinators_and_runs_from_the_answer():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL - 1)
    assert not desk.beats
    desk.wait(1)
    assert len(desk.beats) == 1


def test_n_hb_07_back_off_doubles_up_to_a_second_with_jitter():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    for delay in (120, 240, 480, 960, 1_000):
        desk.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, jitter=1.2)
        desk.wait(delay - 1)
        assert not desk.beats, delay
        desk.wait(1)
        assert len(desk.beats) == 1, delay


@pytest.mark.parametrize(("jitter", "delay"), [(0.9, 0), (1.1, 1_000)])
def test_v_93_the_jitter_of_4_0_and_4_1_is_the_poll_interval(jitter, delay):
    desk = ConsumerDesk(profile=KAFKA_4_1)
    desk.settle(T0)
    desk.wait(INTERVAL)
    sent = desk.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, jitter=jitter)
    assert any(isinstance(command, ev.Send) for command in sent) is (delay == 0)
    if delay:
        desk.wait(delay - 1)
        assert not desk.beats
        desk.wait(1)
        assert len(desk.beats) == 1


def test_n_err_03_a_joining_member_waits_too_except_in_kafka():
    for profile, at_once in ((None, False), (KAFKA_4_3, True)):
        desk = ConsumerDesk(**({} if profile is None else {"profile": profile}))
        desk.start()
        desk.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert bool(desk.beats) is at_once
        desk.wait(100)
        assert bool(desk.beats) is not at_once
        assert desk.state == "JOINING"


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_n_err_01_another_coordinator_is_asked_at_once(error):
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    desk.refuse(error)
    assert desk.member.coordinator.node is None
    assert len(desk.all(ev.FindCoordinator)) == 1
    assert desk.state == "STABLE"
    desk.found()
    assert desk.beat.topic_partitions == rows(T0)


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_n_err_04_n_err_05_every_other_code_is_fatal(error):
    desk = ConsumerDesk()
    desk.start()
    desk.refuse(error)
    assert desk.state == "FATAL"
    failure = desk.poll()
    assert failure is not None
    assert failure.error is error


def test_n_err_07_a_topic_that_may_not_be_described_is_thrown_and_tried_again():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    desk.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    failure = desk.poll()
    assert failure is not None
    assert failure.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (desk.state, desk.member.epoch) == ("STABLE", 1)
    desk.wait(100)
    assert len(desk.beats) == 1
    assert desk.poll() is None


def test_n_hb_10_any_epoch_is_taken_but_a_negative_one():
    desk = ConsumerDesk()
    desk.settle(T0, epoch=5)
    desk.wait(INTERVAL)
    desk.answer(assigns=False, epoch=3)
    assert desk.member.epoch == 3
    desk.wait(INTERVAL)
    desk.answer(assigns=False, epoch=-1)
    assert desk.member.epoch == 3


def test_v_91_a_negative_epoch_is_taken_in_4_0():
    desk = ConsumerDesk(profile=KAFKA_4_0)
    desk.settle(T0)
    desk.wait(INTERVAL)
    desk.answer(assigns=False, epoch=-1)
    assert desk.member.epoch == -1


def test_n_hb_10_a_leaving_member_takes_the_epoch_and_not_the_assignment():
    desk = ConsumerDesk()
    desk.settle(T0)
    desk.wait(INTERVAL)
    desk.do(ev.Unsubscribe(desk.now))
    desk.answer(T0, T1, epoch=4)
    assert (desk.state, desk.member.epoch) == ("PREPARE_LEAVING", 4)
    desk.wait(INTERVAL)
    assert desk.beat.member_epoch == 4


def test_n_hb_06_the_leave_goes_out_beside_a_heartbeat_in_flight():
    desk = ConsumerDesk()
    desk.settle()
    desk.wait(INTERVAL)
    assert len(desk.member.sent) == 1
    desk.do(ev.Unsubscribe(desk.now))
    assert desk.beat.member_epoch == -1
    desk.answer(T0, epoch=7, request=0)
    assert (desk.state, desk.all(ev.Returned)) == ("UNSUBSCRIBED", [])
    desk.answer(assigns=False, epoch=-1)
    assert len(desk.all(ev.Returned)) == 1


def test_n_cmt_01_commits_carry_the_id_once_there_was_an_epoch():
    desk = ConsumerDesk()
    assert desk.member.commits_as == ("", -1)
    desk.settle(T0, epoch=4)
    assert desk.member.commits_as == ("me", 4)
    desk.wait(INTERVAL)
    desk.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    assert desk.member.commits_as == ("me", -1)


def test_k_find_01_a_look_up_is_retried_and_a_fatal_error_is_thrown():
    desk = ConsumerDesk()
    desk.do(ev.Subscribe(desk.now, frozenset({"t"})))
    assert len(desk.all(ev.FindCoordinator)) == 1
    desk.do(ev.LookupFailed(desk.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    failure = desk.poll()
    assert failure is not None
    assert failure.error is ErrorCode.GROUP_AUTHORIZATION_FAILED
    desk.wait(100)
    assert len(desk.all(ev.FindCoordinator)) == 1
    desk.do(ev.LookupFailed(desk.now, None))
    assert desk.poll() is None


def test_an_answer_to_something_else_is_refused():
    desk = ConsumerDesk()
    desk.start()
    with pytest.raises(IllegalEvent):
        desk.do(
            ev.Answered(desk.now, request_id=desk.member.sent[0].request_id, body=HeartbeatResponse(ErrorCode.NONE))
        )


def test_n_hb_05_owned_partitions_are_reported_before_their_callback_ends_except_in_kafka():
    """The assigned callback runs when a full heartbeat is due: a coordinator that wants T1 back would take its absence
    for the revocation."""
    for profile, reported in ((None, rows(T0, T1)), (KAFKA_4_3, rows(T0))):
        desk = ConsumerDesk(**({} if profile is None else {"profile": profile}))
        desk.settle(T0)
        desk.target(T0, T1)
        desk.do(ev.Poll(desk.now))
        desk.wait(INTERVAL)
        desk.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        desk.wait(1_000)
        assert desk.beat.topic_partitions == reported
