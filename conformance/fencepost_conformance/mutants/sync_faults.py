"""Faults of the coordinator after the join phase: SyncGroup, heartbeats, the log, static members, loading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from importlib import import_module

from fencepost.coordinator import lifecycle, routing
from fencepost.coordinator.classic import access, expiry, heartbeat, rebalance, records, static, sync
from fencepost.coordinator.classic import replay as classic_replay
from fencepost.coordinator.classic.draft import GroupDraft
from fencepost.coordinator.classic.group import ClassicGroup, Member
from fencepost.coordinator.classic.static import MemberReplaced
from fencepost.coordinator.classic.sync import AssignmentSent
from fencepost.coordinator.consumer.group import ConsumerGroup
from fencepost.coordinator.kernel import completion
from fencepost.coordinator.kernel.state import Operation
from fencepost.coordinator.kernel.step import Step
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Load, Request, SetTimer, TimerKind
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.records import GroupMetadataValue, Record
from fencepost.protocol.view import GroupState

from .mutant import Mutant, Patches, Side

# A function of the package hides the module that it comes from.
replay = import_module("fencepost.coordinator.replay")


def _rebalance_told_as_old_generation(patches: Patches) -> None:
    patches.attribute(heartbeat, "_REBALANCE", HeartbeatResponse(ErrorCode.ILLEGAL_GENERATION))


def _answered_before_the_log(patches: Patches) -> None:
    def send(step: Step, group: GroupDraft, body: SyncGroupRequest) -> None:
        original(step, group, body)
        if isinstance(step.callback, AssignmentSent):
            rebalance.propagate_assignment(step, group, step.callback.assignments)

    original = patches.attribute(sync, "_send_assignment", send)


def _replacement_not_written(patches: Patches) -> None:
    def replace(
        step: Step, request: Request, body: JoinGroupRequest, group: GroupDraft, *, old_id: str, new_id: str
    ) -> None:
        original(step, request, body, group, old_id=old_id, new_id=new_id)
        if isinstance(step.callback, MemberReplaced):
            step.records.clear()
            static._tell(step, group, step.callback, request)
            step.callback = None

    original = patches.attribute(static, "replace", replace)


def _no_sync_timer(patches: Patches) -> None:
    def answer_all(step: Step, group: GroupDraft) -> None:
        original(step, group)
        step.timers[:] = [
            each for each in step.timers if not (isinstance(each, SetTimer) and each.key.kind is TimerKind.SYNC)
        ]

    original = patches.attribute(rebalance, "_answer_all", answer_all)


def _returning_leader_not_told(patches: Patches) -> None:
    patches.attribute(static, "SKIP_ASSIGNMENT_SINCE", 99)


def _returning_leader_assigns(patches: Patches) -> None:
    def tell(step: Step, group: GroupDraft, done: MemberReplaced, request: Request) -> None:
        count = len(step.replies)
        original(step, group, done, request)
        for position, reply in enumerate(step.replies[count:], count):
            if isinstance(reply.body, JoinGroupResponse):
                step.replies[position] = changed(reply, body=changed(reply.body, skip_assignment=False))

    original = patches.attribute(static, "_tell", tell)


def _sync_generation_unchecked(patches: Patches) -> None:
    def invalid(group: GroupDraft, body: SyncGroupRequest) -> ErrorCode | None:
        return original(group, changed(body, generation_id=group.generation))  # type: ignore[no-any-return]

    original = patches.attribute(sync, "_invalid", invalid)


def _heartbeat_generation_unchecked(patches: Patches) -> None:
    def beat(step: Step, request: Request, body: HeartbeatRequest) -> None:
        group = access.find(step, body.group_id)
        original(step, request, body if group is None else changed(body, generation_id=group.generation))

    original = patches.item(routing.HANDLERS, HeartbeatRequest, beat)


def _displaced_instance_accepted(patches: Patches) -> None:
    def beat(step: Step, request: Request, body: HeartbeatRequest) -> None:
        group = step.groups.get(body.group_id)
        known = group.static_members if isinstance(group, ClassicGroup | ConsumerGroup) else {}
        current = known.get(body.group_instance_id or "")
        if current is not None:
            body = changed(body, member_id=current)
        original(step, request, body)

    original = patches.item(routing.HANDLERS, HeartbeatRequest, beat)


def _displaced_request_not_fenced(patches: Patches) -> None:
    def exchange(step: Step, group: GroupDraft, instance_id: str, old_id: str, new_id: str) -> Member:
        count = len(step.replies)
        member: Member = original(step, group, instance_id, old_id, new_id)
        del step.replies[count:]
        return member

    original = patches.attribute(static, "_exchange", exchange)


def _parked_syncs_forgotten(patches: Patches) -> None:
    def propagate_error(step: Step, group: GroupDraft, error: ErrorCode) -> None:
        for member in list(group.members.values()):
            group.put(member._replace(assignment=b"", sync=None))

    patches.attribute(rebalance, "propagate_error", propagate_error)


def _failed_assignment_ignored(patches: Patches) -> None:
    patches.attribute(AssignmentSent, "failed", lambda sent, step, request, error: None)


def _failed_assignment_kept(patches: Patches) -> None:
    def failed(sent: AssignmentSent, step: Step, request: Request, error: ErrorCode) -> None:
        sent.replicated(step, request)

    patches.attribute(AssignmentSent, "failed", failed)


def _assignments_mixed_up(patches: Patches) -> None:
    def propagate(step: Step, group: GroupDraft, assignments: Mapping[str, bytes]) -> None:
        names = sorted(assignments)
        turned = names[1:] + names[:1]
        original(step, group, {name: assignments[other] for name, other in zip(names, turned, strict=True)})

    original = patches.attribute(rebalance, "propagate_assignment", propagate)


def _old_assignment_applied(patches: Patches) -> None:
    def current(sent: AssignmentSent, group: GroupDraft) -> bool:
        return group.state is GroupState.COMPLETING_REBALANCE

    patches.attribute(AssignmentSent, "_is_current", current)


def _silent_members_stay(patches: Patches) -> None:
    def session(step: Step, group: GroupDraft, member_id: str) -> None:
        if member_id in group.members:
            access.arm_session(step, group, group.members[member_id])
        else:
            original(step, group, member_id)

    original = patches.attribute(expiry, "_session", session)


def _sync_timer_spares_static_members(patches: Patches) -> None:
    def fired(step: Step, group: GroupDraft) -> None:
        dynamic = {
            each for each in group.pending_sync if each in group.members and group.members[each].instance_id is None
        }
        group.pending_sync = frozenset(dynamic)
        original(step, group)

    original = patches.attribute(expiry, "_sync", fired)


def _returning_member_is_late(patches: Patches) -> None:
    patches.attribute(expiry, "_overdue", lambda group: group.pending_sync)


def _undone_when_lost(patches: Patches) -> None:
    def unloaded(done: MemberReplaced, step: Step, number: int, operation: Operation, error: ErrorCode) -> None:
        completion.fail(step, number, operation, error)

    patches.attribute(MemberReplaced, "unloaded", unloaded)


def _load_forgets_instances(patches: Patches) -> None:
    def group(name: str, value: GroupMetadataValue, incarnation: int) -> ClassicGroup:
        loaded: ClassicGroup = original(name, value, incarnation)
        return loaded._replace(static_members={})

    original = patches.attribute(classic_replay, "_group", group)


def _load_skips_tombstones(patches: Patches) -> None:
    def to_apply(log: Sequence[Record], profile: Profile) -> Sequence[Record]:
        return original([record for record in log if record.value is not None], profile)  # type: ignore[no-any-return]

    original = patches.attribute(lifecycle, "to_apply", to_apply)
    patches.attribute(replay, "to_apply", to_apply)


def _load_watches_nobody(patches: Patches) -> None:
    def loaded(step: Step, event: Load) -> None:
        original(step, event)
        step.timers[:] = [each for each in step.timers if each.key.kind is not TimerKind.SESSION]

    original = patches.attribute(lifecycle, "loaded", loaded)


def _record_without_assignments(patches: Patches) -> None:
    def record(group: GroupDraft, assignments: Mapping[str, bytes]) -> Record:
        return original(group, {})  # type: ignore[no-any-return]

    original = patches.attribute(records, "group_record", record)


C = Side.COORDINATOR
FAULTS = (
    Mutant(
        "rebalance-told-as-old-generation", C, "KAFKA-2557",
        "a heartbeat during a rebalance is told that its generation is old", _rebalance_told_as_old_generation,
    ),
    Mutant(
        "answered-before-the-log", C, "KAFKA-2017",
        "SyncGroup is answered before the assignment is replicated", _answered_before_the_log,
    ),
    Mutant(
        "replacement-not-written", C, "KAFKA-10284",
        "the new member id of a static member that returned is not in the log", _replacement_not_written,
    ),
    Mutant("no-sync-timer", C, "KAFKA-12890", "nobody watches for members that never send SyncGroup", _no_sync_timer),
    Mutant(
        "returning-leader-not-told", C, "KAFKA-13435",
        "a static leader that returns is not told that it leads", _returning_leader_not_told,
    ),
    Mutant(
        "returning-leader-assigns", C, "KAFKA-13435",
        "a static leader that returns is told that it leads, and not to skip the assignment", _returning_leader_assigns,
    ),
    Mutant(
        "sync-generation-unchecked", C, "nisshi-io/nisshi@50e5666", "SyncGroup is accepted from any generation",
        _sync_generation_unchecked,
    ),
    Mutant(
        "heartbeat-generation-unchecked", C, "C-HB-09", "Heartbeat is accepted from any generation",
        _heartbeat_generation_unchecked,
    ),
    Mutant(
        "displaced-instance-accepted", C, "C-STATIC-13",
        "the instance id is enough for a heartbeat: a process that another one displaced is not fenced",
        _displaced_instance_accepted,
    ),
    Mutant(
        "displaced-request-not-fenced", C, "C-STATIC-02",
        "the parked requests of a displaced process are never answered", _displaced_request_not_fenced,
    ),
    Mutant(
        "parked-syncs-forgotten", C, "C-JOIN-42", "a rebalance drops the parked SyncGroups without an answer",
        _parked_syncs_forgotten,
    ),
    Mutant(
        "failed-assignment-ignored", C, "C-SYNC-22", "nothing happens when the assignment cannot be written",
        _failed_assignment_ignored,
    ),
    Mutant(
        "failed-assignment-kept", C, "INV-SYNC-02", "an assignment that could not be written is given out all the same",
        _failed_assignment_kept,
    ),
    Mutant(
        "assignments-mixed-up", C, "INV-SYNC-01", "members get each other's assignments", _assignments_mixed_up
    ),
    Mutant(
        "old-assignment-applied", C, "C-SYNC-23",
        "an assignment whose write ends late is given out in the next generation", _old_assignment_applied,
    ),
    Mutant(
        "silent-members-stay", C, "LIV-04", "a session that runs out is only started again", _silent_members_stay
    ),
    Mutant(
        "sync-timer-spares-static", C, "C-SYNC-20", "static members that never send SyncGroup are not removed",
        _sync_timer_spares_static_members,
    ),
    Mutant(
        "returning-member-is-late", C, "C-STATIC-16",
        "the sync timer removes a static member that has just come back, and nobody answers it",
        _returning_member_is_late,
    ),
    Mutant(
        "undone-when-lost", C, "F-UNLOAD-01",
        "a lost partition undoes replacements first, which answers their members wrongly or not at all",
        _undone_when_lost,
    ),
    Mutant(
        "load-forgets-instances", C, "INV-MEM-02", "after a fail-over instance ids are not known",
        _load_forgets_instances,
    ),
    Mutant(
        "load-skips-tombstones", C, "KAFKA-17306", "a deleted group comes back when the log is loaded",
        _load_skips_tombstones,
    ),
    Mutant(
        "load-watches-nobody", C, "F-LOAD-04", "after a fail-over no session timer runs", _load_watches_nobody
    ),
    Mutant(
        "record-without-assignments", C, "INV-REPLAY-01", "the record of a generation lacks the assignments",
        _record_without_assignments,
    ),
)  # fmt: skip
