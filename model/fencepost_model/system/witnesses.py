"""Invariants that must *not* hold: each says "never" about something that must be reachable.

They are those of ``spec/MCClassicGroup.tla``, and two more about the bounds of a configuration instead of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Final

from ..classic.group import GroupState
from ..explore.interface import Invariant
from ..machines import EMPTY, PREPARING, STABLE
from .closed import COUNTERS, GROUP, ClosedSystem, Shape
from .config import DELAY_MS
from .coordinator import existing
from .environment import Counters
from .gather import Part
from .properties import Property
from .values import Client, Endpoint, JoinReply, JoinRequest


def every_variable_has_its_type(system: ClosedSystem) -> Iterable[Part]:
    config = system.config
    ids = {*config.member_ids}

    def group_is_typed(state: GroupState) -> bool:
        group = existing(state)
        named = {m.member_id for m in group.members} | group.pending_join | group.pending_sync
        timed = {timer.member_id for timer in state.timers if timer.kind == "session"}
        return named | timed | ({group.leader} - {None}) <= ids and group.generation >= 0

    def counters_are_typed(counters: Counters) -> bool:
        return 0 <= counters.ids_used <= len(ids) and system.environment.has_types(counters.faults_left)

    yield Invariant("EveryVariableHasItsType", (GROUP,), group_is_typed)
    yield Invariant("EveryVariableHasItsType", (COUNTERS,), counters_are_typed)
    for view in system.members:
        yield Invariant(
            "EveryVariableHasItsType",
            (view,),
            lambda client: client.member_id in ids | {""} and client.owned <= {*config.partitions},
        )


def every_join_finds_an_id(system: ClosedSystem) -> Iterable[Part]:
    """No run of the configuration is cut off for lack of member ids."""
    for endpoint in system.endpoints:

        def holds(counters: Counters, waiting: Endpoint) -> bool:
            needs = any(isinstance(request, JoinRequest) and not request.member_id for request in waiting.requests)
            return not needs or counters.ids_used < len(system.config.member_ids)

        yield Invariant("EveryJoinFindsAnId", (COUNTERS, endpoint), holds)


def no_two_clients_ever_believe_to_own_a_partition(system: ClosedSystem) -> Iterable[Part]:
    """Two clients believe that they own a partition (NOT-01)."""
    for pair in combinations(system.members, 2):
        yield Invariant("NoTwoClientsEverBelieveToOwnAPartition", pair, lambda one, two: not one.owned & two.owned)


def the_group_is_never_stable(system: ClosedSystem) -> Iterable[Part]:
    yield Invariant("TheGroupIsNeverStable", (GROUP,), lambda state: existing(state).state != STABLE)


def the_group_is_never_empty_again(system: ClosedSystem) -> Iterable[Part]:
    def holds(state: GroupState) -> bool:
        return existing(state).state != EMPTY or existing(state).generation == 0

    yield Invariant("TheGroupIsNeverEmptyAgain", (GROUP,), holds)


def no_static_leader_ever_skips_its_assignment(system: ClosedSystem) -> Iterable[Part]:
    """A static leader that returns skips its assignment (C-STATIC-04)."""
    for endpoint in system.endpoints:

        def holds(value: Endpoint) -> bool:
            return not any(isinstance(reply, JoinReply) and reply.skip_assignment for reply in value.replies)

        yield Invariant("NoStaticLeaderEverSkipsItsAssignment", (endpoint,), holds)


def no_delay_is_ever_extended(system: ClosedSystem) -> Iterable[Part]:
    """A newcomer extends the initial delay (C-JOIN-43)."""

    def holds(state: GroupState) -> bool:
        initial = existing(state).state == PREPARING and existing(state).previous == EMPTY
        left = state.delay[1] // DELAY_MS if state.delay is not None else 0
        return not initial or left == system.config.delay_windows

    yield Invariant("NoDelayIsEverExtended", (GROUP,), holds)


def no_client_ever_keeps_a_partition_while_joining(system: ClosedSystem) -> Iterable[Part]:
    """A cooperative client keeps partitions while it joins (K-CB-11)."""

    def holds(client: Client) -> bool:
        return client.state not in ("joining", "syncing") or not client.owned

    for view in system.members:
        yield Invariant("NoClientEverKeepsAPartitionWhileJoining", (view,), holds)


def no_unreceived_assignment_is_ever_loaded(system: ClosedSystem) -> Iterable[Part]:
    """A new coordinator loads a generation whose assignment no client had received (F-SURV-05)."""

    def holds(state: GroupState, shape: Shape, *clients: Client) -> bool:
        if shape.state != STABLE or shape.generation == 0 or existing(state).pending_sync:
            return True
        return any(client.generation >= shape.generation for client in clients)

    yield Invariant("NoUnreceivedAssignmentIsEverLoaded", (GROUP, system.shape, *system.members), holds)


WITNESSES: Final[dict[str, Property]] = {
    "EveryVariableHasItsType": every_variable_has_its_type,
    "EveryJoinFindsAnId": every_join_finds_an_id,
    "NoTwoClientsEverBelieveToOwnAPartition": no_two_clients_ever_believe_to_own_a_partition,
    "TheGroupIsNeverStable": the_group_is_never_stable,
    "TheGroupIsNeverEmptyAgain": the_group_is_never_empty_again,
    "NoStaticLeaderEverSkipsItsAssignment": no_static_leader_ever_skips_its_assignment,
    "NoDelayIsEverExtended": no_delay_is_ever_extended,
    "NoClientEverKeepsAPartitionWhileJoining": no_client_ever_keeps_a_partition_while_joining,
    "NoUnreceivedAssignmentIsEverLoaded": no_unreceived_assignment_is_ever_loaded,
}
