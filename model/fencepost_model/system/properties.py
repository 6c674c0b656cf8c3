"""The promises of the closed system: the properties of ``spec/ClassicProperties.tla``, under the same names.

Each function returns the parts of one property. A part reads as little as it can (one or two clients, a view of the
group), so that it is evaluated once per combination of these values instead of once per state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, Final, TypeAlias

from fencepost.protocol.records import Record

from ..classic.group import GroupState
from ..classic.state import JOIN_TIMER, SYNC_TIMER, Member, Timer
from ..explore.interface import Invariant, Label, LeadsTo, Properties, Settles, StepInvariant
from ..machines import COMPLETING, EMPTY, PREPARING, STABLE
from .client import has_its_generation
from .closed import GROUP, LOG, ClosedSystem, Shape
from .coordinator import existing, parked
from .durable import Durable, follows
from .fairness import of_system
from .gather import gather
from .values import Client, Endpoint, JoinRequest, LeaveRequest, SyncRequest, decode_metadata, decode_partitions

Part: TypeAlias = Invariant | StepInvariant | LeadsTo | Settles
Leases: TypeAlias = frozenset[tuple[str, int, frozenset[str]]]  #: member id, generation, partitions


def _identity(system: ClosedSystem, client: int, member_id: str) -> str:
    return system.config.instance(client) or member_id


def _each_client(system: ClosedSystem) -> Iterable[tuple[int, str, str]]:
    return ((number, name, system.config.instance(number)) for number, name in enumerate(system.config.clients))


def _can_commit(system: ClosedSystem, group: GroupState, client: int, its: Client) -> bool:
    """Return whether the client would commit now (K-OFF-02), and the model's coordinator would accept it."""
    return has_its_generation(its) and system.commit_is_accepted(group, client, its)


def no_partition_has_two_owners_in_a_generation(system: ClosedSystem) -> Iterable[Part]:
    """Two owners of one partition in the same generation are the same member (INV-OWN-01)."""
    for c, d in combinations(range(len(system.config.clients)), 2):

        def holds(mine: Client, other: Client, c: int = c, d: int = d) -> bool:
            return (
                not mine.owned & other.owned
                or mine.owned_generation != other.owned_generation
                or _identity(system, c, mine.member_id) == _identity(system, d, other.member_id)
            )

        yield Invariant("NoPartitionHasTwoOwnersInAGeneration", (system.members[c], system.members[d]), holds)


def no_partition_has_two_committers(system: ClosedSystem) -> Iterable[Part]:
    """Whatever clients believe (NOT-01), the coordinator accepts commits of at most one of them."""
    for c, d in combinations(range(len(system.config.clients)), 2):

        def holds(group: GroupState, one: Client, two: Client, c: int = c, d: int = d) -> bool:
            both = one.owned & two.owned
            return not (both and _can_commit(system, group, c, one) and _can_commit(system, group, d, two))

        yield Invariant("NoPartitionHasTwoCommitters", (GROUP, system.members[c], system.members[d]), holds)


def only_holders_commit(system: ClosedSystem) -> Iterable[Part]:
    """Every accepted commit is one that ``Ownership`` allows: its client has a lease of the last decision, believed or
    in flight, with the partition."""
    numbers = range(len(system.config.clients))
    for c in numbers:

        def holds(group: GroupState, record: Record, mine: Client, *leases: Leases, c: int = c) -> bool:
            if not _can_commit(system, group, c, mine):
                return True
            generation = record.group_metadata.generation if record.group_metadata else 0
            holder = _identity(system, c, mine.member_id)
            granted = [
                owned
                for number, each in enumerate(leases)
                for member, epoch, owned in each
                if epoch == generation and _identity(system, number, member) == holder
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


def no_partition_is_reassigned_before_it_is_released(system: ClosedSystem) -> Iterable[Part]:
    """A partition assigned to one member is owned by no client of another that has the generation (INV-KIP-09)."""

    def holds(state: GroupState, client: Client) -> bool:
        group = existing(state)
        if not client.owned or client.generation != group.generation:
            return True
        others = [member for member in group.members if member.member_id != client.member_id]
        belongs = len(others) < len(group.members)
        return not belongs or all(not client.owned & decode_partitions(member.assignment) for member in others)

    for view in system.members:
        yield Invariant("NoPartitionIsReassignedBeforeItIsReleased", (GROUP, view), holds)


def every_assignment_is_logged(system: ClosedSystem) -> Iterable[Part]:
    """A member's assignment is its part of the logged one, and comes after it (INV-SYNC-01, INV-SYNC-02)."""
    for number, _, _ in _each_client(system):

        def holds(record: Record, client: Client, number: int = number) -> bool:
            value = record.group_metadata
            if client.state != "stable" or value is None or client.generation < value.generation:
                return True
            return client.generation == value.generation and any(
                (member.group_instance_id or member.member_id) == _identity(system, number, client.member_id)
                and decode_partitions(member.assignment) == client.owned
                for member in value.members
            )

        yield Invariant("EveryAssignmentIsLogged", (system.record, system.members[number]), holds)


def is_stale(group: GroupState, member_id: str, instance: str, generation: int) -> bool:
    """Return whether the coordinator must refuse this identity and generation: C-HB-08, C-SYNC-09, written again from
    the rules."""
    members = {member.member_id: member for member in existing(group).members}
    return (
        member_id not in members
        or (instance != "" and members[member_id].instance != instance)
        or generation != existing(group).generation
    )


def a_stale_sync_changes_nothing(system: ClosedSystem) -> Iterable[Part]:
    """A stale SyncGroup neither changes the group nor gets an assignment (INV-SYNC-03, INV-FENCE-01, INV-FENCE-02)."""
    for number, name, instance in _each_client(system):

        def holds(
            label: Label, before: tuple[Any, ...], after: tuple[Any, ...], name: str = name, instance: str = instance
        ) -> bool:
            group, log, endpoint = before
            if name not in label:
                return True
            stale = [
                request
                for request in endpoint.requests - after[2].requests
                if isinstance(request, SyncRequest) and is_stale(group, request.member_id, instance, request.generation)
            ]
            answered = after[2].replies - endpoint.replies
            return not stale or (after[:2] == (group, log) and all(reply.error != "NONE" for reply in answered))

        yield StepInvariant(
            "AStaleSyncChangesNothing",
            (GROUP, LOG, system.endpoints[number]),
            holds,
            frozenset({"CoordinatorHandlesSync", "AppendFails"}),
            (system.endpoints[number],),
        )


def a_stale_heartbeat_fences_its_client(system: ClosedSystem) -> Iterable[Part]:
    """A removed member learns of it from its heartbeat, which keeps no session alive (INV-FENCE-02)."""
    for number, name, instance in _each_client(system):

        def holds(
            label: Label, before: tuple[Any, ...], after: tuple[Any, ...], name: str = name, instance: str = instance
        ) -> bool:
            group, client = before
            if label[1] != name or not is_stale(group, client.member_id, instance, client.generation):
                return True
            return bool(after[0] == group and not after[1].owned)

        reads = (GROUP, system.members[number])
        yield StepInvariant("AStaleHeartbeatFencesItsClient", reads, holds, frozenset({"ClientHeartbeats"}))


def is_replaced(group: GroupState, member_id: str, instance: str) -> bool:
    """Return whether another member has the instance id of this one."""
    others = (member for member in existing(group).members if member.member_id != member_id)
    return bool(member_id and instance) and any(member.instance == instance for member in others)


def every_replaced_member_is_fenced(system: ClosedSystem) -> Iterable[Part]:
    """No request of a replaced member succeeds, whatever the API, and the answer ends the old process (INV-FENCE-01,
    C-JOIN-38f, C-SYNC-08, C-HB-08)."""
    for number, name, instance in _each_client(system):
        if not instance:
            continue

        def is_refused(
            label: Label, before: tuple[Any, ...], after: tuple[Any, ...], name: str = name, instance: str = instance
        ) -> bool:
            group, log, endpoint = before
            replaced = [
                request
                for request in endpoint.requests - after[2].requests
                if not isinstance(request, LeaveRequest) and is_replaced(group, request.member_id, instance)
            ]
            if name not in label or not replaced:
                return True
            answers = {reply.error for reply in after[2].replies - endpoint.replies}
            return bool(after[:2] == (group, log) and answers <= {"FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"})

        def is_stopped(
            label: Label, before: tuple[Any, ...], after: tuple[Any, ...], name: str = name, instance: str = instance
        ) -> bool:
            group, client = before
            if label[1] != name or not is_replaced(group, client.member_id, instance):
                return True
            return bool(after[0] == group and after[1].state == "stopped")

        def may_not_commit(group: GroupState, its: Client, number: int = number, instance: str = instance) -> bool:
            return not (is_replaced(group, its.member_id, instance) and _can_commit(system, group, number, its))

        promise, endpoint = "EveryReplacedMemberIsFenced", system.endpoints[number]
        handles = frozenset({"CoordinatorHandlesJoin", "CoordinatorHandlesSync", "AppendFails"})
        yield StepInvariant(promise, (GROUP, LOG, endpoint), is_refused, handles, (endpoint,))
        reads = (GROUP, system.members[number])
        yield StepInvariant(promise, reads, is_stopped, frozenset({"ClientHeartbeats"}))
        yield Invariant(promise, reads, may_not_commit)


def the_logged_generation_never_decreases(system: ClosedSystem) -> Iterable[Part]:
    """The generation in the log never falls (INV-GEN-02)."""

    def generation(record: Record) -> int:
        value = record.group_metadata
        return value.generation if value is not None else 0

    yield StepInvariant(
        "TheLoggedGenerationNeverDecreases",
        (system.record,),
        lambda label, before, after: generation(after[0]) >= generation(before[0]),
        changed=(system.record,),
    )


def the_group_refines_durable(system: ClosedSystem) -> Iterable[Part]:
    """The log behaves as ``Durable`` says."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        return follows(*(Durable(log.replicated, log.open) for (log,) in (before, after)))

    yield StepInvariant("TheGroupRefinesDurable", (LOG,), holds, changed=(LOG,))


def every_join_phase_ends_in_a_new_generation(system: ClosedSystem) -> Iterable[Part]:
    """Only the end of a join phase makes a new generation; a new coordinator starts from the log (INV-GEN-01, C-ST-13,
    C-ST-14, C-ST-21)."""

    def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        old, new = existing(before[0]), existing(after[0])
        ended = new.state in (COMPLETING, EMPTY)
        if ended and new.generation == old.generation + 1:
            return True
        same = new.generation == old.generation and (not ended or new.state == old.state)
        return same or bool(after[0] == system.coordinator.load(after[1]))

    yield StepInvariant("EveryJoinPhaseEndsInANewGeneration", (GROUP, system.record), holds, changed=(GROUP,))


def every_changed_subscription_starts_a_rebalance(system: ClosedSystem) -> Iterable[Part]:
    """A JoinGroup that changes a member's subscription is not answered within the generation (C-JOIN-52, C-JOIN-54)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        old, new = existing(before[0]), existing(after[0])
        if new.generation > old.generation or all(
            each.error != "NONE" for each in after[1].replies - before[1].replies
        ):
            return True
        known = {member.member_id: decode_metadata(member.protocols[0].metadata) for member in old.members}
        handled = [each for each in before[1].requests - after[1].requests if isinstance(each, JoinRequest)]
        return all(known.get(request.member_id, request.metadata) == request.metadata for request in handled)

    for endpoint in system.endpoints:
        yield StepInvariant(
            "EveryChangedSubscriptionStartsARebalance",
            (GROUP, endpoint),
            holds,
            frozenset({"CoordinatorHandlesJoin"}),
            (endpoint,),
        )


JOIN_TIMER_FIRES: Final = frozenset({"JoinTimerFires", "JoinTimerFiresEarly"})
SYNC_TIMER_FIRES: Final = frozenset({"SyncTimerFires", "SyncTimerFiresEarly"})
SESSION_TIMER_FIRES: Final = frozenset({"SessionTimerFires", "SessionTimerFiresEarly"})


def no_join_phase_ends_early(system: ClosedSystem) -> Iterable[Part]:
    """Before the join timer fires, a join phase ends only when every member has joined, the last one in this step, and
    no id is pending (C-ST-23, C-JOIN-41)."""

    def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        old, new = existing(before[0]), existing(after[0])
        if new.generation <= old.generation or label[0] in JOIN_TIMER_FIRES:
            return True
        joined = {member.member_id for member in old.members if member.join is not None}
        return not new.pending_join and len({member.member_id for member in new.members} - joined) <= 1

    yield StepInvariant("NoJoinPhaseEndsEarly", (GROUP,), holds, changed=(GROUP,))


def every_membership_ends_for_a_reason(system: ClosedSystem) -> Iterable[Part]:
    """A membership ends by its owner, by an operator, or by a timer whose reason applies to the member (C-LEAVE-14,
    C-STATIC-02, C-TMR-07, C-JOIN-44, C-SYNC-20)."""
    promise = "EveryMembershipEndsForAReason"

    def gone(before: GroupState, after: GroupState) -> list[Member]:
        stay = {member.member_id for member in existing(after).members}
        return [member for member in existing(before).members if member.member_id not in stay]

    def has_reason(label: Label, group: GroupState, member: Member) -> bool:
        action = label[0]
        if action in JOIN_TIMER_FIRES:
            return member.instance is None and member.join is None
        if action in SYNC_TIMER_FIRES:
            return member.member_id in existing(group).pending_sync
        if action in SESSION_TIMER_FIRES:
            waits = member.join is not None or member.sync is not None
            return label[1] == member.member_id and (member.is_new or not waits)
        return action == "CoordinatorFailsOver" or (action == "OperatorRemovesMember" and label[1] == member.member_id)

    def by_itself(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        handles = label[0].startswith("CoordinatorHandles")
        return handles or all(has_reason(label, before[0], member) for member in gone(before[0], after[0]))

    yield StepInvariant(promise, (GROUP,), by_itself, changed=(system.shape,))
    for number, name, instance in _each_client(system):

        def by_request(
            label: Label, before: tuple[Any, ...], after: tuple[Any, ...], name: str = name, instance: str = instance
        ) -> bool:
            if label[1] != name:
                return True
            handled = before[1].requests - after[1].requests
            own = {request.member_id for request in handled}
            returns = instance and any(isinstance(request, JoinRequest) for request in handled)
            return all(
                member.member_id in own or (returns and member.instance == instance)
                for member in gone(before[0], after[0])
            )

        handles = frozenset({"CoordinatorHandlesJoin", "CoordinatorHandlesSync", "CoordinatorHandlesLeave"})
        yield StepInvariant(promise, (GROUP, system.endpoints[number]), by_request, handles, (system.shape,))


def _of_group(name: str, holds: Callable[[GroupState], bool]) -> Callable[[ClosedSystem], Iterable[Part]]:
    return lambda system: [Invariant(name, (GROUP,), holds)]


def _has_leader(state: GroupState) -> bool:
    group = existing(state)
    if group.state in (COMPLETING, STABLE):
        return any(member.member_id == group.leader for member in group.members)
    return group.state != EMPTY or (not group.members and group.leader is None)


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


def _expects_answer(group: GroupState, endpoint: Endpoint, number: int) -> bool:
    return bool(endpoint.replies) or any(request.awaited for request in endpoint.requests) or parked(group, number)


def _is_waiting(client: Client) -> bool:
    return client.state in ("joining", "syncing")


def every_waiting_client_expects_an_answer(system: ClosedSystem) -> Iterable[Part]:
    """LIV-01 as a safety property, for networks that neither lose nor duplicate."""
    for number, _, _ in _each_client(system):

        def holds(group: GroupState, endpoint: Endpoint, number: int = number) -> bool:
            return not _is_waiting(endpoint.client) or _expects_answer(group, endpoint, number)

        yield Invariant("EveryWaitingClientExpectsAnAnswer", (GROUP, system.endpoints[number]), holds)


def no_returning_static_member_is_rejected(system: ClosedSystem) -> Iterable[Part]:
    """A static member that returns needs no new room (C-STATIC-15, C-JOIN-75)."""
    for number, name, instance in _each_client(system):
        if not instance:
            continue

        def holds(
            label: Label, before: tuple[Any, ...], after: tuple[Any, ...], name: str = name, instance: str = instance
        ) -> bool:
            group = existing(before[0])
            known = any(member.instance == instance for member in group.members)
            if label[1] != name or not known or group.state not in (COMPLETING, STABLE):
                return True
            return all(reply.error != "GROUP_MAX_SIZE_REACHED" for reply in after[1].replies - before[1].replies)

        reads = (GROUP, system.endpoints[number])
        yield StepInvariant("NoReturningStaticMemberIsRejected", reads, holds, frozenset({"CoordinatorHandlesJoin"}))


def no_fail_over_fences_a_member(system: ClosedSystem) -> Iterable[Part]:
    """Waiting clients are sent to the new coordinator (F-UNLOAD-01)."""
    for endpoint in system.endpoints:
        yield StepInvariant(
            "NoFailOverFencesAMember", (endpoint,), _sends_other_errors, frozenset({"CoordinatorFailsOver"})
        )


def _sends_other_errors(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    return all(reply.error == "NOT_COORDINATOR" for reply in after[0].replies - before[0].replies)


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


def the_group_refines_ownership(system: ClosedSystem) -> Iterable[Part]:
    """Refinement of ``Ownership``: the last replicated record is the decision. The leases are what clients believe and
    the assignments in replies in flight. A new lease is one that the decision gives, and decisions only move
    forward."""
    count = len(system.config.clients)

    def grant(record: Record) -> tuple[int, dict[str, frozenset[str]]]:
        found: dict[str, frozenset[str]] = {}
        value = record.group_metadata
        if value is None:
            return 0, found
        for member in value.members:
            holder = member.group_instance_id or member.member_id
            found[holder] = found.get(holder, frozenset()) | decode_partitions(member.assignment)
        return value.generation, {holder: owned for holder, owned in found.items() if owned}

    def leases(values: Sequence[Leases]) -> set[tuple[str, int, frozenset[str]]]:
        return {
            (_identity(system, number, member), generation, owned)
            for number, each in enumerate(values)
            for member, generation, owned in each
        }

    def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (old_epoch, old_grant), (epoch, granted) = grant(before[0]), grant(after[0])
        if (epoch, granted) != (old_epoch, old_grant):
            parts = [p for owned in granted.values() for p in owned]
            if epoch <= old_epoch or len(parts) != len({*parts}):
                return False
        entitled = {(holder, epoch, owned) for holder, owned in granted.items()}
        return leases(after[1 : 1 + count]) <= leases(before[1 : 1 + count]) | entitled

    reads = (system.record, *system.leases)
    yield StepInvariant("TheGroupRefinesOwnership", reads, holds, changed=reads)


#: name → the parts of the property for a system
CATALOGUE: Final[dict[str, Callable[[ClosedSystem], Iterable[Part]]]] = {
    "NoPartitionHasTwoOwnersInAGeneration": no_partition_has_two_owners_in_a_generation,
    "NoPartitionHasTwoCommitters": no_partition_has_two_committers,
    "OnlyHoldersCommit": only_holders_commit,
    "EveryHolderMayCommit": every_holder_may_commit,
    "NoPartitionIsReassignedBeforeItIsReleased": no_partition_is_reassigned_before_it_is_released,
    "EveryAssignmentIsLogged": every_assignment_is_logged,
    "EveryReplacedMemberIsFenced": every_replaced_member_is_fenced,
    "EveryChangedSubscriptionStartsARebalance": every_changed_subscription_starts_a_rebalance,
    "NoJoinPhaseEndsEarly": no_join_phase_ends_early,
    "EveryMembershipEndsForAReason": every_membership_ends_for_a_reason,
    "AStaleSyncChangesNothing": a_stale_sync_changes_nothing,
    "AStaleHeartbeatFencesItsClient": a_stale_heartbeat_fences_its_client,
    "TheLoggedGenerationNeverDecreases": the_logged_generation_never_decreases,
    "TheGroupRefinesDurable": the_group_refines_durable,
    "EveryJoinPhaseEndsInANewGeneration": every_join_phase_ends_in_a_new_generation,
    # INV-MEM-03, INV-MEM-04: a group past its join phase is led by a member; an Empty one has no members
    "EveryGroupHasALeaderAfterItsJoinPhase": _of_group("EveryGroupHasALeaderAfterItsJoinPhase", _has_leader),
    # SyncGroups are parked only while Completing (INV-MEM-06).
    "ParkedSyncsExistOnlyWhileCompleting": _of_group(
        "ParkedSyncsExistOnlyWhileCompleting",
        lambda state: existing(state).state == COMPLETING or all(m.sync is None for m in existing(state).members),
    ),
    # Every id in pending-sync is a member (INV-MEM-07).
    "EveryPendingSyncIsAMember": _of_group("EveryPendingSyncIsAMember", _pending_are_members),
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
    "NoReturningStaticMemberIsRejected": no_returning_static_member_is_rejected,
    "NoFailOverFencesAMember": no_fail_over_fences_a_member,
    "TheGroupSettles": the_group_settles,
    "EveryWaitEnds": every_wait_ends,
    "TheGroupRefinesOwnership": the_group_refines_ownership,
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
FAIRNESS: Final = of_system(SYSTEM)


def properties_of(system: ClosedSystem, names: Sequence[str], *, fair: bool = False) -> Properties:
    """Return the named properties for the system. Raises ValueError for an unknown name."""
    from .witnesses import WITNESSES  # noqa: PLC0415

    return gather(system, names, {**CATALOGUE, **WITNESSES}, FAIRNESS if fair else ())
