"""Reactions to every error code in JoinGroup, SyncGroup and Heartbeat (8.2), and the races of section 8.1."""

from __future__ import annotations

import pytest

from fencepost.member import ClassicMemberState
from fencepost.member.events import (
    Answered,
    CoordinatorFound,
    Disconnect,
    FailureKind,
    MemberTimer,
    RequestLost,
    Send,
    Subscribe,
    Unsubscribe,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupResponse,
)
from fencepost.protocol.profiles import KAFKA_4_3

from .driver import T0, T1, Driver

E = ErrorCode
FATAL, UNEXPECTED = FailureKind.ANSWER, FailureKind.UNEXPECTED

JOIN = {
    E.COORDINATOR_LOAD_IN_PROGRESS: "back off",
    E.COORDINATOR_NOT_AVAILABLE: "forget",
    E.NOT_COORDINATOR: "forget",
    E.UNKNOWN_MEMBER_ID: "new id",
    E.ILLEGAL_GENERATION: UNEXPECTED,
    E.REBALANCE_IN_PROGRESS: "at once",
    E.FENCED_INSTANCE_ID: FATAL,
    E.INCONSISTENT_GROUP_PROTOCOL: FATAL,
    E.INVALID_SESSION_TIMEOUT: FATAL,
    E.INVALID_GROUP_ID: FATAL,
    E.GROUP_MAX_SIZE_REACHED: FATAL,
    E.UNSUPPORTED_VERSION: FATAL,
    E.GROUP_AUTHORIZATION_FAILED: FATAL,
    E.UNKNOWN_SERVER_ERROR: UNEXPECTED,
}
SYNC = {
    E.COORDINATOR_LOAD_IN_PROGRESS: "back off",
    E.COORDINATOR_NOT_AVAILABLE: "forget",
    E.NOT_COORDINATOR: "forget",
    E.UNKNOWN_MEMBER_ID: "new id",
    E.ILLEGAL_GENERATION: "keep id",
    E.REBALANCE_IN_PROGRESS: "at once",
    E.FENCED_INSTANCE_ID: FATAL,
    E.INCONSISTENT_GROUP_PROTOCOL: UNEXPECTED,
    E.GROUP_AUTHORIZATION_FAILED: FATAL,
    E.UNKNOWN_SERVER_ERROR: UNEXPECTED,
    E.MEMBER_ID_REQUIRED: UNEXPECTED,
}


def react(driver, expected, old_id):
    """Return the effect of the failed join on the next poll."""
    if isinstance(expected, FailureKind):
        failure = driver.poll()
        assert failure.kind is expected
        driver.poll()
        assert driver.only(Send).body.member_id == old_id
        return
    assert driver.poll() is None
    if expected == "forget":
        assert driver.member.coordinator.node is None
        driver.do(CoordinatorFound(driver.now, node=2))
        driver.poll()
    if expected in ("back off", "forget"):
        driver.poll()
        if not any(isinstance(command, Send) for command in driver.commands):
            driver.wait(100)
            driver.poll()
    request = driver.only(Send).body
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == ("" if expected == "new id" else old_id)


@pytest.mark.parametrize(("error", "expected"), JOIN.items(), ids=lambda each: getattr(each, "name", None))
def test_join_answers(error, expected):
    driver = Driver()
    driver.settle(T0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    driver.poll()
    driver.answer(JoinGroupResponse(error))
    react(driver, expected, "m")


@pytest.mark.parametrize(("error", "expected"), SYNC.items(), ids=lambda each: getattr(each, "name", None))
def test_sync_answers(error, expected):
    driver = Driver()
    driver.start()
    driver.follow()
    driver.answer(SyncGroupResponse(error))
    react(driver, expected, "m")


def test_loading_at_sync_is_thrown_by_kafka():
    driver = Driver(profile=KAFKA_4_3)
    driver.start()
    driver.follow()
    driver.answer(SyncGroupResponse(E.COORDINATOR_LOAD_IN_PROGRESS))
    assert driver.member.state is ClassicMemberState.COMPLETING_REBALANCE
    assert driver.poll().kind is UNEXPECTED  # K-ERR-02
    driver.calls()
    driver.poll()
    assert driver.only(Send).body.member_id == "m"
    assert driver.calls() == []  # join prepare is not run again


@pytest.mark.parametrize("answer", [JoinGroupResponse, SyncGroupResponse])
def test_foreign_protocol_type_is_refused(answer):
    driver = Driver()
    driver.start()
    if answer is SyncGroupResponse:
        driver.follow()
        driver.answer(SyncGroupResponse(E.NONE, protocol_type="connect", protocol_name="range"))
    else:
        driver.answer(
            JoinGroupResponse(
                E.NONE, generation_id=1, protocol_type="connect", protocol_name="range", leader="x", member_id="m"
            )
        )
    assert driver.poll().error is E.INCONSISTENT_GROUP_PROTOCOL  # K-ERR-12


def test_foreign_protocol_name_in_sync_is_refused():
    driver = Driver()
    driver.start()
    driver.follow()
    driver.answer(SyncGroupResponse(E.NONE, protocol_type="consumer", protocol_name="roundrobin"))
    assert driver.poll().error is E.INCONSISTENT_GROUP_PROTOCOL  # K-ST-12


# --- heartbeats ---


@pytest.mark.parametrize(
    "error",
    [
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.GROUP_AUTHORIZATION_FAILED,
        E.INCONSISTENT_GROUP_PROTOCOL,
        E.UNKNOWN_SERVER_ERROR,
    ],
)
def test_heartbeat_fails_quietly_with_growing_backoff(error):
    driver = Driver()
    driver.settle(T0)
    session = driver.timers[MemberTimer.SESSION]
    driver.wait(3_000)
    for delay in (100, 200, 400, 800, 1_000, 1_000):
        driver.answer(HeartbeatResponse(error))
        assert driver.timers[MemberTimer.HEARTBEAT] == driver.now + delay  # K-HB-05
        assert driver.timers[MemberTimer.SESSION] == session  # not restarted
        driver.wait(delay)
        assert isinstance(driver.only(Send).body, HeartbeatRequest)
    assert driver.member.state is ClassicMemberState.STABLE
    assert driver.poll() is None  # K-ERR-11


def test_good_heartbeat_restarts_the_session():
    driver = Driver()
    driver.settle(T0)
    driver.beat(E.NONE)
    assert driver.timers[MemberTimer.SESSION] == driver.now + 45_000


@pytest.mark.parametrize("error", [E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR])
def test_heartbeat_forgets_the_coordinator_but_not_the_generation(error):
    driver = Driver()
    driver.settle(T0)
    driver.beat(error)
    assert driver.member.coordinator.node is None
    assert driver.member.coordinator.looking_up
    assert driver.member.state is ClassicMemberState.STABLE
    assert not driver.timers
    driver.do(CoordinatorFound(driver.now, node=2))
    assert set(driver.timers) == {MemberTimer.HEARTBEAT, MemberTimer.SESSION, MemberTimer.POLL}


@pytest.mark.parametrize(("error", "kept"), [(E.UNKNOWN_MEMBER_ID, ""), (E.ILLEGAL_GENERATION, "m")])
def test_heartbeat_resets_the_generation(error, kept):
    driver = Driver()
    driver.settle(T0)
    driver.calls()
    driver.beat(error)
    assert driver.member.state is ClassicMemberState.UNJOINED
    assert driver.member.generation.member_id == kept
    driver.poll()
    assert driver.calls() == [("lost", (T0,))]  # K-CB-02
    body = driver.only(Send).body
    assert (body.member_id, body.reason) == (kept, f"encountered {error.name} from HEARTBEAT response")


def test_fenced_heartbeat_is_thrown_once_and_then_joins_again():
    driver = Driver(group_instance_id="i")
    driver.settle(T0)
    driver.beat(E.FENCED_INSTANCE_ID)
    assert driver.poll().error is E.FENCED_INSTANCE_ID  # K-HB-10
    driver.poll()
    assert driver.only(Send).body.member_id == ""


def test_answers_of_an_older_generation_change_nothing():
    driver = Driver()
    driver.settle(T0)
    driver.wait(3_000)
    old = driver.member.sent[-1].request_id
    driver.do(Answered(driver.now, request_id=999, body=HeartbeatResponse(E.UNKNOWN_MEMBER_ID)))  # never sent
    driver.wait(3_000)
    driver.answer(HeartbeatResponse(E.REBALANCE_IN_PROGRESS))
    driver.poll()
    driver.follow(2)
    driver.sync(T1)
    driver.poll()
    before = driver.member.generation
    driver.answer(HeartbeatResponse(E.UNKNOWN_MEMBER_ID), old)
    assert driver.member.generation == before  # K-ST-15
    assert driver.member.state is ClassicMemberState.STABLE


def test_rebalance_in_progress_while_completing_is_ignored():
    driver = Driver()
    driver.settle(T0)
    driver.wait(3_000)
    late = driver.member.sent[-1].request_id
    driver.wait(3_000)
    driver.answer(HeartbeatResponse(E.REBALANCE_IN_PROGRESS))
    driver.poll()
    driver.follow(2)
    sync = driver.member.sent[-1].request_id
    driver.answer(HeartbeatResponse(E.REBALANCE_IN_PROGRESS), late)
    driver.answer(
        SyncGroupResponse(
            E.NONE, protocol_type="consumer", protocol_name="range", assignment=b"\0\3\0\0\0\0\xff\xff\xff\xff"
        ),
        sync,
    )
    driver.poll()
    driver.none(Send)
    assert not driver.member.rejoin_needed  # K-ERR-06


# --- races between the heartbeat thread and the join ---


def test_reset_while_sync_is_open_makes_its_answer_a_local_illegal_generation():
    driver = Driver()
    driver.start()
    driver.follow()
    sync = driver.member.sent[-1].request_id
    driver.wait(3_000)
    driver.answer(HeartbeatResponse(E.ILLEGAL_GENERATION))
    assert driver.member.state is ClassicMemberState.UNJOINED
    driver.answer(
        SyncGroupResponse(
            E.NONE, protocol_type="consumer", protocol_name="range", assignment=b"\0\3\0\0\0\0\xff\xff\xff\xff"
        ),
        sync,
    )
    assert driver.member.state is ClassicMemberState.UNJOINED  # K-ST-12
    driver.poll()
    assert driver.only(Send).body.member_id == "m"


def test_reset_between_sync_and_join_complete_drops_the_assignment_and_the_id():
    driver = Driver()
    driver.start()
    driver.follow()
    sync = driver.member.sent[-1].request_id
    driver.wait(3_000)
    beat = driver.member.sent[-1].request_id
    driver.answer(
        SyncGroupResponse(
            E.NONE, protocol_type="consumer", protocol_name="range", assignment=b"\0\3\0\0\0\0\xff\xff\xff\xff"
        ),
        sync,
    )
    driver.answer(HeartbeatResponse(E.ILLEGAL_GENERATION), beat)
    driver.poll()
    assert driver.only(Send).body.member_id == ""  # K-ST-16
    assert driver.member.assignment == frozenset()


def test_join_answer_after_a_leave_is_dropped():
    driver = Driver()
    driver.settle(T0)
    driver.beat(E.REBALANCE_IN_PROGRESS)
    driver.poll()
    join = driver.member.sent[-1].request_id
    driver.do(Unsubscribe(driver.now))
    driver.do(Subscribe(driver.now, frozenset({"t"})))
    driver.answer(
        JoinGroupResponse(
            E.NONE, generation_id=2, protocol_type="consumer", protocol_name="range", leader="other", member_id="m"
        ),
        join,
    )
    assert driver.member.state is ClassicMemberState.UNJOINED  # K-ST-11
    driver.none(Send)
    driver.poll()
    driver.wait(100)
    driver.poll()
    assert driver.only(Send).body.member_id == ""


@pytest.mark.parametrize("lost", ["join", "sync", "heartbeat"])
def test_lost_request_forgets_the_coordinator(lost):
    driver = Driver()
    driver.start()
    if lost != "join":
        driver.follow()
    if lost == "heartbeat":
        driver.sync(T0)
        driver.poll()
        driver.wait(3_000)
    driver.do(RequestLost(driver.now, request_id=driver.member.sent[-1].request_id))
    assert driver.member.coordinator.node is None  # K-ERR-13
    assert driver.member.sent == ()
    driver.none(Disconnect)
    driver.poll()
    driver.do(CoordinatorFound(driver.now, node=2))
    driver.poll()
    driver.wait(100)
    driver.poll()
    sends = [command for command in driver.commands if isinstance(command, Send)]
    assert bool(sends) is (lost != "heartbeat")
