"""One classic group, input by input: choices, the initial delay, failed appends, load and unload."""

from __future__ import annotations

import pytest
from classic_play import JOIN, SYNC, Play, error

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    SyncGroupResponse,
)
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_model.classic import (
    AppendError,
    Arrive,
    Durable,
    Fire,
    GroupModel,
    Lose,
    TimeOut,
    Timer,
)
from fencepost_model.machines import COMPLETING, PREPARING, STABLE


def test_first_generation() -> None:
    play = Play(instant=False)
    assert error(play.join(new_id="a")) is ErrorCode.MEMBER_ID_REQUIRED
    assert [record.value.members for record in play.records if record.value] == [()]  # C-JOIN-16
    play.do(Durable(1))
    assert play.join("a") is None
    assert play.group.state == PREPARING
    answers = play.do(Fire(JOIN))
    joined = answers[2]
    assert isinstance(joined, JoinGroupResponse)
    assert (joined.generation_id, joined.leader, len(joined.members)) == (1, "a", 1)
    assert play.state.timers == {SYNC, Timer("session", "a")}
    assert play.sync("a", 1, "a") is None  # C-SYNC-17: waits for the record
    assert play.group.state == COMPLETING
    answers = play.do(Durable(1))
    assert answers[3] == SyncGroupResponse(
        ErrorCode.NONE, protocol_type="plain", protocol_name="range", assignment=b"a"
    )
    assert play.group.state == STABLE
    assert play.state.timers == {Timer("session", "a")}


def test_initial_delay_windows() -> None:
    """The delays are 3000, 3000, 3000 and 1000 ms if D = 3000, R = 10000 and a new member joins in each (C-JOIN-43)."""
    play = Play(group_initial_rebalance_delay_ms=3_000)
    play.newcomer("a")
    spent = []
    for member_id in ("b", "c", "d"):
        assert play.state.delay is not None
        spent.append(play.state.delay[0])
        play.newcomer(member_id)
        play.do(Fire(JOIN))
    assert play.state.delay is not None
    spent.append(play.state.delay[0])
    play.newcomer("e")
    play.do(Fire(JOIN))
    assert spent == [3_000, 3_000, 3_000, 1_000]
    assert play.group.state == COMPLETING


def test_leader_choice_is_a_branch() -> None:
    """Any other member may become leader when the leader leaves, and nothing else differs (C-JOIN-76)."""
    play = Play().stable("a", "b", "c")
    step = Arrive(99, 5, "c", "/h", LeaveGroupRequest("g", (LeaveGroupMember("a"),)))
    successors = play.model.successors(play.state, step)
    assert [each.choice for each in successors] == ["leader=b", "leader=c"]
    groups = [each.state.group for each in successors]
    assert [group.leader for group in groups if group] == ["b", "c"]
    assert len({group._replace(leader=None) for group in groups if group}) == 1


def test_vote_tie_is_a_branch() -> None:
    """A tie of votes leaves the choice of the protocol open (C-JOIN-63)."""
    play = Play()
    first, second = (Protocol("p", b""), Protocol("q", b"")), (Protocol("q", b""), Protocol("p", b""))
    for member_id, protocols in (("a", first), ("b", second)):
        play.join(new_id=member_id, protocols=protocols)
        play.join(member_id, protocols=protocols)
    while len(successors := play.model.successors(play.state, Fire(JOIN))) == 1:
        play.do(Fire(JOIN))
    assert [each.choice for each in successors] == ["protocol=p", "protocol=q"]


def test_rejoin_of_a_follower_with_the_same_protocols_changes_nothing() -> None:
    play = Play().stable("a", "b")
    before = play.state
    answer = play.join("b")  # C-JOIN-55
    assert isinstance(answer, JoinGroupResponse)
    assert (answer.generation_id, answer.members) == (1, ())
    assert play.state == before
    assert play.join("a") is None  # C-JOIN-53
    assert play.group.state == PREPARING


def test_failed_append_of_the_assignment() -> None:
    """A failed append of the assignment answers every parked SyncGroup with the error (C-SYNC-22)."""
    play = Play(instant=False).completing("a", "b")
    play.do(Durable(play.state.undurable))
    play.sync("b", 1)
    play.sync("a", 1, "a", "b")
    answers = play.do(AppendError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert {error(body) for body in answers.values()} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert len(answers) == 2
    assert play.group.state == PREPARING
    assert play.state.undurable == 0


def test_load_gives_stable_with_session_timers_only() -> None:
    """A loaded group has session timers only, and rebalances if over capacity (C-ST-07, C-TMR-13, F-LOAD-06)."""
    play = Play().stable("a", "b")
    (successor,) = play.model.loaded(play.records)
    assert successor.state.group is not None
    assert successor.state.group.state == STABLE
    assert successor.state.timers == {Timer("session", "a"), Timer("session", "b")}
    smaller = GroupModel(Settings(group_max_size=1), INTENDED)
    (successor,) = smaller.loaded(play.records)
    assert successor.state.group is not None
    assert successor.state.group.state == PREPARING


def test_unload_answers_parked_requests() -> None:
    play = Play().stable("a", "b")
    play.join("a")
    parked = play.asked
    answers = play.do(Lose())
    assert error(answers[parked]) is ErrorCode.NOT_COORDINATOR
    assert play.group.state == "Dead"
    assert play.state.timers == frozenset()


def test_illegal_inputs_are_refused() -> None:
    play = Play(instant=False)
    for step in (Fire(JOIN), AppendError(ErrorCode.REQUEST_TIMED_OUT), TimeOut(7)):
        with pytest.raises(ValueError, match=r"armed|appended|open"):
            play.do(step)


def test_heartbeat_is_never_ahead_of_the_log() -> None:
    """An answer that reveals new state waits for the log; an error does not (F-RT-16)."""
    play = Play(KAFKA_4_3, instant=False).stable("a")
    play.join(new_id="b")
    assert play.ask(HeartbeatRequest("g", generation_id=1, member_id="a"), version=4) is not None
    play.leave("a")
    assert play.state.undurable == 0
    play.do(Fire(JOIN))
    assert play.state.undurable == 1
    play.join("b")
    assert error(play.ask(HeartbeatRequest("g", generation_id=2, member_id="b"), version=4)) is None
    assert (
        error(play.ask(HeartbeatRequest("g", generation_id=9, member_id="b"), version=4))
        is ErrorCode.ILLEGAL_GENERATION
    )
