"""The promises of the closed system: the properties of ``spec/ClassicProperties.tla``, under the same names.

This module has those of states, and liveness; those of steps are in ``steps``. Each function returns the parts of one
property. A part reads as little as it can (one or two clients, a view of the group), so that it is evaluated once per
combination of these values instead of once per state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Final, TypeAlias

from fencepost.protocol.records import Record

from ..classic.group import GroupState
from ..classic.invariants import view_of
from ..classic.state import JOIN_TIMER, SYNC_TIMER, Group, Timer
from ..explore.interface import Invariant, LeadsTo, Settles
from ..machines import COMPLETING, EMPTY, PREPARING, STABLE
from ..promises import PROMISES
from .client import has_its_generation
from .closed import GROUP, ClosedSystem, Shape
from .coordinator import existing, parked
from .environment import expects_answer
from .gather import Part
from .values import Client, Endpoint, decode_partitions

Property: TypeAlias = Callable[[ClosedSystem], Iterable[Part]]
Leases: TypeAlias = frozenset[tuple[str, int, frozenset[str]]]  #: member id, generation, partitions


def identity(system: ClosedSystem, client: int, member_id: str) -> str:
    """Return what stays the same when the client returns: its instance id, or else its member id."""
    return system.config.instance(client) or member_id


def each_client(system: ClosedSystem) -> Iterable[tuple[int, str, str]]:
    """Return the number, name and instance id (empty for none) of each client."""
    return ((number, name, system.config.instance(number)) for number, name in enumerate(system.config.clients))


def can_commit(system: ClosedSystem, group: GroupState, client: int, its: Client) -> bool:
    """Return whether the client would commit now (K-OFF-02), and the model's coordinator would accept it."""
    return has_its_generation(its) and system.commit_is_accepted(group, client, its)


def no_partition_has_two_owners_in_a_generation(system: ClosedSystem) -> Iterable[Part]:
    """Two owners of one partition in the same generation are the same member (INV-OWN-01)."""
    for c, d in combinations(range(len(system.config.clients)), 2):

        def holds(mine: Client, other: Client, c: int = c, d: int = d) -> bool:
            return (
                not mine.owned & other.owned
                or mine.owned_generation != other.owned_generation
                or identity(system, c, mine.member_id) == identity(system, d, other.member_id)
            )

        yield Invariant("NoPartitionHasTwoOwnersInAGeneration", (system.members[c], system.members[d]), holds)


def no_partition_has_two_committers(system: ClosedSystem) -> Iterable[Part]:
    """Whatever clients believe (NOT-01), the coordinator accepts commits of at most one of them."""
    for c, d in combinations(range(len(system.config.clients)), 2):

        def holds(group: GroupState, one: Client, two: Client, c: int = c, d: int = d) -> bool:
            both = one.owned & two.owned
            return not (both and can_commit(system, group, c, one) and can_commit(system, group, d, two))

        yield Invariant("NoPartitionHasTwoCommitters", (GROUP, system.members[c], system.members[d]), holds)


def only_holders_commit(system: ClosedSystem) -> Iterable[Part]:
    """Every accepted commit is one that ``Ownership`` allows: its client has a lease of the last decision, believed or
    in flight, with the partition."""
    numbers = range(len(system.config.clients))
    for c in numbers:

        def holds(group: GroupState, record: Record, mine: Client, *leases: Leases, c: int = c) -> bool:
            if not can_commit(system, group, c, mine):
                return True
            generation = record.group_metadata.generation if record.group_metadata else 0
            holder = identity(system, c, mine.member_id)
            granted = [
                owned
                for number, each in enumerate(leases)
                for member, epoch, owned in each
                if epoch == generation and identity(system, number, member) == holder
            ]
            return mine.owned <= frozenset[str]().union(*granted)

        yield Invariant("OnlyHoldersCommit", (GROUP, system.record, system.members[c], *system.leases), holds)


def every_holder_may_commit(system: ClosedSystem) -> Iterable[Part]:
    """A member with an assignment of this generation is not refused (O-COMMIT-25, O-COMMIT-28)."""
    for c in range(len(system.config.clients)):

        def holds(group: GroupState, mine: Client, c: int = c) -> bool:
            now = existing(group)
            belongs = any(member.member_id == mine.member_id for member in now.members)
            if not (mine.owned and has_its_generation(mine) and belongs and mine.generation == now.generation):
                return True
            return system.commit_is_accepted(group, c, mine)

        yield Invariant("EveryHolderMayCommit", (GROUP, system.members[c]), holds)


def gives_nothing_away(group: Group, client: Client) -> bool:
    """Return whether the client is not a member of this generation, or no other member is assigned what it owns."""
    if not client.owned or client.generation != group.generation:
        return True
    others = [member for member in group.members if member.member_id != client.member_id]
    belongs = len(others) < len(group.members)
    return not belongs or all(not client.owned & decode_partitions(member.assignment) for member in others)


def no_partition_is_reassigned_before_it_is_released(system: ClosedSystem) -> Iterable[Part]:
    """A partition assigned to one member is owned by no client of another that has the generation (INV-KIP-09)."""
    for view in system.members:
        yield Invariant(
            "NoPartitionIsReassignedBeforeItIsReleased",
            (GROUP, view),
            lambda state, client: gives_nothing_away(existing(state), client),
        )


def every_assignment_is_logged(system: ClosedSystem) -> Iterable[Part]:
    """A member's assignment is its part of the logged one, and comes after it (INV-SYNC-01, INV-SYNC-02)."""
    for number, _, _ in each_client(system):

        def holds(record: Record, client: Client, number: int = number) -> bool:
            value = record.group_metadata
            if client.state != "stable" or value is None or client.generation < value.generation:
                return True
            return client.generation == value.generation and any(
                (member.group_instance_id or member.member_id) == identity(system, number, client.member_id)
                and decode_partitions(member.assignment) == client.owned
                for member in value.members
            )

        yield Invariant("EveryAssignmentIsLogged", (system.record, system.members[number]), holds)


def _of_group(name: str, holds: Callable[[GroupState], bool]) -> Callable[[ClosedSystem], Iterable[Part]]:
    return lambda system: [Invariant(name, (GROUP,), holds)]


def _promise(name: str, *promise_ids: str, also: Callable[[GroupState], bool] = lambda _: True) -> Property:
    """Return the property that states promises of the catalogue. ``also``: what this closed system keeps beside it."""

    def holds(state: GroupState) -> bool:
        view = view_of(existing(state))
        return all(PROMISES[each].holds(view) for each in promise_ids) and also(state)

    return _of_group(name, holds)


def _all_joined(state: GroupState) -> bool:
    group = existing(state)
    return not group.pending_join and all(member.join is not None for member in group.members)


def _pending_are_members(state: GroupState) -> bool:
    group = existing(state)
    return group.pending_sync <= {member.member_id for member in group.members}


def _sync_timer_is_for_pending_syncs(state: GroupState) -> bool:
    group = existing(state)
    return SYNC_TIMER not in state.timers or (bool(group.pending_sync) and group.state in (COMPLETING, STABLE))


def _has_all_session_timers(state: GroupState) -> bool:
    group = existing(state)
    waits_for_nothing = {member.member_id for member in group.members if member.join is None and member.sync is None}
    return {Timer("session", each) for each in group.pending_join | waits_for_nothing} <= state.timers


def no_more_members_join_than_max_size(system: ClosedSystem) -> Iterable[Part]:
    """Absent static members may come on top of those that join (C-JOIN-21, C-JOIN-22)."""

    def holds(state: GroupState) -> bool:
        group = existing(state)
        joining = group.state == PREPARING
        present = [m for m in group.members if (m.join is not None if joining else m.instance is None)]
        return len(present) <= system.config.max_size

    yield Invariant("NoMoreMembersJoinThanMaxSize", (GROUP,), holds)


def _is_waiting(client: Client) -> bool:
    return client.state in ("joining", "syncing")


def every_waiting_client_expects_an_answer(system: ClosedSystem) -> Iterable[Part]:
    """LIV-01 as a safety property, for networks that neither lose nor duplicate."""
    for number, _, _ in each_client(system):

        def holds(group: GroupState, endpoint: Endpoint, number: int = number) -> bool:
            return not _is_waiting(endpoint.client) or expects_answer(endpoint, parked(group, number))

        yield Invariant("EveryWaitingClientExpectsAnAnswer", (GROUP, system.endpoints[number]), holds)


def the_group_settles(system: ClosedSystem) -> Iterable[Part]:
    """When faults end, all members are stable in the generation and every partition has an owner (LIV-05, 06)."""

    def content(shape: Shape, *clients: Client) -> bool:
        running = [client for client in clients if client.state not in ("down", "stopped")]
        if not running:
            return shape.state == EMPTY
        return (
            shape.state == STABLE
            and {member for member, _ in shape.members} == {client.member_id for client in running}
            and all(client.state == "stable" and client.generation == shape.generation for client in running)
            and {*system.config.partitions} <= {p for client in running for p in client.owned}
        )

    yield Settles("TheGroupSettles", (system.shape, *system.members), content)


def every_wait_ends(system: ClosedSystem) -> Iterable[Part]:
    """Every wait for an answer ends (LIV-01…04)."""
    for view in system.members:
        yield LeadsTo("EveryWaitEnds", (view,), _is_waiting, lambda client: not _is_waiting(client))


CATALOGUE: Final[dict[str, Property]] = {
    "NoPartitionHasTwoOwnersInAGeneration": no_partition_has_two_owners_in_a_generation,
    "NoPartitionHasTwoCommitters": no_partition_has_two_committers,
    "OnlyHoldersCommit": only_holders_commit,
    "EveryHolderMayCommit": every_holder_may_commit,
    "NoPartitionIsReassignedBeforeItIsReleased": no_partition_is_reassigned_before_it_is_released,
    "EveryAssignmentIsLogged": every_assignment_is_logged,
    "EveryGroupHasALeaderAfterItsJoinPhase": _promise(
        "EveryGroupHasALeaderAfterItsJoinPhase", "INV-MEM-03", "INV-MEM-04"
    ),
    "ParkedSyncsExistOnlyWhileCompleting": _promise("ParkedSyncsExistOnlyWhileCompleting", "INV-MEM-06"),
    "EveryPendingSyncIsAMember": _promise("EveryPendingSyncIsAMember", "INV-MEM-07", also=_pending_are_members),
    "EveryInstanceBelongsToOneMember": _promise("EveryInstanceBelongsToOneMember", "INV-MEM-02"),
    "NoMoreMembersJoinThanMaxSize": no_more_members_join_than_max_size,
    # The flag newMemberAdded is about the current initial delay (G-DATA-09).
    "NewMemberAddedIsSetOnlyInTheInitialDelay": _of_group(
        "NewMemberAddedIsSetOnlyInTheInitialDelay",
        lambda state: (
            not existing(state).new_member_added
            or (existing(state).state == PREPARING and existing(state).previous == EMPTY)
        ),
    ),
    "EveryWaitingClientExpectsAnAnswer": every_waiting_client_expects_an_answer,
    # Something always ends the join phase: the timer, or the last member that joins (LIV-02).
    "EveryPreparingGroupHasAJoinTimer": _of_group(
        "EveryPreparingGroupHasAJoinTimer",
        lambda state: existing(state).state != PREPARING or JOIN_TIMER in state.timers,
    ),
    "AJoinPhaseEndsWhenAllHaveJoined": _of_group(
        "AJoinPhaseEndsWhenAllHaveJoined",
        lambda state: existing(state).state != PREPARING or existing(state).previous == EMPTY or not _all_joined(state),
    ),
    # A completing group with pending syncs has its sync timer (LIV-03).
    "EveryCompletingGroupHasASyncTimer": _of_group(
        "EveryCompletingGroupHasASyncTimer",
        lambda state: (
            existing(state).state != COMPLETING or not existing(state).pending_sync or SYNC_TIMER in state.timers
        ),
    ),
    # A sync timer runs only for members that have not synced (C-TMR-02, C-JOIN-42).
    "ASyncTimerRunsOnlyForPendingSyncs": _of_group(
        "ASyncTimerRunsOnlyForPendingSyncs", _sync_timer_is_for_pending_syncs
    ),
    # A join timer runs only in a join phase (C-TMR-01).
    "AJoinTimerRunsOnlyInAJoinPhase": _of_group(
        "AJoinTimerRunsOnlyInAJoinPhase",
        lambda state: JOIN_TIMER not in state.timers or existing(state).state == PREPARING,
    ),
    # Every pending id has a session timer, and every member without a parked request (C-TMR-03…05, F-LOAD-06).
    "EveryMemberHasASessionTimer": _of_group("EveryMemberHasASessionTimer", _has_all_session_timers),
    "TheGroupSettles": the_group_settles,
    "EveryWaitEnds": every_wait_ends,
}


SYSTEM: Final = frozenset(
    {
        "AppendSucceeds",
        "CoordinatorHandlesJoin",
        "CoordinatorHandlesSync",
        "CoordinatorHandlesLeave",
        "ClientReceivesJoinReply",
        "ClientReceivesSyncReply",
        "JoinTimerFires",
        "SyncTimerFires",
        "ClientSendsJoin",
        "ClientHeartbeats",
        "ClientTimesOut",
        "SessionTimerFires",
    }
)
