"""The group machine alone, in an environment that may do anything: the faults that the closed system leaves out.

There are no clients. A bounded number of requests of a few kinds arrives. Any armed timer fires, any open operation
times out, any append fails. So a group is created and removed again (C-JOIN-16), operations time out while their
records stay in the log (F-RT-09), and lists of protocols are odd (C-JOIN-72). TLA+ has no counterpart for this. Under
the profile of a Kafka release the exploration finds a shortest trace to each fault; under ``intended`` all properties
hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, Protocol, RequestBody, SyncGroupAssignment, SyncGroupRequest
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

from ..classic import AppendError, Arrive, Durable, Fire, GroupModel, TimeOut
from ..classic.group import GroupState
from ..classic.state import ANSWERED, Input
from ..explore.interface import Invariant, Label, Properties, StepInvariant
from ..machines import PREPARING
from .config import DELAY_MS, SESSION_MS
from .coordinator import CLIENT_HOST, CLIENT_ID, GROUP_ID, PROTOCOL_TYPE


class Open(NamedTuple):
    """The group machine's state, and how many requests have arrived."""

    group: GroupState
    requests: int


def _join(instance: str | None, *names: str) -> Callable[[GroupState], Iterable[RequestBody]]:
    """Return a JoinGroup without an id, and one with each pending id."""

    def bodies(state: GroupState) -> Iterable[RequestBody]:
        group = state.group
        pending = sorted(group.pending_join) if group is not None and instance is None else []
        for member_id in ("", *pending):
            protocols = tuple(Protocol(name, b"") for name in names)
            yield JoinGroupRequest(
                GROUP_ID,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=DELAY_MS,
                member_id=member_id,
                group_instance_id=instance,
                protocol_type=PROTOCOL_TYPE,
                protocols=protocols,
            )

    return bodies


def _leader_syncs(state: GroupState) -> Iterable[RequestBody]:
    group = state.group
    if group is not None and group.leader is not None:
        assignments = tuple(SyncGroupAssignment(member.member_id, b"p1") for member in group.members)
        yield SyncGroupRequest(
            GROUP_ID, generation_id=group.generation, member_id=group.leader, assignments=assignments
        )


#: first word of the label → the requests of that kind that may arrive now
REQUESTS: Final[dict[str, Callable[[GroupState], Iterable[RequestBody]]]] = {
    "Join": _join(None, "range"),
    "StaticJoin": _join("i1", "range"),
    "StaticJoinWithOther": _join("i1", "range", "roundrobin"),
    "JoinWithDoubledName": _join(None, "range", "range"),
    "LeaderSyncs": _leader_syncs,
}


@dataclass(frozen=True)
class OpenSystem:
    """A plain model: at most ``limit`` requests of the ``kinds``, ids m1, m2, … in order."""

    profile: Profile = INTENDED
    limit: int = 3
    kinds: tuple[str, ...] = ("Join", "StaticJoin", "JoinWithDoubledName", "LeaderSyncs")
    names: tuple[str, ...] = ()  #: properties to check; empty: all
    machine: GroupModel = field(init=False)

    def __post_init__(self) -> None:
        settings = Settings(group_initial_rebalance_delay_ms=DELAY_MS)
        object.__setattr__(self, "machine", GroupModel(settings, self.profile, group_id=GROUP_ID))

    def initial(self) -> Iterable[Open]:
        return [Open(self.machine.initial(), 0)]

    def actions(self, state: Open) -> Iterable[Label]:
        group = state.group
        if state.requests < self.limit:
            for kind in self.kinds:
                for place, _ in enumerate(REQUESTS[kind](group)):
                    yield kind, str(place)
        for timer in sorted(group.timers):
            yield ("TimerFires", *timer)
        if group.undurable:
            yield ("AppendSucceeds",)
        if group.written is not None:
            yield ("AppendFails",)
        for operation in sorted({operation.id for operation in group.operations}):
            yield "OperationTimesOut", str(operation)

    def stimulus(self, state: Open, label: Label) -> Input:
        """Return the group machine's input for this label."""
        word = label[0]
        if word in REQUESTS:
            body = [*REQUESTS[word](state.group)][int(label[1])]
            number = state.requests + 1
            return Arrive(number, 5 if word == "LeaderSyncs" else 9, CLIENT_ID, CLIENT_HOST, body, f"m{number}")
        if word == "TimerFires":
            return Fire(next(timer for timer in state.group.timers if tuple(timer) == label[1:]))
        if word == "AppendSucceeds":
            return Durable(1)
        if word == "AppendFails":
            return AppendError(ErrorCode.NOT_ENOUGH_REPLICAS)
        return TimeOut(int(label[1]))

    def step(self, state: Open, action: Label) -> Open:
        after = self.machine.successors(state.group, self.stimulus(state, action))[0].state
        return Open(after, state.requests + (action[0] in REQUESTS))

    def properties(self) -> Properties:
        chosen = [each for each in PROPERTIES if not self.names or each.name in self.names]
        return Properties(
            invariants=tuple(each for each in chosen if isinstance(each, Invariant)),
            steps=tuple(each for each in chosen if isinstance(each, StepInvariant)),
        )


def _no_answered_member_is_parked(state: Open) -> bool:
    group = state.group.group
    return group is None or all(ANSWERED not in (member.join, member.sync) for member in group.members)


def _preparing_has_its_timer(state: Open) -> bool:
    group = state.group.group
    return group is None or group.state != PREPARING or any(timer.kind == "join" for timer in state.group.timers)


def _no_time_out_undoes_a_change(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    """A time-out leaves state and leader as they are, as the log has them or will; parked requests may change."""
    old, new = before[0].group.group, after[0].group.group
    return bool(old is not None and new is not None and (old.state, old.leader) == (new.state, new.leader))


PROPERTIES: Final[tuple[Invariant | StepInvariant, ...]] = (
    # The answer to an append that failed or timed out ends the wait of its member (C-JOIN-70, C-JOIN-16 ii).
    Invariant("NoAnsweredMemberIsParked", (0,), _no_answered_member_is_parked),
    # The end of a join phase does not fail halfway, so the phase always has a timer that ends it (C-JOIN-72).
    Invariant("EveryPreparingGroupHasAJoinTimer", (0,), _preparing_has_its_timer),
    # No timer acts on the next group of the name (C-TMR-12).
    Invariant("NoTimerOutlivesItsGroup", (0,), lambda state: state.group.group is not None or not state.group.timers),
    # An append that times out may still be in the log, so nothing is put back (C-SYNC-33, C-STATIC-06, F-RT-09).
    StepInvariant("NoTimeOutUndoesAChange", (0,), _no_time_out_undoes_a_change, frozenset({"OperationTimesOut"})),
    # Two replacements of one instance id at a time leave the counts of protocols right (C-STATIC-18).
    Invariant("SupportIsCountedCorrectly", (0,), lambda state: state.group.group is None or not state.group.group.skew),
)
