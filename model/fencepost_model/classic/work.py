"""The operation layer: requests and timers become write operations that wait for the log (rule book, 11.2).

One step at a time (F-RT-03); each sees what the steps before it did, replicated or not (F-RT-06).

``Work`` is one step of a coordinator, or of a single group, in progress. It opens a draft for each group that the step
touches, runs the rules on it, and keeps the list of operations that are not finished. An operation is finished when
every record up to its own is durable, or for one that wrote none, every record before it (F-RT-04, F-RT-07).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    ResponseBody,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Profile, Settings

from ..consumer.state import ConsumerGroup, Image
from ..machines import EMPTY, PREPARING
from ..mixed.embedded import write_assignment
from ..table import IllegalTransition
from .choice import Chooser
from .draft import Draft, InternalError, Sinks
from .failure import failure
from .live import session_timer
from .rebalance import join_timer, prepare
from .slots import Shadow, Slot, Written
from .state import (
    ANSWERED,
    JOIN_TIMER,
    SYNC_TIMER,
    Arrive,
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
from .static import not_replaced, replaced
from .sync import assigned, not_assigned, sync_timer

#: How long until a timer of a consumer group whose write failed runs out again (F-RT-17, M-TMR-08).
RETRY_MS: Final = 500
#: Errors after which it does not: the partition is elsewhere.
_NO_RETRY: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class Work:
    """One step. ``slots`` and ``operations`` are the state to start from; read the attributes when it is done."""

    def __init__(
        self,
        settings: Settings,
        profile: Profile,
        chooser: Chooser,
        slots: dict[str, Slot],
        *,
        operations: tuple[Operation, ...] = (),
        undurable: int = 0,
        now: int = 0,
        shadows: tuple[Shadow, ...] = (),
        relisted: frozenset[tuple[int, str]] = frozenset(),
        dropped: tuple[tuple[str, ConsumerGroup], ...] = (),
        doubled: frozenset[tuple[int, str, str]] = frozenset(),
    ) -> None:
        self.slots = slots
        self.operations = list(operations)
        self.undurable = undurable
        self.shadows = shadows
        self.relisted = relisted  #: (records to the place of the log, group): deletions that ListGroups remembers
        self.dropped = dropped  #: groups out of memory since the last record (C-JOIN-15)
        self.doubled = doubled  #: (records to the place of the log, group, member): see ``reads``
        self.drafts: dict[str, Draft] = {}
        self.records: list[Record] = []
        self.replies: list[tuple[int, ResponseBody]] = []
        self.rules: list[str] = []
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.written: Written | None = None
        self.loose: list[tuple[str, dict[Timer, int | None]]] = []  #: timers of groups deleted in this step
        self.due: list[Arrive] = []  #: deletions whose turn has come
        self.fired: list[Timer] = []  #: timers that ran out and were not set again
        self.lost = False  #: the partition was lost, and every timer with it
        self.failed = False  #: an internal error happened
        self.profile = profile
        self.image = Image()  #: the topics that exist
        self.sinks = Sinks(settings, profile, chooser, now, self.operations, self.replies, self.rules)

    # ---- groups -------------------------------------------------------------------------------------------------

    def draft(self, group_id: str) -> Draft | None:
        """The classic group, open for changes; None if there is none."""
        draft = self.drafts.get(group_id)
        if draft is None:
            slot = self.slots.get(group_id)
            if slot is None or type(slot.group) is not Group:
                return None
            draft = self.drafts[group_id] = Draft(self.sinks, group_id, slot.group, slot.delay)
        return draft

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group of that id; None if there is none."""
        slot = self.slots.get(group_id)
        return slot.group if slot is not None and isinstance(slot.group, ConsumerGroup) else None

    def release(self, draft: Draft) -> None:
        """The classic group is given up, as it is now, for one of the other kind (X-UP-03)."""
        self.drafts.pop(draft.group_id)
        self.loose.append((draft.group_id, draft.armed))
        self.slots[draft.group_id] = Slot(draft.group_id, draft.close(), draft.delay)

    def drop(self, group_id: str, group: ConsumerGroup) -> None:
        """C-JOIN-15: out of memory without a record. It comes back if the next append fails, and reads at the committed
        offset see it until a later record is replicated."""
        self.slots[group_id] = Slot(group_id, None, self.slots[group_id].delay)
        self.dropped = (*self.dropped, (group_id, group))
        self.shadows = (*self.shadows, Shadow(self.undurable + 1, group_id, group))

    def create(self, group_id: str) -> Draft:
        """C-ST-06: a new group."""
        slot = self.slots.get(group_id)
        draft = Draft(self.sinks, group_id, Group(timestamp=self.sinks.now), slot.delay if slot else None)
        self.drafts[group_id] = draft
        return draft

    def delete(self, group_id: str) -> None:
        """Removes the group object (C-ST-17). Its timers stay (C-ADM-09); what waits for the log is no more its own."""
        draft = self.drafts.pop(group_id, None)
        delay = draft.delay if draft is not None else self.slots[group_id].delay
        if draft is not None:
            self.loose.append((group_id, draft.armed))
        self.slots[group_id] = Slot(group_id, None, delay)
        if self.profile.fault_failed_deletion_lists_twice:
            self.relisted |= {(self.undurable, group_id)}
        self.operations[:] = [
            operation._replace(callback=None)
            if operation.group_id == group_id and not isinstance(operation.callback, Created)  # F-RT-13
            else operation
            for operation in self.operations
        ]

    def armed(self) -> Iterator[tuple[str, Timer, int | None]]:
        """Every timer that the step set (its length in ms) or cancelled (None), by group."""
        for group_id, timers in self.loose:
            for timer, delay in timers.items():
                yield group_id, timer, delay
        for draft in self.drafts.values():
            for timer, delay in draft.armed.items():
                yield draft.group_id, timer, delay

    def finish(self) -> None:
        """Closes the drafts into ``slots``."""
        if self.dropped and self.written is not None and self.written.records:
            before = (*[row for row in self.written.before if row[0] not in dict(self.dropped)], *self.dropped)
            self.written = self.written._replace(before=before)
            self.dropped = ()
        for group_id, draft in self.drafts.items():
            group = draft.close()
            slot = self.slots.get(group_id)
            if slot is None or slot.group is not group or slot.delay != draft.delay:
                self.slots[group_id] = Slot(group_id, group, draft.delay)

    # ---- operations ---------------------------------------------------------------------------------------------

    def submit(self, operation: Operation, records: list[Record]) -> None:
        """Appends the operation's records and lets it wait for the log, or finishes it (F-RT-04, F-RT-07, F-RT-16)."""
        if records:
            self.records.extend(records)
            self.undurable += len(records)
        if self.undurable:
            self.operations.append(operation._replace(behind=self.undurable))
            self.opened.append(operation.id)
        else:
            self._finished(operation)

    def _finished(self, operation: Operation) -> None:
        """The operation succeeded."""
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
        if isinstance(callback, Timed):
            self.loose.append((operation.group_id, dict(callback.timers)))
        draft = self.draft(operation.group_id)
        if draft is None:
            return
        try:
            if isinstance(callback, Assigned):
                assigned(draft, callback)
            elif isinstance(callback, Replaced):
                replaced(draft, callback)
        except (InternalError, IllegalTransition):
            self.rules.append("C-STATIC-17")

    def loaded(self, group_id: str) -> None:
        """``GMM.onLoaded`` for a group that the log gave (F-LOAD-04, 06, C-TMR-13)."""
        draft = self.draft(group_id)
        if draft is None:
            return
        self.rules.append("F-LOAD-06")
        for member in draft.members.values():
            draft.arm_session(member)
        if len(draft.members) > draft.settings.group_max_size:
            prepare(draft, "loaded_over_capacity")

    def durable(self, records: int) -> None:
        """The high watermark moved on (F-RT-14)."""
        self.undurable -= records
        self.relisted = frozenset((behind - records, group) for behind, group in self.relisted if behind >= records)
        self.doubled = frozenset((behind - records, g, m) for behind, g, m in self.doubled if behind >= records)
        self.shadows = tuple(s._replace(behind=s.behind - records) for s in self.shadows if s.behind > records)
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
        """The operation failed; it is no longer in ``operations``."""
        self.closed.append(operation.id)
        if operation.timer is not None and error not in _NO_RETRY:
            self.rules.append("F-RT-17")
            self.loose.append((operation.group_id, {operation.timer: RETRY_MS}))
        draft = self.draft(operation.group_id)
        callback = operation.callback
        if draft is not None:
            try:
                if isinstance(callback, Assigned):
                    not_assigned(draft, callback, error)
                elif isinstance(callback, Replaced):
                    not_replaced(draft, None if operation.answered else operation.id, callback, error, lost=self.lost)
            except (InternalError, IllegalTransition):
                self.rules.append("C-STATIC-18")
        if any(request == operation.id for request, _ in self.replies) or operation.request is None:
            return
        if isinstance(operation.request, JoinGroupRequest | SyncGroupRequest):
            if operation.answered:
                return
            if not self.profile.fault_parked_fail_early and (
                callback is None or (timed_out and isinstance(callback, Created))
            ):
                return  # C-JOIN-70 mended: only the group answers what it parks
            self.rules.append("C-JOIN-70")  # F-RT-13
            self.mark_answered(draft, operation.id)
        self.rules.append("F-RT-10")
        self.replies.append((operation.id, failure(operation, error)))

    def mark_answered(self, draft: Draft | None, request: int) -> None:
        """The group does not notice that a future it stores is complete (C-JOIN-70)."""
        if draft is None:
            return
        for member in list(draft.members.values()):
            if member.join == request:
                draft.put(member._replace(join=ANSWERED))
            elif member.sync == request:
                draft.put(member._replace(sync=ANSWERED))

    # ---- timers, failures, loss -----------------------------------------------------------------------------------

    def fire(self, group_id: str, timer: Timer, operation: int) -> None:
        """A timer of a group runs out; its write is ``operation``. No group, no effect (C-ST-24)."""
        draft = self.draft(group_id)
        if draft is None:
            slot = self.slots.get(group_id)
            if timer.kind == "join" and slot is not None:
                self.slots[group_id] = Slot(group_id, slot.group, None)
            self.fired.append(timer)
            self.rules.append("C-ST-24")
            self.submit(Operation(operation, group_id, None, 0), [])
            return
        try:
            draft.armed[timer] = None
            if timer.kind == "join":
                join_timer(draft)
            elif timer.kind == "sync":
                sync_timer(draft)
            else:
                session_timer(draft, timer.member_id)
        except (InternalError, IllegalTransition):
            self.failed = True
            self.rules.append("C-ST-27")
            return
        if draft.records:
            self.written = Written(len(draft.records), operation)
        self.submit(Operation(operation, group_id, None, 0, callback=draft.callback), draft.records)

    def append_error(self, written: Written, error: ErrorCode) -> None:
        """F-RT-08: the records of the step just made are not in the log; groups are as they were before."""
        self.rules.append("F-RT-08")
        self.undurable -= written.records
        for group_id, before in written.before:
            slot = self.slots.get(group_id, Slot(group_id))
            group = before
            if isinstance(before, ConsumerGroup) and isinstance(slot.group, ConsumerGroup):
                group = before._replace(refresh=slot.group.refresh)  # M-HB-13
                if self.profile.fault_failed_deletion_lists_twice:
                    touched = {member.member_id for member in before.members if member not in slot.group.members}
                    self.doubled |= {(self.undurable, group_id, member_id) for member_id in touched}
            cancel = type(group) is not Group and not self.profile.fault_timers_outlive_reverted_group
            if cancel and isinstance(slot.group, Group):
                ids = {member.member_id for member in slot.group.members} | slot.group.pending_join
                gone = [JOIN_TIMER, SYNC_TIMER, *(Timer("session", member_id) for member_id in sorted(ids))]
                self.loose.append((group_id, dict.fromkeys(gone)))
            self.slots[group_id] = Slot(group_id, group, None if cancel else slot.delay)
            self.drafts.pop(group_id, None)
        self.shadows = tuple(s for s in self.shadows if s.behind <= self.undurable)
        failing = [operation for operation in self.operations if operation.id == written.operation]
        self.operations[:] = [operation for operation in self.operations if operation.id != written.operation]
        for operation in failing:
            self.fail(operation, error, timed_out=False)

    def time_out(self, operation_id: int) -> None:
        """F-RT-09: the records stay; the operation is given up."""
        self.rules.append("F-RT-09")
        if not self.profile.fault_timeout_undoes_memory:
            for at, operation in enumerate(self.operations):
                if operation.id == operation_id and isinstance(operation.callback, Assigned | Replaced | Timed):
                    self.operations[at] = operation._replace(request=None, answered=True)
                    if isinstance(operation.callback, Timed):
                        self.closed.append(operation_id)
                        self.replies.append((operation_id, failure(operation, ErrorCode.REQUEST_TIMED_OUT)))
                    else:
                        self._release(operation)
                    return
        failing = [operation for operation in self.operations if operation.id == operation_id]
        self.operations[:] = [operation for operation in self.operations if operation.id != operation_id]
        for operation in failing:
            self.fail(operation, ErrorCode.REQUEST_TIMED_OUT, timed_out=True)

    def _release(self, operation: Operation) -> None:
        """Memory follows the log: the caller is told to come again, the group waits on for the record."""
        draft = self.draft(operation.group_id)
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
        """F-UNLOAD-01, without the timers: open operations fail, then every group dies."""
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
            draft.go("unloaded")
            for member in sorted(draft.members.values()):
                if draft.previous == PREPARING:
                    draft.answer_join(
                        member, JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id)
                    )
                elif draft.previous != EMPTY:
                    draft.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
