"""Reactions to every error code in JoinGroup, SyncGroup and Heartbeat (8.2), and the races of section 8.1."""

from __future__ import annotations

import pytest

from fencepost.member import MemberState
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

from .desk import T0, T1, Desk

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


def react(desk, expected, old_id):
    """Return the effect of the failed join on the next poll."""
    if isinstance(expected, FailureKind):
        failure = desk.poll()
        assert failure.kind is expected
        desk.poll()
        assert desk.only(Send).body.member_id == old_id
        return
    assert desk.poll() is None
    if expected == "forget":
        assert desk.member.coordinator.node is None
        desk.do(CoordinatorFound(desk.now, node=2))
        desk.poll()
    if expected in ("back off", "forget"):
        desk.poll()
        if not any(isinstance(command, Send) for command in desk.commands):
            desk.wait(100)
            desk.poll()
    request = desk.only(Send).body
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == ("" if expected == "new id" else old_id)


@pytest.mark.parametrize(("error", "expected"), JOIN.items(), ids=lambda each: getattr(each, "name", None))
def test_join_answers(error, expected):
    desk = Desk()
    desk.settle(T0)
    desk.beat(E.REBALANCE_IN_PROGRESS)
    desk.poll()
    desk.answer(JoinGroupResponse(error))
    react(desk, expected, "m")


@pytest.mark.parametrize(("error", "expected"), SYNC.items(), ids=lambda each: getattr(each, "name", None))
def test_sync_answers(error, expected):
    desk = Desk()
    desk.start()
    desk.follow()
    desk.answer(SyncGroupResponse(error))
    react(desk, expected, "m")


def test_loading_at_sync_is_thrown_by_kafka():
    desk = Desk(profile=KAFKA_4_3)
    desk.start()
    desk.follow()
    desk.answer(SyncGroupResponse(E.COORDINATOR_LOAD_IN_PROGRESS))
    assert desk.member.state is MemberState.COMPLETING_REBALANCE
    assert desk.poll().kind is UNEXPECTED  # K-ERR-02
    desk.calls()
    desk.poll()
    assert desk.only(Send).body.member_id == "m"
    assert desk.calls() == []  # join prepare is not run again


@pytest.mark.parametrize("answer", [JoinGroupResponse, SyncGroupResponse])
def test_foreign_protocol_type_is_refused(answer):
    desk = Desk()
    desk.start()
    if answer is SyncGroupResponse:
        desk.follow()
        desk.answer(SyncGroupResponse(E.NONE, protocol_type="connect", protocol_name="range"))
    else:
        desk.answer(
            JoinGroupResponse(
                E.NONE, generation_id=1, protocol_type="connect", protocol_name="range", leader="x", member_id="m"
            )
        )
    assert desk.poll().error is E.INCONSISTENT_GROUP_PROTOCOL  # K-ERR-12


def test_foreign_protocol_name_in_sync_is_refused():
    desk = Desk()
    desk.start()
    desk.follow()
    desk.answer(SyncGroupResponse(E.NONE, protocol_type="consumer", protocol_name="roundrobin"))
    assert desk.poll().error is E.INCONSISTENT_GROUP_PROTOCOL  # K-ST-12


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
    desk = Desk()
    desk.settle(T0)
    session = desk.timers[MemberTimer.SESSION]
    desk.wait(3_000)
    for delay in (100, 200, 400, 800, 1_000, 1_000):
        desk.answer(HeartbeatResponse(error))
        assert desk.timers[MemberTimer.HEARTBEAT] == desk.now + delay  # K-HB-05
        assert desk.timers[MemberTimer.SESSION] == session  # not restarted
        desk.wait(delay)
        assert isinstance(desk.only(Send).body, HeartbeatRequest)
    assert desk.member.state is MemberState.STABLE
    assert desk.poll() is None  # K-ERR-11


def test_good_heartbeat_restarts_the_session():
    desk = Desk()
    desk.settle(T0)
    desk.beat(E.NONE)
    assert desk.timers[MemberTimer.SESSION] == desk.now + 45_000


@pytest.mark.parametrize("error", [E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR])
def test_heartbeat_forgets_the_coordinator_but_not_the_generation(error):
    desk = Desk()
    desk.settle(T0)
    desk.beat(error)
    assert desk.member.coordinator.node is None
    assert desk.member.coordinator.looking_up
    assert desk.member.state is MemberState.STABLE
    assert not desk.timers
    desk.do(CoordinatorFound(desk.now, node=2))
    assert set(desk.timers) == {MemberTimer.HEARTBEAT, MemberTimer.SESSION, MemberTimer.POLL}


@pytest.mark.parametrize(("error", "kept"), [(E.UNKNOWN_MEMBER_ID, ""), (E.ILLEGAL_GENERATION, "m")])
def test_heartbeat_resets_the_generation(error, kept):
    desk = Desk()
    desk.settle(T0)
    desk.calls()
    desk.beat(error)
    assert desk.member.state is MemberState.UNJOINED
    assert desk.member.generation.member_id == kept
    desk.poll()
    assert desk.calls() == [("lost", (T0,))]  # K-CB-02
    body = desk.only(Send).body
    assert (body.member_id, body.reason) == (kept, f"encountered {error.name} from HEARTBEAT response")


def test_fenced_heartbeat_is_thrown_once_and_then_joins_anew():
    desk = Desk(group_instance_id="i")
    desk.settle(T0)
    desk.beat(E.FENCED_INSTANCE_ID)
    assert desk.poll().error is E.FENCED_INSTANCE_ID  # K-HB-10
    desk.poll()
    assert desk.only(Send).body.member_id == ""


def test_answers_of_an_older_generation_change_nothing():
    desk = Desk()
    desk.settle(T0)
    desk.wait(3_000)
    old = desk.member.sent[-1].request_id
    desk.do(Answered(desk.now, request_id=999, body=HeartbeatResponse(E.UNKNOWN_MEMBER_ID)))  # never sent
    desk.wait(3_000)
    desk.answer(HeartbeatResponse(E.REBALANCE_IN_PROGRESS))
    desk.poll()
    desk.follow(2)
    desk.sync(T1)
    desk.poll()
    before = desk.member.generation
    desk.answer(HeartbeatResponse(E.UNKNOWN_MEMBER_ID), old)
    assert desk.member.generation == before  # K-ST-15
    assert desk.member.state is MemberState.STABLE


def test_rebalance_in_progress_while_completing_is_ignored():
    desk = Desk()
    desk.settle(T0)
    desk.wait(3_000)
    late = desk.member.sent[-1].request_id
    desk.wait(3_000)
    desk.answer(HeartbeatResponse(E.REBALANCE_IN_PROGRESS))
    desk.poll()
    desk.follow(2)
    sync = desk.member.sent[-1].request_id
    desk.answer(HeartbeatResponse(E.REBALANCE_IN_PROGRESS), late)
    desk.answer(
        SyncGroupResponse(
            E.NONE, protocol_type="consumer", protocol_name="range", assignment=b"\0\3\0\0\0\0\xff\xff\xff\xff"
        ),
        sync,
    )
    desk.poll()
    desk.none(Send)
    assert not desk.member.rejoin_needed  # K-ERR-06


# --- races between the heartbeat thread and the join ---


def test_reset_while_sync_is_open_makes_its_answer_a_local_illegal_generation():
    desk = Desk()
    desk.start()
    desk.follow()
    sync = desk.member.sent[-1].request_id
    desk.wait(3_000)
    desk.answer(HeartbeatResponse(E.ILLEGAL_GENERATION))
    assert desk.member.state is MemberState.UNJOINED
    desk.answer(
        SyncGroupResponse(
            E.NONE, protocol_type="consumer", protocol_name="range", assignment=b"\0\3\0\0\0\0\xff\xff\xff\xff"
        ),
        sync,
    )
    assert desk.member.state is MemberState.UNJOINED  # K-ST-12
    desk.poll()
    assert desk.only(Send).body.member_id == "m"


def test_reset_between_sync_and_join_complete_drops_the_assignment_and_the_id():
    desk = Desk()
    desk.start()
    desk.follow()
    sync = desk.member.sent[-1].request_id
    desk.wait(3_000)
    beat = desk.member.sent[-1].request_id
    desk.answer(
        SyncGroupResponse(
            E.NONE, protocol_type="consumer", protocol_name="range", assignment=b"\0\3\0\0\0\0\xff\xff\xff\xff"
        ),
        sync,
    )
    desk.answer(HeartbeatResponse(E.ILLEGAL_GENERATION), beat)
    desk.poll()
    assert desk.only(Send).body.member_id == ""  # K-ST-16
    assert desk.member.assignment == frozenset()


def test_join_answer_after_a_leave_is_dropped():
    desk = Desk()
    desk.settle(T0)
    desk.beat(E.REBALANCE_IN_PROGRESS)
    desk.poll()
    join = desk.member.sent[-1].request_id
    desk.do(Unsubscribe(desk.now))
    desk.do(Subscribe(desk.now, frozenset({"t"})))
    desk.answer(
        JoinGroupResponse(
            E.NONE, generation_id=2, protocol_type="consumer", protocol_name="range", leader="other", member_id="m"
        ),
        join,
    )
    assert desk.member.state is MemberState.UNJOINED  # K-ST-11
    desk.none(Send)
    desk.poll()
    desk.wait(100)
    desk.poll()
    assert desk.only(Send).body.member_id == ""


@pytest.mark.parametrize("lost", ["join", "sync", "heartbeat"])
def test_lost_request_forgets_the_coordinator(lost):
    desk = Desk()
    desk.start()
    if lost != "join":
        desk.follow()
    if lost == "heartbeat":
        desk.sync(T0)
        desk.poll()
        desk.wait(3_000)
    desk.do(RequestLost(desk.now, request_id=desk.member.sent[-1].request_id))
    assert desk.member.coordinator.node is None  # K-ERR-13
    assert desk.member.sent == ()
    desk.none(Disconnect)
    desk.poll()
    desk.do(CoordinatorFound(desk.now, node=2))
    desk.poll()
    desk.wait(100)
    desk.poll()
    sends = [command for command in desk.commands if isinstance(command, Send)]
    assert bool(sends) is (lost != "heartbeat")
