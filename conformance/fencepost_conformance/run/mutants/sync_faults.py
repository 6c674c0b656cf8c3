"""Faults of the coordinator after the join phase: SyncGroup, heartbeats, the log, static members, loading."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

C = Side.COORDINATOR
HEARTBEAT, SYNC, STATIC = (f"coordinator/classic/{name}.py" for name in ("heartbeat", "sync", "static"))
REBALANCE, RECORDS = (f"coordinator/classic/{name}.py" for name in ("rebalance", "records"))
LOADED_GROUP, LOG, LIFECYCLE = (f"coordinator/{name}.py" for name in ("classic/records", "replay", "lifecycle"))

FAULTS = (
    Mutant(
        "rebalance-answered-as-old-generation", C, ("C-HB-11",), "KAFKA-2557",
        "a heartbeat during a rebalance is answered with ILLEGAL_GENERATION",
        (
            Replacement(
                HEARTBEAT, "heartbeat",
                "_REBALANCE if preparing",
                "HeartbeatResponse(ErrorCode.ILLEGAL_GENERATION) if preparing",
            ),
        ),
    ),
    Mutant(
        "answered-before-the-log", C, ("C-SYNC-17", "INV-SYNC-02"), "KAFKA-2017",
        "SyncGroup is answered before the assignment is replicated",
        (
            Replacement(
                SYNC, "_send_assignment",
                "group.assignment_open = True",
                "rebalance.propagate_assignment(step, group, assignments)",
            ),
        ),
    ),
    Mutant(
        "replacement-not-written", C, ("C-STATIC-03", "C-STATIC-07"), "KAFKA-10284",
        "the new member id of a static member that returned is not in the log",
        (
            Replacement(STATIC, "replace", "step.log.records.append(records.group_record(group, assignments))", "pass"),
            Replacement(
                STATIC, "replace", "return MemberReplaced(", "return _answer_replaced(step, group, MemberReplaced("
            ),
            Replacement(
                STATIC, "replace", "body.protocols,\nleader_before,", "body.protocols,\nleader_before),\nrequest,"
            ),
        ),
    ),
    Mutant(
        "no-sync-timer", C, ("C-TMR-02", "C-SYNC-20"), "KAFKA-12890",
        "there is no timer for members that never send SyncGroup",
        (
            Replacement(
                REBALANCE, "_answer_all",
                "step.timers.set(TimerKey(TimerKind.SYNC, group.group_id), group.rebalance_timeout)",
                "pass",
            ),
        ),
    ),
    Mutant(
        "returning-leader-not-informed", C, ("C-STATIC-04",), "KAFKA-13435",
        "a returning static leader does not learn that it leads",
        (Replacement(STATIC, "_answer_replaced", "request.version >= SKIP_ASSIGNMENT_SINCE", "False"),),
    ),
    Mutant(
        "returning-leader-assigns", C, ("C-STATIC-04",), "KAFKA-13435",
        "a returning static leader learns that it leads, but not that it must skip the assignment",
        (
            Replacement(
                STATIC, "_answer_replaced", "leader, skip = group.leader, leads", "leader, skip = group.leader, False"
            ),
        ),
    ),
    Mutant(
        "sync-generation-unchecked", C, ("C-SYNC-09",), "nisshi-io/nisshi@50e5666",
        "SyncGroup is accepted from any generation",
        (Replacement(SYNC, "_invalid", "body.generation_id != group.generation", "False"),),
    ),
    Mutant(
        "heartbeat-generation-unchecked", C, ("C-HB-09",), "",
        "Heartbeat is accepted from any generation",
        (Replacement(HEARTBEAT, "heartbeat", "body.generation_id != group.generation", "False"),),
    ),
    Mutant(
        "displaced-instance-accepted", C, ("C-STATIC-13", "C-HB-08"), "",
        "the instance id is enough for a heartbeat: a process that another one replaced is not fenced",
        (
            Replacement(
                HEARTBEAT, "heartbeat",
                "error = membership.invalid(group, body.member_id, body.group_instance_id)",
                'member_id = group.static_members.get(body.group_instance_id or "", body.member_id)\n'
                "error = membership.invalid(group, member_id, body.group_instance_id)",
            ),
            Replacement(HEARTBEAT, "heartbeat", "group.members[body.member_id]", "group.members[member_id]"),
        ),
    ),
    Mutant(
        "displaced-request-not-fenced", C, ("C-STATIC-02",), "",
        "the parked requests of a replaced process are never answered",
        (
            Replacement(STATIC, "_exchange", "if old.join is not None:", "if False:"),
            Replacement(STATIC, "_exchange", "if old.sync is not None:", "if False:"),
        ),
    ),
    Mutant(
        "parked-syncs-forgotten", C, ("C-JOIN-42",), "",
        "a rebalance drops the parked SyncGroups without an answer",
        (Replacement(REBALANCE, "propagate_error", "if member.sync is not None:", "if False:"),),
    ),
    Mutant(
        "failed-assignment-ignored", C, ("C-SYNC-22",), "",
        "nothing happens when the assignment cannot be written",
        (Replacement(SYNC, "AssignmentSent.failed", "self._is_current(group)", "False"),),
    ),
    Mutant(
        "failed-assignment-kept", C, ("INV-SYNC-02", "C-SYNC-22"), "",
        "an assignment that could not be written is still distributed",
        (
            Replacement(
                SYNC, "AssignmentSent.failed",
                "rebalance.propagate_error(step, group, append_error(error))\nrebalance.prepare(step, group, cause)",
                "rebalance.propagate_assignment(step, group, self.assignments)",
            ),
        ),
    ),
    Mutant(
        "assignments-mixed-up", C, ("INV-SYNC-01", "C-SYNC-21"), "",
        "members get each other's assignments",
        (
            Replacement(
                REBALANCE, "propagate_assignment",
                "for member in list(group.members.values()):",
                "names = sorted(assignments)\n"
                "assignments = {name: assignments[other] for name, other in zip(names, names[1:] + names[:1])}\n"
                "for member in list(group.members.values()):",
            ),
        ),
    ),
    Mutant(
        "old-assignment-applied", C, ("C-SYNC-23",), "",
        "an assignment whose write ends late is distributed in the next generation",
        (Replacement(SYNC, "AssignmentSent._is_current", " and group.generation == self.generation", ""),),
    ),
    Mutant(
        "silent-members-stay", C, ("LIV-04", "C-TMR-06"), "",
        "an expired session is only started again",
        (
            Replacement(
                HEARTBEAT, "_session",
                "member = group.members.get(member_id)",
                "member = group.members.get(member_id)\n"
                "if member is not None:\n"
                "    step.timers.set(TimerKey(TimerKind.SESSION, group.group_id, member_id), member.session_timeout)\n"
                "    return",
            ),
        ),
    ),
    Mutant(
        "sync-timer-spares-static", C, ("C-SYNC-20",), "",
        "static members that never send SyncGroup are not removed",
        (
            Replacement(
                HEARTBEAT, "_overdue",
                "(member := group.members.get(member_id)) is None or member.join is None",
                "(member := group.members[member_id]).instance_id is None and member.join is None",
            ),
        ),
    ),
    Mutant(
        "returning-member-is-late", C, ("C-STATIC-16",), "",
        "the sync timer removes a static member that has just come back, and its request is not answered",
        (Replacement(HEARTBEAT, "_sync", "_overdue(group)", "group.pending_sync"),),
    ),
    Mutant(
        "undone-when-lost", C, ("F-UNLOAD-01",), "",
        "a lost partition undoes replacements first, which answers their members wrongly or not at all",
        (
            Replacement(
                STATIC, "end_with_group",
                "group = find_incarnation(step, done.group_id, done.incarnation)",
                "return operations.fail(step, number, operation, error)",
            ),
        ),
    ),
    Mutant(
        "load-forgets-instances", C, ("INV-MEM-02", "F-LOAD-06"), "",
        "after a fail-over instance ids are not known",
        (
            Replacement(
                LOADED_GROUP, "_group",
                "{row.group_instance_id: row.member_id for row in value.members if row.group_instance_id}",
                "{}",
            ),
        ),
    ),
    Mutant(
        "load-skips-tombstones", C, ("F-REPLAY-01", "INV-REPLAY-01"), "KAFKA-17306",
        "a deleted group comes back when the log is loaded",
        (
            Replacement(
                LOG, "superseded",
                "before = last.get(key)",
                "if record.value is None:\n    skipped.add(place)\n    continue\nbefore = last.get(key)",
            ),
        ),
    ),
    Mutant(
        "no-session-timers-after-load", C, ("F-LOAD-04",), "",
        "after a fail-over no session timer runs",
        (Replacement(LIFECYCLE, "loaded", "schedule_classic_session_timeout(step, group, member)", "pass"),),
    ),
    Mutant(
        "record-without-assignments", C, ("INV-REPLAY-01", "F-ORD-03"), "",
        "the record of a generation lacks the assignments",
        (Replacement(RECORDS, "group_record", 'assignments.get(member.member_id, b"")', 'b""'),),
    ),
)  # fmt: skip
