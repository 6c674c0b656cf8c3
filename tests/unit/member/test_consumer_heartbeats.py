"""The heartbeats of a KIP-848 member, and its reactions to answers (8.10), by rule."""

from __future__ import annotations

import pytest

from fencepost.member import events as ev
from fencepost.member.consumer import IllegalEvent
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatResponse
from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_1, KAFKA_4_3

from .consumer_driver import INTERVAL, T0, T1, ConsumerDriver, rows


def test_n_hb_02_the_join_is_complete_and_later_heartbeats_carry_changes():
    driver = ConsumerDriver(rack="r", server_assignor="uniform", group_instance_id="i", max_poll_interval_ms=60_000)
    driver.start("t", "u")
    join = driver.beat
    assert (join.group_id, join.instance_id, join.rack_id, join.rebalance_timeout_ms) == ("g", "i", "r", 60_000)
    assert (join.subscribed_topic_names, join.server_assignor, join.topic_partitions) == (("t", "u"), "uniform", ())
    assert join.subscribed_topic_regex is None
    driver.settle(T0)
    driver.wait(INTERVAL)
    later = driver.beat
    assert (later.member_id, later.member_epoch, later.instance_id) == ("me", 1, "i")
    assert (later.rack_id, later.rebalance_timeout_ms, later.server_assignor) == (None, -1, None)
    assert (later.subscribed_topic_names, later.topic_partitions) == (None, None)


def test_v_90_no_rack_in_4_0():
    driver = ConsumerDriver(rack="r", profile=KAFKA_4_0)
    driver.start()
    assert driver.beat.rack_id is None


def test_n_hb_02_a_regex_is_sent_with_an_empty_list_of_names():
    driver = ConsumerDriver()
    driver.found()
    driver.do(ev.SubscribeRegex(driver.now, "t.*"))
    driver.poll()
    assert (driver.beat.subscribed_topic_names, driver.beat.subscribed_topic_regex) == ((), "t.*")
    driver.answer(T0)
    driver.do(ev.Unsubscribe(driver.now))
    assert driver.beat.subscribed_topic_regex == ""


def test_n_hb_02_a_regex_needs_version_1():
    driver = ConsumerDriver(version=0)
    driver.found()
    driver.do(ev.SubscribeRegex(driver.now, "t.*"))
    driver.poll()
    assert (driver.state, driver.beats) == ("FATAL", [])
    failure = driver.poll()
    assert failure is not None
    assert failure.error is ErrorCode.UNSUPPORTED_VERSION


def test_n_hb_03_the_same_set_reconciled_again_is_acknowledged_again():
    """The target changes from A to B and back before the member reconciles: it has nothing to do, and must report that
    to the coordinator."""
    driver = ConsumerDriver()
    driver.settle(T0, T1)
    driver.target(T0, epoch=2)
    driver.wait(INTERVAL)
    driver.answer(T0, T1, epoch=3)
    assert driver.calls() == []
    assert (driver.state, driver.beat.topic_partitions, driver.beat.member_epoch) == ("STABLE", rows(T0, T1), 3)


@pytest.mark.parametrize("lost", [False, True])
def test_n_hb_04_after_a_failure_the_heartbeat_is_complete_except_for_the_rack(lost):
    driver = ConsumerDriver(rack="r", server_assignor="range")
    driver.settle(T0)
    driver.wait(INTERVAL)
    if lost:
        driver.do(ev.RequestLost(driver.now, request_id=driver.member.sent[-1].request_id))
        driver.found()
    else:
        driver.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    driver.wait(1_000)
    full = driver.beat
    assert (full.member_epoch, full.rebalance_timeout_ms, full.server_assignor) == (1, 300_000, "range")
    assert (full.subscribed_topic_names, full.topic_partitions, full.rack_id) == (("t",), rows(T0), None)


def test_n_hb_06_one_heartbeat_in_flight():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    assert len(driver.beats) == 1
    driver.wait(10 * INTERVAL)
    assert not driver.beats


def test_n_hb_07_the_interval_is_the_coordinators_and_runs_from_the_answer():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL - 1)
    assert not driver.beats
    driver.wait(1)
    assert len(driver.beats) == 1


def test_n_hb_07_back_off_doubles_up_to_a_second_with_jitter():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    for delay in (120, 240, 480, 960, 1_000):
        driver.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, jitter=1.2)
        driver.wait(delay - 1)
        assert not driver.beats, delay
        driver.wait(1)
        assert len(driver.beats) == 1, delay


@pytest.mark.parametrize(("jitter", "delay"), [(0.9, 0), (1.1, 1_000)])
def test_v_93_the_jitter_of_4_0_and_4_1_is_the_poll_interval(jitter, delay):
    driver = ConsumerDriver(profile=KAFKA_4_1)
    driver.settle(T0)
    driver.wait(INTERVAL)
    sent = driver.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, jitter=jitter)
    assert any(isinstance(command, ev.Send) for command in sent) is (delay == 0)
    if delay:
        driver.wait(delay - 1)
        assert not driver.beats
        driver.wait(1)
        assert len(driver.beats) == 1


def test_n_err_03_a_joining_member_waits_too_except_in_kafka():
    for profile, at_once in ((None, False), (KAFKA_4_3, True)):
        driver = ConsumerDriver(**({} if profile is None else {"profile": profile}))
        driver.start()
        driver.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert bool(driver.beats) is at_once
        driver.wait(100)
        assert bool(driver.beats) is not at_once
        assert driver.state == "JOINING"


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_n_err_01_another_coordinator_is_asked_immediately(error):
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    driver.refuse(error)
    assert driver.member.coordinator.node is None
    assert len(driver.all(ev.FindCoordinator)) == 1
    assert driver.state == "STABLE"
    driver.found()
    assert driver.beat.topic_partitions == rows(T0)


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
    driver = ConsumerDriver()
    driver.start()
    driver.refuse(error)
    assert driver.state == "FATAL"
    failure = driver.poll()
    assert failure is not None
    assert failure.error is error


def test_n_err_07_a_topic_that_may_not_be_described_is_thrown_and_tried_again():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    driver.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    failure = driver.poll()
    assert failure is not None
    assert failure.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (driver.state, driver.member.epoch) == ("STABLE", 1)
    driver.wait(100)
    assert len(driver.beats) == 1
    assert driver.poll() is None


def test_n_hb_10_any_epoch_is_taken_but_a_negative_one():
    driver = ConsumerDriver()
    driver.settle(T0, epoch=5)
    driver.wait(INTERVAL)
    driver.answer(assigns=False, epoch=3)
    assert driver.member.epoch == 3
    driver.wait(INTERVAL)
    driver.answer(assigns=False, epoch=-1)
    assert driver.member.epoch == 3


def test_v_91_a_negative_epoch_is_taken_in_4_0():
    driver = ConsumerDriver(profile=KAFKA_4_0)
    driver.settle(T0)
    driver.wait(INTERVAL)
    driver.answer(assigns=False, epoch=-1)
    assert driver.member.epoch == -1


def test_n_hb_10_a_leaving_member_takes_the_epoch_and_not_the_assignment():
    driver = ConsumerDriver()
    driver.settle(T0)
    driver.wait(INTERVAL)
    driver.do(ev.Unsubscribe(driver.now))
    driver.answer(T0, T1, epoch=4)
    assert (driver.state, driver.member.epoch) == ("PREPARE_LEAVING", 4)
    driver.wait(INTERVAL)
    assert driver.beat.member_epoch == 4


def test_n_hb_06_the_leave_is_sent_beside_a_heartbeat_in_flight():
    driver = ConsumerDriver()
    driver.settle()
    driver.wait(INTERVAL)
    assert len(driver.member.sent) == 1
    driver.do(ev.Unsubscribe(driver.now))
    assert driver.beat.member_epoch == -1
    driver.answer(T0, epoch=7, request=0)
    assert (driver.state, driver.all(ev.Returned)) == ("UNSUBSCRIBED", [])
    driver.answer(assigns=False, epoch=-1)
    assert len(driver.all(ev.Returned)) == 1


def test_n_cmt_01_commits_carry_the_id_once_there_was_an_epoch():
    driver = ConsumerDriver()
    assert driver.member.commits_as == ("", -1)
    driver.settle(T0, epoch=4)
    assert driver.member.commits_as == ("me", 4)
    driver.wait(INTERVAL)
    driver.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    assert driver.member.commits_as == ("me", -1)


def test_k_find_01_a_look_up_is_retried_and_a_fatal_error_is_thrown():
    driver = ConsumerDriver()
    driver.do(ev.Subscribe(driver.now, frozenset({"t"})))
    assert len(driver.all(ev.FindCoordinator)) == 1
    driver.do(ev.LookupFailed(driver.now, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    failure = driver.poll()
    assert failure is not None
    assert failure.error is ErrorCode.GROUP_AUTHORIZATION_FAILED
    driver.wait(100)
    assert len(driver.all(ev.FindCoordinator)) == 1
    driver.do(ev.LookupFailed(driver.now, None))
    assert driver.poll() is None


def test_an_answer_to_something_else_is_refused():
    driver = ConsumerDriver()
    driver.start()
    with pytest.raises(IllegalEvent):
        driver.do(
            ev.Answered(driver.now, request_id=driver.member.sent[0].request_id, body=HeartbeatResponse(ErrorCode.NONE))
        )


def test_n_hb_05_owned_partitions_are_reported_before_their_callback_ends_except_in_kafka():
    """The assigned callback runs when a full heartbeat is due: a coordinator that wants T1 back would take its absence
    for the revocation."""
    for profile, reported in ((None, rows(T0, T1)), (KAFKA_4_3, rows(T0))):
        driver = ConsumerDriver(**({} if profile is None else {"profile": profile}))
        driver.settle(T0)
        driver.target(T0, T1)
        driver.do(ev.Poll(driver.now))
        driver.wait(INTERVAL)
        driver.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        driver.wait(1_000)
        assert driver.beat.topic_partitions == reported
