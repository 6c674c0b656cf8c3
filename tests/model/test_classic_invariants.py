"""Promises that hold in every state of a classic group, whatever requests arrive (rule book, 12.1)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    ResponseBody,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_model.classic import AppendError, Arrive, Durable, Fire, Group, GroupModel, GroupState, TimeOut
from fencepost_model.classic.invariants import broken, broken_by_answer
from fencepost_model.classic.state import ANSWERED, JOIN_TIMER, Input
from fencepost_model.machines import COMPLETING, EMPTY, PREPARING, STABLE

ERRORS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.INVALID_REQUEST)
LISTS = (("p",), ("p", "q"), ("q", "p"), ("q",))


class Intended(RuleBasedStateMachine):
    """Drive one group with requests, timers, append results and timeouts in any order."""

    profile: Profile = INTENDED

    def __init__(self) -> None:
        super().__init__()
        self.state = GroupState()
        self.asked = 0
        self.answered: set[int] = set()
        self.sent: dict[int, RequestBody] = {}

    @initialize(size=st.sampled_from([1, 2, 9]), delay=st.sampled_from([0, 3_000]))
    def start(self, size: int, delay: int) -> None:
        self.model = GroupModel(Settings(group_max_size=size, group_initial_rebalance_delay_ms=delay), self.profile)

    @property
    def group(self) -> Group | None:
        return self.state.group

    def do(self, step: Input, choice: int = 0) -> None:
        before = self.group
        successors = self.model.successors(self.state, step)
        successor = successors[choice % len(successors)]
        hash(successor.state)
        self.state = successor.state
        if self.group is not None:
            assert broken(before, self.group, self.profile) == []
        for request, body in successor.output.replies:
            assert request not in self.answered, "answered twice"
            self.answered.add(request)
            self.checked(request, body)

    def ask(self, body: RequestBody, version: int, choice: int) -> None:
        self.asked += 1
        self.sent[self.asked] = body
        self.do(Arrive(self.asked, version, "c", "/h", body, f"m{self.asked}"), choice)

    # ---- inputs -------------------------------------------------------------------------------------------------

    def one(self, number: int) -> str:
        """Return a member id: of a member, a pending one, or an unknown one."""
        group = self.group
        ids = sorted({m.member_id for m in group.members} | group.pending_join) if group else []
        return ids[number % len(ids)] if ids and number else "nobody"

    @rule(
        member=st.one_of(st.none(), st.integers(0, 6)),
        instance=st.sampled_from([None, None, "i", "j"]),
        offer=st.tuples(st.sampled_from(LISTS), st.sampled_from([b"", b"x"])),
        version=st.sampled_from([3, 9, 9]),
        choice=st.integers(0, 3),
    )
    def join(
        self,
        *,
        member: int | None,
        instance: str | None,
        offer: tuple[tuple[str, ...], bytes],
        version: int,
        choice: int,
    ) -> None:
        protocols = tuple(Protocol(name, offer[1]) for name in offer[0])
        member_id = "" if member is None else self.one(member)
        self.ask(
            JoinGroupRequest(
                "g",
                session_timeout_ms=6_000,
                rebalance_timeout_ms=9_000,
                member_id=member_id,
                group_instance_id=instance,
                protocol_type="t",
                protocols=protocols,
            ),
            version,
            choice,
        )

    @rule(member=st.integers(0, 6), old=st.booleans(), data=st.binary(max_size=1), choice=st.integers(0, 3))
    def sync(self, member: int, old: bool, data: bytes, choice: int) -> None:
        group = self.group
        generation = group.generation - old if group else 0
        given = tuple(SyncGroupAssignment(m.member_id, data) for m in group.members) if group else ()
        self.ask(
            SyncGroupRequest("g", generation_id=generation, member_id=self.one(member), assignments=given), 4, choice
        )

    @precondition(lambda self: self.group is not None and self.group.state == COMPLETING)
    @rule(data=st.binary(max_size=1))
    def leader_syncs(self, data: bytes) -> None:
        assert self.group is not None
        assert self.group.leader is not None
        given = tuple(SyncGroupAssignment(m.member_id, data) for m in self.group.members)
        self.ask(
            SyncGroupRequest("g", generation_id=self.group.generation, member_id=self.group.leader, assignments=given),
            4,
            0,
        )

    @rule(member=st.integers(0, 6), choice=st.integers(0, 3))
    def beat(self, member: int, choice: int) -> None:
        generation = self.group.generation if self.group else 1
        self.ask(HeartbeatRequest("g", generation_id=generation, member_id=self.one(member)), 4, choice)

    @rule(
        members=st.lists(st.integers(0, 6), max_size=3),
        instance=st.sampled_from([None, "i", "j"]),
        choice=st.integers(0, 3),
    )
    def leave(self, members: list[int], instance: str | None, choice: int) -> None:
        entries = [LeaveGroupMember(self.one(member)) for member in members]
        entries += [LeaveGroupMember("", group_instance_id=instance)] if instance else []
        self.ask(LeaveGroupRequest("g", tuple(entries)), 5, choice)

    @rule()
    def delete(self) -> None:
        self.ask(DeleteGroupsRequest(("g",)), 2, 0)

    @precondition(lambda self: self.state.timers)
    @rule(number=st.integers(0, 20), choice=st.integers(0, 3))
    def timer(self, number: int, choice: int) -> None:
        timers = sorted(self.state.timers)
        self.do(Fire(timers[number % len(timers)]), choice)

    @precondition(lambda self: self.state.undurable)
    @rule(records=st.integers(1, 9))
    def replicate(self, records: int) -> None:
        self.do(Durable(min(records, self.state.undurable)))

    @precondition(lambda self: self.state.written is not None)
    @rule(error=st.sampled_from(ERRORS), choice=st.integers(0, 3))
    def append_fails(self, error: ErrorCode, choice: int) -> None:
        self.do(AppendError(error), choice)

    @precondition(lambda self: self.state.operations)
    @rule(number=st.integers(0, 9), choice=st.integers(0, 3))
    def operation_times_out(self, number: int, choice: int) -> None:
        operations = [each for each in self.state.operations if each.id > 0 and each.request is not None]
        if operations:
            self.do(TimeOut(operations[number % len(operations)].id), choice)

    # ---- promises -----------------------------------------------------------------------------------------------

    def checked(self, request: int, body: ResponseBody) -> None:
        group, sent = self.group, self.sent[request]
        assert broken_by_answer(sent, body, group, self.profile) == []
        if isinstance(body, JoinGroupResponse) and body.error_code is ErrorCode.NONE:
            assert group is not None
            assert body.generation_id == group.generation
        if isinstance(body, SyncGroupResponse) and body.error_code is ErrorCode.NONE:
            assert group is not None
            assert group.state == STABLE

    @invariant()
    def parked(self) -> None:
        """A JoinGroup is parked in a Stable group only while a replacement is written, and no answered request is
        parked (INV-MEM-05)."""
        group = self.group
        if group is None:
            return
        replacing = any(operation.callback is not None for operation in self.state.operations)
        for member in group.members:
            assert member.join is None or group.state == PREPARING or replacing
            for request in (member.join, member.sync):
                assert request in (None, ANSWERED) or request not in self.answered

    @invariant()
    def members(self) -> None:
        """The model keeps more than the promise: a leader is a member in the join phase too (INV-MEM-04)."""
        group = self.group
        if group is None:
            return
        ids = [member.member_id for member in group.members]
        assert ids == sorted(set(ids))
        assert (group.leader in ids) if ids else group.leader is None
        assert group.state not in (COMPLETING, STABLE) or group.protocol_name is not None

    @invariant()
    def timers(self) -> None:
        """Everything that a group waits for has a timer (LIV-02, LIV-03)."""
        group = self.group
        if group is None:
            return
        armed = {timer.kind for timer in self.state.timers}
        sessions = {timer.member_id for timer in self.state.timers if timer.kind == "session"}
        if group.state == PREPARING:
            assert "join" in armed
        if group.state == COMPLETING and group.pending_sync:
            assert "sync" in armed
        assert group.pending_join <= sessions  # LIV-11
        for member in group.members:
            if member.join is None and member.sync is None:
                assert member.member_id in sessions  # LIV-04


class Kafka(Intended):
    """The same for Kafka 4.3: of the promises that it breaks, only what remains."""

    profile = KAFKA_4_3


TestIntended = Intended.TestCase
TestKafka = Kafka.TestCase
TestIntended.settings = TestKafka.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@pytest.mark.parametrize("kind", [Intended, Kafka])
def test_a_join_phase_that_throws_uses_up_its_generation(kind: type[Intended]) -> None:
    """The delay of a group whose creation failed ends in the next group, which has only a pending member. No promise
    that Kafka keeps is broken (INV-GEN-01, C-ST-27, C-TMR-12)."""
    machine = kind()
    machine.start(size=9, delay=3_000)
    machine.join(member=None, instance="i", offer=(("p",), b""), version=9, choice=0)
    machine.append_fails(ERRORS[0], 0)
    machine.join(member=None, instance=None, offer=(("p",), b""), version=9, choice=0)
    assert machine.group is not None
    assert (machine.group.state, machine.group.members) == (EMPTY, ())
    if JOIN_TIMER in machine.state.timers:
        machine.do(Fire(JOIN_TIMER))
    assert machine.group.generation == (kind is Kafka)
