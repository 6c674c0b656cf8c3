"""The operation layer: requests and timers become write operations that wait for the log (rule book, 11.2).

Steps run one at a time (F-RT-03); each sees the effects of earlier ones, replicated or not (F-RT-06).

``Work`` is one step in progress, of a coordinator or of a single group. It opens a draft for each group that the step
touches, runs the rules on it, and keeps the list of unfinished operations. An operation is finished when every record
up to its last one is durable. One that wrote no record waits for every record before it (F-RT-04, F-RT-07).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey
from fencepost.protocol.records import Record

from ..consumer.state import RETRY_MS
from ..machines import EMPTY, PREPARING
from ..mixed.embedded import write_assignment
from ..offsets.state import Past, replay
from ..table import IllegalTransition
from .draft import Draft, InternalError
from .failure import failure
from .live import expire_session
from .open_groups import OpenGroups
from .rebalance import expire_join_timer, prepare_rebalance
from .slots import GroupSlot, Written
from .state import (
    ANSWERED,
    EXPIRY_KIND,
    JOIN_TIMER,
    SYNC_TIMER,
    Assigned,
    Callback,
    Created,
    Deleting,
    Group,
    Operation,
    Replaced,
    Timed,
    Timer,
)
from .static import complete_replacement, undo_replacement
from .sync import complete_assignment, expire_sync_timer, fail_assignment

#: Errors after which a timer is not set again: the partition is elsewhere (F-RT-17).
_NO_RETRY: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class Work(OpenGroups):
    """One step of the coordinator in progress."""

    # ---- operations ---------------------------------------------------------------------------------------------

    def submit(self, operation: Operation, records: list[Record]) -> None:
        """Append the operation's records and make it wait for the log, or finish it (F-RT-04, F-RT-07, F-RT-16)."""
        if records:
            self._apply(records)
            self.records.extend(records)
            self.undurable += len(records)
            self.end += len(records)
        if self.undurable:
            self.operations.append(operation._replace(behind=self.undurable))
            self.opened.append(operation.id)
        else:
            self._finished(operation)

    def _apply(self, records: list[Record]) -> None:
        """Replay those of the step's records that change offsets, as a load does (11.5)."""
        if not any(isinstance(record.key, OffsetCommitKey | ControlKey) for record in records):
            return
        before = self.offsets
        for at, record in enumerate(records):
            self.offsets = replay(self.offsets, record, self.end + at)
        self.past = (*self.past, Past(self.undurable + len(records), before))
        if self.written is not None:
            self.written = self.written._replace(offsets=before)

    def _finished(self, operation: Operation) -> None:
        """Complete a successful operation."""
        if isinstance(operation.callback, Deleting):
            self.due.append(operation.callback.request)
            return
        if operation.callback is not None:
            self._call(operation, operation.callback)
        if operation.body is not None and operation.request is not None:
            self.rules.append("F-RT-14")
            body = operation.body
            given = operation.callback.assignment if isinstance(operation.callback, Timed) else None
            if given is not None and isinstance(body, SyncGroupResponse):
                body = replace(body, assignment=write_assignment(*given, self.image))
            self.replies.append((operation.id, body))

    def _call(self, operation: Operation, callback: Callback) -> None:
        if operation.request is None and isinstance(callback, Assigned | Replaced | Timed):
            self.rules.append("F-RT-09")  # it has timed out
        if isinstance(callback, Timed):
            self.detached_timers.append((operation.group_id, dict(callback.timers)))
        draft = self.group_of_callback(operation)
        if draft is None:
            return
        try:
            if isinstance(callback, Assigned):
                complete_assignment(draft, callback)
            elif isinstance(callback, Replaced):
                complete_replacement(draft, callback)
        except (InternalError, IllegalTransition):
            self.rules.append("C-STATIC-17")
        self.move_timers_by_name(operation, draft)

    def on_loaded(self, group_id: str) -> None:
        """Prepare a group that was loaded from the log, as ``GMM.onLoaded`` (F-LOAD-04, 06, C-TMR-13)."""
        draft = self.draft(group_id)
        if draft is None:
            return
        self.rules.append("F-LOAD-06")
        draft.read = tuple(map(draft.offered, draft.members.values()))
        for member in draft.members.values():
            draft.arm_session(member)
        if len(draft.members) > draft.settings.group_max_size:
            prepare_rebalance(draft, "loaded_over_capacity")

    def durable(self, records: int) -> None:
        """Move the high watermark (F-RT-14)."""
        self.undurable -= records
        self.relisted = frozenset([gone.after(records) for gone in self.relisted if gone.behind >= records])
        self.doubled = frozenset((behind - records, g, m) for behind, g, m in self.doubled if behind >= records)
        self.committed_views = tuple(
            s._replace(behind=s.behind - records) for s in self.committed_views if s.behind > records
        )
        self.past = tuple(each._replace(behind=each.behind - records) for each in self.past if each.behind > records)
        ready = [operation for operation in self.operations if operation.behind <= records]
        self.operations[:] = [
            operation._replace(behind=operation.behind - records)
            for operation in self.operations
            if operation.behind > records
        ]
        for operation in ready:
            self.closed.append(operation.id)
            self._finished(operation)

    def fail(self, operation: Operation, error: ErrorCode, *, timed_out: bool) -> None:
        """Fail an operation, which is no longer in ``operations``."""
        self.closed.append(operation.id)
        if operation.timer is not None and error not in _NO_RETRY:
            self.rules.append("F-RT-17")
            interval = self.context.settings.offsets_retention_check_interval_ms
            rearmed = interval if operation.timer.kind == EXPIRY_KIND else RETRY_MS  # O-EXP-26
            self.detached_timers.append((operation.group_id, {operation.timer: rearmed}))
            if operation.rebalance_epoch is not None:
                self.rearmed.append((operation.group_id, operation.timer.member_id, operation.rebalance_epoch))
        draft = self.group_of_callback(operation)
        callback = operation.callback
        if draft is not None:
            try:
                if isinstance(callback, Assigned):
                    fail_assignment(draft, callback, error)
                elif isinstance(callback, Replaced):
                    undo_replacement(
                        draft, None if operation.answered else operation.id, callback, error, lost=self.lost
                    )
            except (InternalError, IllegalTransition):
                self.rules.append("C-STATIC-18")
            self.move_timers_by_name(operation, draft)
        if any(request == operation.id for request, _ in self.replies) or operation.request is None:
            return
        if isinstance(operation.request, JoinGroupRequest | SyncGroupRequest):
            if operation.answered:
                return
            if self.variant.classic.group_answers_parked and (
                callback is None or (timed_out and isinstance(callback, Created))
            ):
                return
            self.rules.append("C-JOIN-70")  # F-RT-13
            self.mark_answered(draft, operation.id)
        self.rules.append("F-RT-10")
        self.replies.append((operation.id, failure(operation, error)))

    def mark_answered(self, draft: Draft | None, request: int) -> None:
        """Mark a stored future as complete; the group does not notice (C-JOIN-70)."""
        if draft is None:
            return
        for member in list(draft.members.values()):
            if member.join == request:
                draft.put(member._replace(join=ANSWERED))
            elif member.sync == request:
                draft.put(member._replace(sync=ANSWERED))

    # ---- timers, failures, loss -----------------------------------------------------------------------------------

    def expire_timer(self, group_id: str, timer: Timer, operation: int) -> None:
        """Expire a timer of a group; its write is ``operation``. Without the group nothing happens (C-ST-24)."""
        draft = self.draft(group_id)
        if draft is None:
            slot = self.slots.get(group_id)
            if timer.kind == "join" and slot is not None:
                self.slots[group_id] = GroupSlot(group_id, slot.group, None)
            self.fired.append(timer)
            self.rules.append("C-ST-24")
            self.submit(Operation(operation, group_id, None, 0), [])
            return
        try:
            draft.armed[timer] = None
            if timer.kind == "join":
                expire_join_timer(draft)
            elif timer.kind == "sync":
                expire_sync_timer(draft)
            else:
                expire_session(draft, timer.member_id)
        except (InternalError, IllegalTransition):
            self.failed = True
            self.rules.append("C-ST-27")
            return
        if draft.records:
            self.written = Written(len(draft.records), operation)
        self.submit(Operation(operation, group_id, None, 0, callback=draft.callback), draft.records)

    def append_error(self, written: Written, error: ErrorCode) -> None:
        """Undo a failed append: the records of the last step are not in the log, and the groups have their
        previous state (F-RT-08)."""
        self.rules.append("F-RT-08")
        self.undurable -= written.records
        self.end -= written.records
        if written.offsets is not None:
            self.offsets = written.offsets
        self.past = tuple(each for each in self.past if each.behind <= self.undurable)
        orphans: list[tuple[str, Group]] = []  #: the callback still acts on the object (O-COMMIT-43)
        for group_id, before in written.before:
            slot = self.slots.get(group_id, GroupSlot(group_id))
            if before is None and isinstance(slot.group, Group):
                orphans.append((group_id, slot.group))
            cancel = type(before) is not Group and self.variant.classic.timers_end_with_group
            if cancel and isinstance(slot.group, Group):
                self.rules.append("C-TMR-12")
                ids = {member.member_id for member in slot.group.members} | slot.group.pending_join
                gone = [JOIN_TIMER, SYNC_TIMER, *(Timer("session", member_id) for member_id in sorted(ids))]
                self.detached_timers.append((group_id, dict.fromkeys(gone)))
            self.slots[group_id] = GroupSlot(group_id, before, None if cancel else slot.delay)
            self.drafts.pop(group_id, None)
        self.superseded_groups.restore(written.operation, self.operations)
        for group_id, group in orphans:
            self.superseded_groups.supersede(group_id, group, written.operation, self.operations)
        self.committed_views = tuple(s for s in self.committed_views if s.behind <= self.undurable)
        failing = [operation for operation in self.operations if operation.id == written.operation]
        self.operations[:] = [operation for operation in self.operations if operation.id != written.operation]
        for operation in failing:
            self.fail(operation, error, timed_out=False)

    def time_out(self, operation_id: int) -> None:
        """Time out an operation: it is given up, but its records stay (F-RT-09)."""
        self.rules.append("F-RT-09")
        if self.variant.classic.memory_follows_log:
            for at, operation in enumerate(self.operations):
                if operation.id == operation_id and isinstance(operation.callback, Assigned | Replaced | Timed):
                    self.operations[at] = operation._replace(request=None, answered=True)
                    if isinstance(operation.callback, Timed):
                        self.closed.append(operation_id)
                        if operation.body is not None:  # else the group answers what it parks (X-DOWN-23, C-JOIN-70)
                            self.replies.append((operation_id, failure(operation, ErrorCode.REQUEST_TIMED_OUT)))
                    else:
                        self._release(operation)
                    return
        failing = [operation for operation in self.operations if operation.id == operation_id]
        self.operations[:] = [operation for operation in self.operations if operation.id != operation_id]
        for operation in failing:
            self.fail(operation, ErrorCode.REQUEST_TIMED_OUT, timed_out=True)

    def _release(self, operation: Operation) -> None:
        """Answer the caller that it should retry, while the group keeps waiting for the record: memory follows the
        log."""
        draft = self.group_of_callback(operation)
        if draft is None or operation.answered:
            return
        for member in list(draft.members.values()):
            if operation.id in (member.join, member.sync):
                draft.put(
                    member._replace(
                        join=None if member.join == operation.id else member.join,
                        sync=None if member.sync == operation.id else member.sync,
                    )
                )
                draft.arm_session(member)
        self.replies.append((operation.id, failure(operation, ErrorCode.REQUEST_TIMED_OUT)))

    def lose(self) -> None:
        """Lose the partition (F-UNLOAD-01), except for its timers: open operations fail, then every group dies."""
        self.rules.append("F-UNLOAD-01")
        self.lost = True
        failing = list(self.operations)
        self.operations.clear()
        for operation in failing:
            self.fail(operation, ErrorCode.NOT_COORDINATOR, timed_out=False)
        for group_id in sorted(self.slots):
            draft = self.draft(group_id)
            if draft is None:
                continue
            draft.transition("unloaded")
            for member in sorted(draft.members.values()):
                if draft.previous == PREPARING:
                    draft.answer_join(
                        member, JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id)
                    )
                elif draft.previous != EMPTY:
                    draft.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
