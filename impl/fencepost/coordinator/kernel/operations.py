"""Write operations, which wait for the log, and reads, which see it as of the high watermark (11.2).

Every request except Describe and List is a write operation, also when it writes nothing. Its records are in memory and
in the log at once, visible to every later operation (F-RT-06). The operation stays *open* until its records are
replicated; an operation without records stays open until everything before it is replicated (F-RT-07). Three events may
end it: the high watermark passes it (``replicated``), the append fails directly after the step (``append_failed``), or
the write timeout fires first (``timed_out``). An unload fails all open operations.

There are two kinds of answers. Heartbeat, LeaveGroup and DeleteGroups are answered *by* the operation, so they are
never ahead of the log. JoinGroup and SyncGroup are answered by the group, when the rebalance allows it. Their operation
only protects the record that they wrote: its callback reports to the group what happened to the record:

* ``GroupCreated``: success does nothing; if the append fails, the group is removed again (C-JOIN-16).
* ``AssignmentSent``: success makes the group Stable, failure starts another rebalance (C-SYNC-21…23).
* ``MemberReplaced``: success answers the returning static member, failure restores its old id (C-STATIC-04…06).
* ``ClassicJoined``, ``ClassicSynced``: success sets the timers of a member of a consumer group (X-JOIN-20, X-SYNC-06).

Each callback is in its own layer, with the function that starts it. A callback acts on the group *object* that it was
made for, identified by the incarnation number.

Memory follows the log: a timeout answers the request, so that its sender does not have to wait, and leaves everything
else to the callback, which still runs later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import ResponseBody
from fencepost.quirks import varies

from .errors import operation_error
from .persistent import edit
from .replies import error_response
from .state import Callback, Entry, Group, Operation
from .step import Step


def done(step: Step, request: Request, *, reply: ResponseBody | None = None, callback: Callback | None = None) -> None:
    """The handler of a request is done: answer the request, leave it to the group, or let it wait for the log.

    ``reply`` waits for the request's own records and all before (F-RT-24, F-RT-25), so the answer of a request that
    writes nothing waits for what was written before it (F-RT-07). Without ``reply``, the group answers: at once
    (F-RT-20, F-RT-22), when the rebalance allows it, or by ``callback`` (F-RT-21, F-RT-23).
    """
    if not step.log.all_replicated:
        answered = reply is None and step.requests.answered(request.id)
        _wait(step, request.id, Operation(request, step.log.end, reply, callback, answered))  # F-RT-07
    elif reply is not None:
        step.reply(request.id, reply)  # F-RT-16


def waits(step: Step, request: Request, callback: Callback, reply: ResponseBody | None = None) -> bool:
    """Let the request wait for the log, then run its callback. False if there is nothing to wait for."""
    if step.log.all_replicated:
        return False
    _wait(step, request.id, Operation(request, step.log.end, reply, callback, False))
    return True


def timer_done(step: Step, callback: Callback | None = None) -> None:
    """The same for a timer or task, which is a write operation too (F-RT-17) but needs no answer."""
    if not step.log.all_replicated:
        _wait(step, -(step.state.handled + 1), Operation(None, step.log.end, None, callback, True))


def _wait(step: Step, number: int, operation: Operation) -> None:
    step.requests.open(number, operation)
    step.timers.set(timer(number), step.settings.offsets_commit_timeout_ms)  # G-CFG-25


def broke(step: Step, request: Request) -> None:
    """The handler failed inside (C-JOIN-38c, C-JOIN-72, F-RT-10): its changes stay, its records are dropped."""
    step.log.records.clear()
    if not step.requests.answered(request.id):
        step.reply(request.id, error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
        step.mark_answered(request.id)


def timer(number: int) -> TimerKey:
    """The key of the timer that ends the operation of this number."""
    return TimerKey(TimerKind.OPERATION, operation=number)


@dataclass(frozen=True, slots=True)
class AppendCallback(Callback):
    """The actions of an operation when the result of its append is known. Only ``unloaded`` has a default action."""

    def replicated(self, step: Step, request: Request) -> None:
        """The records of the request are replicated."""

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """The records are not in the log, or the partition is lost and the result is unknown."""

    def timed_out(self, step: Step, number: int, operation: Operation) -> None:
        """The records may still be replicated; memory follows the log, so this callback runs then."""

    def unloaded(self, step: Step, number: int, operation: Operation, error: ErrorCode) -> None:
        """The partition is lost while the operation is open (F-UNLOAD-01)."""
        fail(step, number, operation, error)


@dataclass(frozen=True, slots=True)
class FailedByTimeout(AppendCallback):
    """An operation that a timeout fails. Nothing of it has to be undone, though its records may still be replicated."""

    def timed_out(self, step: Step, number: int, operation: Operation) -> None:
        """Answer the request, if there is one, with the error (G-CFG-25)."""
        fail(step, number, operation, ErrorCode.REQUEST_TIMED_OUT)


@varies
def replicated(step: Step, offset: int) -> None:
    """The high watermark is at ``offset``: the open operations below are done, in log order (F-RT-14). So an operation
    that saw the changes of an earlier one is not answered before it (F-RT-06)."""
    step.log.committed = offset
    step.log.ends = tuple(end for end in step.log.ends if end > offset)
    step.memory.changes = tuple(change for change in step.memory.changes if change.offset > offset)
    step.offsets.replicated(offset)
    if not step.requests.operations:
        return
    for number, operation in list(step.requests.operations.items()):
        if operation.offset > offset:
            break
        callback, request = _callback(operation), operation.request
        if callback is not None and request is not None:
            callback.replicated(step, request)
        if operation.reply is not None:
            step.reply(number, operation.reply)
        close(step, number)


def timed_out(step: Step, number: int) -> None:
    """The write timeout has expired (G-CFG-25)."""
    operation = step.requests.operations.get(number)
    if operation is not None:
        give_up_waiting(step, number, operation)


@varies
def give_up_waiting(step: Step, number: int, operation: Operation) -> None:
    """Stop waiting for the operation. Its records are in the log and may still be replicated, so its changes stay, and
    a callback still runs later (F-RT-09)."""
    callback = _callback(operation)
    if callback is None:
        fail(step, number, operation, ErrorCode.REQUEST_TIMED_OUT)
    else:
        callback.timed_out(step, number, operation)


def fail_since(step: Step, base: int, error: ErrorCode) -> None:
    """Everything written from ``base`` on is not in the log (F-RT-08)."""
    for number, operation in list(step.requests.operations.items()):
        if operation.offset > base:
            fail(step, number, operation, error)


def unload(step: Step, error: ErrorCode) -> None:
    """The partition is lost: end all open operations (F-UNLOAD-01)."""
    for number, operation in list(step.requests.operations.items()):
        callback = _callback(operation)
        if callback is None:
            fail(step, number, operation, error)
        else:
            callback.unloaded(step, number, operation, error)


def fail(step: Step, number: int, operation: Operation, error: ErrorCode) -> None:
    """Run the callback first, then answer the request if it still waits (F-RT-13). A JoinGroup or SyncGroup that wrote
    nothing is parked in its group, and only the group answers it: only earlier writes were late (C-JOIN-70)."""
    request, callback = operation.request, _callback(operation)
    if callback is not None:
        callback.failed(step, request, error)  # F-RT-13
    if request is not None:
        parked = step.rules.parked_requests_wait and operation.callback is None and operation.reply is None
        if not step.requests.operations[number].answered and not parked:
            step.reply(number, error_response(request, operation_error(error)))
        if step.requests.operations[number].answered:
            step.mark_answered(request.id)
    close(step, number)


def close(step: Step, number: int) -> None:
    """The operation is finished."""
    step.requests.close(number)
    step.timers.cancel(timer(number))


def _callback(operation: Operation) -> AppendCallback | None:
    callback = operation.callback
    assert callback is None or isinstance(callback, AppendCallback)
    return callback


Row = TypeVar("Row")


def committed_groups(step: Step) -> Mapping[str, Group]:
    """The groups by their id, as reads see them: as of the high watermark (F-RT-11, C-ADM-08)."""
    if not step.memory.changes:
        return step.memory.groups
    groups = edit(step.memory.groups)
    for change in reversed(step.memory.changes):
        if change.before is None:
            groups.pop(change.group_id, None)
        else:
            groups[change.group_id] = change.before
    return groups


def committed_group(step: Step, name: str) -> Group | None:
    """The group of this name as of the high watermark, None if there is none. The versions in between are the
    ``before`` of the changes that are not replicated yet."""
    for change in step.memory.changes:
        if change.group_id == name:
            return change.before
    return step.memory.groups.get(name)


@varies
def visible_rows(step: Step, rows: Mapping[Entry, Row]) -> tuple[Row, ...]:
    """The rows that a read of a whole map returns: each entry once (C-ADM-05). ``rows``: the row of each entry."""
    return tuple(rows.values())
