"""The promises of the closed system about its steps: requests and their answers, generations, and refinement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from fencepost.protocol.records import Record

from ..classic.group import GroupState
from ..classic.state import JOIN_TIMER, Group, Member
from ..explore.interface import Invariant, Label, StepInvariant
from ..machines import COMPLETING, EMPTY, PREPARING, STABLE
from .closed import GROUP, LOG, ClosedSystem
from .coordinator import existing
from .durable import Durable, follows
from .gather import Part
from .properties import Leases, Property, can_commit, each_client, identity
from .values import Client, JoinReply, JoinRequest, LeaveRequest, SyncRequest, decode_metadata, decode_partitions

#: The steps in which a timer fires.
JOIN_TIMER_FIRES: Final = frozenset({"JoinTimerFires", "JoinTimerFiresEarly"})
SYNC_TIMER_FIRES: Final = frozenset({"SyncTimerFires", "SyncTimerFiresEarly"})
SESSION_TIMER_FIRES: Final = frozenset({"SessionTimerFires", "SessionTimerFiresEarly"})


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
    for number, name, instance in each_client(system):

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
    for number, name, instance in each_client(system):

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
    for number, name, instance in each_client(system):
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
            return not (is_replaced(group, its.member_id, instance) and can_commit(system, group, number, its))

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

    # The closed system forgets previous states, so this is a separate form of the promise INV-GEN-01.
    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
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


def every_rejoin_of_a_leader_starts_a_rebalance(system: ClosedSystem) -> Iterable[Part]:
    """The leader of a Stable group joins again because it wants another assignment, so its JoinGroup starts a rebalance
    (C-JOIN-53)."""
    for number, name, instance in each_client(system):

        def holds(
            label: Label, before: tuple[Any, ...], after: tuple[Any, ...], name: str = name, instance: str = instance
        ) -> bool:
            group = existing(before[0])
            leader = next((each for each in group.members if each.member_id == group.leader), None)
            if label[1] != name or group.state != STABLE or leader is None or instance not in ("", leader.instance):
                return True
            handled = before[1].requests - after[1].requests
            joins = any(isinstance(each, JoinRequest) and each.member_id == group.leader for each in handled)
            return not joins or existing(after[0]).state != STABLE

        reads = (GROUP, system.endpoints[number])
        handles_join = frozenset({"CoordinatorHandlesJoin"})
        yield StepInvariant("EveryRejoinOfALeaderStartsARebalance", reads, holds, handles_join)


def every_leader_of_a_stable_group_skips_its_assignment(system: ClosedSystem) -> Iterable[Part]:
    """A static leader that returns to a Stable group must not assign: the members keep what they have (C-STATIC-04)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        joined = [each for each in after[1].replies - before[1].replies if isinstance(each, JoinReply)]
        leads = [each for each in joined if each.error == "NONE" and each.member_id == each.leader]
        return existing(after[0]).state != STABLE or all(reply.skip_assignment for reply in leads)

    for endpoint in system.endpoints:
        promise = "EveryLeaderOfAStableGroupSkipsItsAssignment"
        yield StepInvariant(promise, (GROUP, endpoint), holds, changed=(endpoint,))


def a_rebalance_in_the_sync_phase_blanks_assignments(system: ClosedSystem) -> Iterable[Part]:
    """A rebalance that interrupts the sync phase blanks all assignments: they belong to the generation before, and a
    conversion must not take them for those of the next one (C-JOIN-42, C-SYNC-22, X-UP-05)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        old, new = existing(before[0]), existing(after[0])
        if old.state != COMPLETING or (new.state != PREPARING and new.generation <= old.generation):
            return True
        return not any(decode_partitions(member.assignment) for member in new.members)

    yield StepInvariant("ARebalanceInTheSyncPhaseBlanksAssignments", (GROUP,), holds, changed=(GROUP,))


def every_newcomer_extends_the_initial_delay(system: ClosedSystem) -> Iterable[Part]:
    """A newcomer in the initial delay extends it, as long as extensions are left (C-JOIN-43)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (old,), (new,) = before, after
        if not existing(old).new_member_added or old.delay is None or old.delay[1] == 0:
            return True
        return JOIN_TIMER in new.timers and new.delay is not None and new.delay[1] < old.delay[1]

    yield StepInvariant("EveryNewcomerExtendsTheInitialDelay", (GROUP,), holds, JOIN_TIMER_FIRES)


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


def is_late(action: str, group: Group, member: Member) -> bool:
    """Return whether the timer's reason applies to the member: it has not joined (C-JOIN-44), has not synced
    (C-SYNC-20), or was silent while no request of it was parked (C-TMR-07)."""
    if action in JOIN_TIMER_FIRES:
        return member.instance is None and member.join is None
    if action in SYNC_TIMER_FIRES:
        return member.member_id in group.pending_sync
    return action in SESSION_TIMER_FIRES and (member.is_new or (member.join is None and member.sync is None))


def every_membership_ends_for_a_reason(system: ClosedSystem) -> Iterable[Part]:
    """A membership ends by its owner, by an operator, or by a timer whose reason applies to the member (C-LEAVE-14,
    C-STATIC-02, C-TMR-07, C-JOIN-44, C-SYNC-20)."""
    promise = "EveryMembershipEndsForAReason"

    def gone(before: GroupState, after: GroupState) -> list[Member]:
        stay = {member.member_id for member in existing(after).members}
        return [member for member in existing(before).members if member.member_id not in stay]

    def has_reason(label: Label, group: GroupState, member: Member) -> bool:
        if label[0] == "CoordinatorFailsOver":
            return True
        if len(label) > 1 and label[1] != member.member_id:
            return False
        return label[0] == "OperatorRemovesMember" or is_late(label[0], existing(group), member)

    def by_itself(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        handles = label[0].startswith("CoordinatorHandles")
        return handles or all(has_reason(label, before[0], member) for member in gone(before[0], after[0]))

    yield StepInvariant(promise, (GROUP,), by_itself, changed=(system.shape,))
    for number, name, instance in each_client(system):

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


def no_returning_static_member_is_rejected(system: ClosedSystem) -> Iterable[Part]:
    """A static member that returns needs no new room (C-STATIC-15, C-JOIN-75)."""
    for number, name, instance in each_client(system):
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
            (identity(system, number, member), generation, owned)
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


STEPS: Final[dict[str, Property]] = {
    "EveryReplacedMemberIsFenced": every_replaced_member_is_fenced,
    "EveryChangedSubscriptionStartsARebalance": every_changed_subscription_starts_a_rebalance,
    "EveryRejoinOfALeaderStartsARebalance": every_rejoin_of_a_leader_starts_a_rebalance,
    "EveryLeaderOfAStableGroupSkipsItsAssignment": every_leader_of_a_stable_group_skips_its_assignment,
    "ARebalanceInTheSyncPhaseBlanksAssignments": a_rebalance_in_the_sync_phase_blanks_assignments,
    "EveryNewcomerExtendsTheInitialDelay": every_newcomer_extends_the_initial_delay,
    "NoJoinPhaseEndsEarly": no_join_phase_ends_early,
    "EveryMembershipEndsForAReason": every_membership_ends_for_a_reason,
    "AStaleSyncChangesNothing": a_stale_sync_changes_nothing,
    "AStaleHeartbeatFencesItsClient": a_stale_heartbeat_fences_its_client,
    "TheLoggedGenerationNeverDecreases": the_logged_generation_never_decreases,
    "TheGroupRefinesDurable": the_group_refines_durable,
    "EveryJoinPhaseEndsInANewGeneration": every_join_phase_ends_in_a_new_generation,
    "NoReturningStaticMemberIsRejected": no_returning_static_member_is_rejected,
    "NoFailOverFencesAMember": no_fail_over_fences_a_member,
    "TheGroupRefinesOwnership": the_group_refines_ownership,
}
