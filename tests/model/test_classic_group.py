"""One classic group, input by input: choices, the initial delay, and what each switch of a profile changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    ResponseBody,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.records import Record
from fencepost.protocol.settings import INTENDED, KAFKA_4_3, Profile, Settings
from fencepost_model.classic import (
    AppendError,
    Arrive,
    Durable,
    Fire,
    Group,
    GroupModel,
    GroupState,
    Lose,
    Member,
    TimeOut,
    Timer,
)
from fencepost_model.classic.state import Input
from fencepost_model.machines import COMPLETING, EMPTY, PREPARING, STABLE

RANGE = (Protocol("range", b"x"),)
JOIN, SYNC = Timer("join"), Timer("sync")
BOTH = pytest.mark.parametrize("faulty", [False, True], ids=["mended", "kafka"])


def profile(faulty: bool, switch: str) -> Profile:
    """The intended protocol, with or without one of Kafka's faults."""
    return replace(INTENDED, **{switch: faulty})


class Play:
    """A group that is played with: each call returns the answers, by request id."""

    def __init__(self, profile: Profile = INTENDED, *, instant: bool = True, **settings: int) -> None:
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        self.model = GroupModel(Settings(**settings), profile, instant_appends=instant)
        self.state: GroupState = self.model.initial()
        self.records: list[Record] = []
        self.rules: tuple[str, ...] = ()
        self.asked = 0

    @property
    def group(self) -> Group:
        assert self.state.group is not None
        return self.state.group

    def member(self, member_id: str) -> Member:
        return next(member for member in self.group.members if member.member_id == member_id)

    def do(self, step: Input, choice: str | None = None) -> dict[int, ResponseBody]:
        successors = self.model.successors(self.state, step)
        if choice is None:
            (successor,) = successors
        else:
            (successor,) = (each for each in successors if each.choice == choice)
        self.state, self.rules = successor.state, successor.rules
        self.records += successor.output.records
        return dict(successor.output.replies)

    def ask(
        self, body: object, new_id: str = "", *, version: int = 9, choice: str | None = None
    ) -> ResponseBody | None:
        """A request's own answer, None while there is none."""
        self.asked += 1
        return self.do(Arrive(self.asked, version, "c", "/h", body, new_id), choice).get(self.asked)  # type: ignore[arg-type]

    def join(
        self,
        member_id: str = "",
        new_id: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[Protocol, ...] = RANGE,
        rebalance: int = 10_000,
        version: int = 9,
        choice: str | None = None,
    ) -> ResponseBody | None:
        body = JoinGroupRequest("g", 10_000, rebalance, member_id, instance, "plain", protocols)
        return self.ask(body, new_id, version=version, choice=choice)

    def sync(self, member_id: str, generation: int, *given: str, instance: str | None = None) -> ResponseBody | None:
        assignments = tuple(SyncGroupAssignment(each, each.encode()) for each in given)
        return self.ask(
            SyncGroupRequest("g", generation, member_id, instance, "plain", "range", assignments), version=5
        )

    def leave(self, member_id: str, instance: str | None = None, *, choice: str | None = None) -> ResponseBody | None:
        return self.ask(LeaveGroupRequest("g", (LeaveGroupMember(member_id, instance),)), version=5, choice=choice)

    def newcomer(self, member_id: str) -> None:
        """A dynamic member comes with an id that it was given."""
        answer = self.join(new_id=member_id)
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
        assert self.join(member_id) is None

    def completing(self, *members: str) -> Play:
        """Dynamic members in their first generation, the first of them the leader."""
        for member_id in members:
            self.newcomer(member_id)
        while self.state.delay is not None:
            self.do(Fire(JOIN))
        assert self.group.state == COMPLETING
        return self

    def stable(self, *members: str) -> Play:
        self.completing(*members)
        for member_id in members[1:]:
            assert self.sync(member_id, 1) is None
        self.sync(members[0], 1, *members)
        if self.state.undurable:
            self.do(Durable(self.state.undurable))
        assert self.group.state == STABLE
        return self

    def static(self, member_id: str, instance: str) -> Play:
        """One static member, Stable."""
        self.join(new_id=member_id, instance=instance)
        self.do(Fire(JOIN))
        self.sync(member_id, 1, member_id)
        if self.state.undurable:
            self.do(Durable(self.state.undurable))
        assert self.group.state == STABLE
        return self


def error(body: ResponseBody | None) -> ErrorCode | None:
    return None if body is None else body.error_code  # type: ignore[union-attr]


# ---- the ordinary way -----------------------------------------------------------------------------------------------


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
    assert answers[3] == SyncGroupResponse(ErrorCode.NONE, "plain", "range", b"a")
    assert play.group.state == STABLE
    assert play.state.timers == {Timer("session", "a")}


def test_initial_delay_windows() -> None:
    """C-JOIN-43 with D = 3000, R = 10000 and a newcomer in every window: 3000, 3000, 3000, 1000."""
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
    """C-JOIN-76: any of the others may lead when the leader goes, and nothing but the leader differs."""
    play = Play().stable("a", "b", "c")
    step = Arrive(99, 5, "c", "/h", LeaveGroupRequest("g", (LeaveGroupMember("a"),)))
    successors = play.model.successors(play.state, step)
    assert [each.choice for each in successors] == ["leader=b", "leader=c"]
    groups = [each.state.group for each in successors]
    assert [group.leader for group in groups if group] == ["b", "c"]
    assert len({group._replace(leader=None) for group in groups if group}) == 1


def test_vote_tie_is_a_branch() -> None:
    """C-JOIN-63."""
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
    """C-SYNC-22."""
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
    """C-ST-07, F-LOAD-06, C-TMR-13; and a group over capacity rebalances at once."""
    play = Play().stable("a", "b")
    (successor,) = play.model.loaded(play.records)
    assert successor.state.group is not None
    assert successor.state.group.state == STABLE
    assert successor.state.timers == {Timer("session", "a"), Timer("session", "b")}
    smaller = GroupModel(Settings(group_max_size=1), INTENDED)
    (successor,) = smaller.loaded(play.records)
    assert successor.state.group is not None
    assert successor.state.group.state == PREPARING


def test_unload_answers_what_is_parked() -> None:
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


# ---- each switch ----------------------------------------------------------------------------------------------------


@BOTH
def test_new_member_added(faulty: bool) -> None:
    """C-JOIN-71."""
    play = Play(profile(faulty, "fault_new_member_added_survives"), group_initial_rebalance_delay_ms=3_000)
    for member_id in ("a", "b"):
        play.join(new_id=member_id)
        play.join(member_id, rebalance=2_000)
    play.do(Fire(JOIN))
    assert play.group.state == COMPLETING
    assert play.group.new_member_added is faulty
    play.leave("b")
    play.leave("a")
    assert play.group.state == EMPTY
    play.join(new_id="c")
    play.join("c", rebalance=20_000)
    play.do(Fire(JOIN))
    assert play.group.state == (PREPARING if faulty else COMPLETING)


@BOTH
def test_refusal_of_the_last_one_missing(faulty: bool) -> None:
    """C-JOIN-23."""
    play = Play(profile(faulty, "fault_refusal_leaves_join_phase"), group_max_size=2).stable("a", "b")
    play.join(new_id="p")  # refused: the group is full and Stable
    smaller = GroupModel(Settings(group_initial_rebalance_delay_ms=0, group_max_size=1), play.model.profile)
    play.model = smaller
    play.join("a")
    assert play.group.state == PREPARING
    assert error(play.join("b")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert play.group.state == (PREPARING if faulty else COMPLETING)


@BOTH
def test_returning_static_member_at_capacity(faulty: bool) -> None:
    """C-JOIN-75."""
    play = Play(profile(faulty, "fault_static_return_counts_as_new"), group_max_size=1).static("s", "i")
    answer = play.join(new_id="s2", instance="i")
    assert error(answer) is (ErrorCode.GROUP_MAX_SIZE_REACHED if faulty else ErrorCode.NONE)


@BOTH
def test_protocol_listed_twice(faulty: bool) -> None:
    """C-JOIN-72: in Kafka the generation is used up, and the group is left without a join timer."""
    play = Play(profile(faulty, "fault_duplicate_protocol_accepted"))
    answer = play.join(new_id="a", protocols=RANGE + RANGE, version=3)
    if not faulty:
        assert error(answer) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return
    play.do(Fire(JOIN))
    assert (play.group.state, play.group.generation) == (PREPARING, 1)
    assert JOIN not in play.state.timers


@BOTH
def test_parked_join_when_earlier_writes_are_late(faulty: bool) -> None:
    """C-JOIN-70: Kafka tells the client that it failed, and counts it in."""
    play = Play(profile(faulty, "fault_parked_fail_early"), instant=False)
    play.join(new_id="a")
    play.join("a")
    answers = play.do(TimeOut(2))
    assert [error(body) for body in answers.values()] == ([ErrorCode.COORDINATOR_NOT_AVAILABLE] if faulty else [])
    assert play.member("a").join is not None
    assert (2 in play.do(Fire(JOIN))) is not faulty
    assert [member.member_id for member in play.group.members] == ["a"]


@BOTH
def test_replacement_of_a_member_that_had_not_synced(faulty: bool) -> None:
    """C-STATIC-16."""
    play = Play(profile(faulty, "fault_replacement_keeps_pending_sync"))
    for member_id, instance in (("a", "i"), ("b", "j")):
        play.join(new_id=member_id, instance=instance)
    while play.state.delay is not None:
        play.do(Fire(JOIN))
    play.sync("a", 1, "a", "b")
    assert play.group.state == STABLE
    play.join(new_id="b2", instance="j")
    assert play.group.pending_sync == ({"b"} if faulty else {"b2"})
    play.sync("b2", 1, instance="j")
    assert (SYNC in play.state.timers) is faulty


@BOTH
def test_second_replacement_while_the_first_is_open(faulty: bool) -> None:
    """C-STATIC-18, both timing out: the support counts stay wrong."""
    kafka = replace(INTENDED, fault_timeout_undoes_memory=True, fault_second_replacement_mixes_undo=faulty)
    play = Play(kafka, instant=False).static("s", "i")
    play.join(new_id="s2", instance="i", protocols=(*RANGE, Protocol("other", b"")))
    first = play.asked
    play.join(new_id="s3", instance="i")
    second = play.asked
    play.do(TimeOut(first))
    assert play.group.skew == ((("other", -1),) if faulty else ())
    play.do(TimeOut(second))
    assert [member.member_id for member in play.group.members] == ["s2"]


@BOTH
def test_leave_of_a_member_with_a_parked_sync(faulty: bool) -> None:
    """C-LEAVE-24."""
    play = Play(profile(faulty, "fault_leave_forgets_parked_sync")).completing("a", "b")
    play.sync("b", 1)
    parked = play.asked
    play.asked += 1
    answers = play.do(Arrive(play.asked, 5, "c", "/h", LeaveGroupRequest("g", (LeaveGroupMember("b"),))))
    assert error(answers.get(parked)) is (None if faulty else ErrorCode.UNKNOWN_MEMBER_ID)
    assert parked not in play.do(Lose())


@BOTH
def test_second_sync_of_the_leader(faulty: bool) -> None:
    """C-SYNC-19: live the first content counts, in Kafka's log the last."""
    play = Play(profile(faulty, "fault_every_leader_sync_appends"), instant=False).completing("a")
    play.do(Durable(play.state.undurable))
    before = len(play.records)
    play.sync("a", 1, "a")
    play.sync("a", 1)
    assert len(play.records) - before == (2 if faulty else 1)
    answers = play.do(Durable(play.state.undurable))
    assert answers == {play.asked: SyncGroupResponse(ErrorCode.NONE, "plain", "range", b"a")}


@BOTH
def test_timeout_of_the_assignment(faulty: bool) -> None:
    """C-SYNC-33, F-RT-09: in Kafka memory and log part; mended, memory follows the log."""
    play = Play(profile(faulty, "fault_timeout_undoes_memory"), instant=False).completing("a", "b")
    play.do(Durable(play.state.undurable))
    play.sync("b", 1)
    follower = play.asked
    play.sync("a", 1, "a", "b")
    leader = play.asked
    answers = play.do(TimeOut(leader))
    assert error(answers[leader]) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (follower in answers) is faulty
    answers = play.do(Durable(1))
    assert play.group.state == (PREPARING if faulty else STABLE)
    assert (follower in answers) is not faulty
    assert play.member("a").assignment == (b"" if faulty else b"a")


@BOTH
def test_timeout_of_a_replacement(faulty: bool) -> None:
    """C-STATIC-06."""
    play = Play(profile(faulty, "fault_timeout_undoes_memory"), instant=False).static("s", "i")
    play.join(new_id="s2", instance="i")
    assert error(play.do(TimeOut(play.asked))[play.asked]) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert play.member("s" if faulty else "s2").join is None


@BOTH
def test_the_sync_timer_spares_who_has_just_come_back(faulty: bool) -> None:
    """C-STATIC-16, C-SYNC-20: the entry that moved is of a member that is owed an answer itself."""
    play = Play(profile(faulty, "fault_replacement_keeps_pending_sync"), instant=False)
    play.newcomer("a")
    play.join(new_id="s", instance="i")
    while play.group.state == PREPARING:
        play.do(Fire(JOIN))
    play.sync("a", 1, "a", "s")
    play.do(Durable(play.state.undurable))
    assert play.group.state == STABLE
    play.join(new_id="s2", instance="i")
    back = play.asked
    assert play.group.pending_sync == {"s" if faulty else "s2"}
    play.do(Fire(SYNC))
    assert (play.group.state, play.member("s2").join) == (PREPARING, back)
    play.join("a")
    assert (play.group.state, play.group.generation) == (COMPLETING, 2)
    play.do(Durable(1))  # C-STATIC-17(iii)
    play.do(Fire(SYNC))
    assert play.group.state == EMPTY


@BOTH
def test_a_lost_partition_and_a_replacement_of_an_earlier_generation(faulty: bool) -> None:
    """C-STATIC-06, F-UNLOAD-01: undoing the replacement first would fence a client that nobody displaced."""
    play = Play(profile(faulty, "fault_timeout_undoes_memory"), instant=False).static("s", "i")
    play.join(new_id="s2", instance="i")
    play.join(new_id="a")
    play.join("a")  # the last that was missing
    assert (play.group.state, play.group.generation) == (COMPLETING, 2)
    play.sync("s2", 2, "s2", instance="i")
    waits = play.asked
    answers = play.do(Lose())
    assert error(answers[waits]) is (ErrorCode.FENCED_INSTANCE_ID if faulty else ErrorCode.NOT_COORDINATOR)


def test_a_lost_partition_answers_a_later_join_of_a_replaced_member() -> None:
    play = Play(instant=False).static("s", "i")
    play.join(new_id="s2", instance="i")
    play.join(new_id="a")
    play.join("a")
    play.sync("a", 2)
    play.join("s2", instance="i", protocols=(Protocol("range", b"y"),))
    waits = play.asked
    assert play.group.state == PREPARING
    assert error(play.do(Lose())[waits]) is ErrorCode.NOT_COORDINATOR


@BOTH
def test_timers_of_a_reverted_group(faulty: bool) -> None:
    """C-TMR-12: the old delay timer ends a phase that never was, and a generation is used up."""
    play = Play(profile(faulty, "fault_timers_outlive_reverted_group"), instant=False)
    play.join(new_id="s", instance="i")
    answers = play.do(AppendError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert error(answers[1]) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert play.state.group is None
    assert (JOIN in play.state.timers) is faulty
    if faulty:
        play.join(new_id="a")
        play.do(Fire(JOIN))
        assert (play.group.state, play.group.generation) == (EMPTY, 1)


@BOTH
def test_subscription_that_cannot_be_read(faulty: bool) -> None:
    play = Play(profile(faulty, "fault_bad_subscription_is_thrown"))
    body = JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", (Protocol("range", b"\0\0\x7f\xff\xff\xff"),))
    assert play.ask(body, "a", version=3) is None
    play.do(Fire(JOIN))
    assert (play.group.state, play.group.generation) == ((PREPARING if faulty else COMPLETING), 1)
    assert (JOIN in play.state.timers) is False


@BOTH
def test_deletion_in_two_operations(faulty: bool) -> None:
    """C-ADM-09: what is deleted is decided when the earlier writes are done."""
    play = Play(profile(faulty, "fault_deletion_waits_twice"), instant=False)
    play.join(new_id="a")
    play.ask(DeleteGroupsRequest(("g",)), version=2)
    assert (play.state.group is None) is not faulty
    answers = play.do(Durable(1))
    if faulty:
        assert play.state.group is None
        assert play.asked not in answers
        answers = play.do(Durable(1))
    else:
        answers = play.do(Durable(1))
    assert answers[play.asked] == DeleteGroupsResponse((DeletedGroup("g", ErrorCode.NONE),))


def test_heartbeat_is_never_ahead_of_the_log() -> None:
    """F-RT-16: an answer that tells something waits; an error does not."""
    play = Play(KAFKA_4_3, instant=False).stable("a")
    play.join(new_id="b")
    assert play.ask(HeartbeatRequest("g", 1, "a", None), version=4) is not None
    play.leave("a")
    assert play.state.undurable == 0
    play.do(Fire(JOIN))
    assert play.state.undurable == 1
    play.join("b")
    assert error(play.ask(HeartbeatRequest("g", 2, "b", None), version=4)) is None
    assert error(play.ask(HeartbeatRequest("g", 9, "b", None), version=4)) is ErrorCode.ILLEGAL_GENERATION
