"""Write operations that wait for the log (11.2).

Every request but Describe and List is a write operation, also when it writes nothing. Its records are in memory and
in the log at once, for every later operation to see (F-RT-06); the operation stays *open* until they are replicated,
and one without records until everything before it is (F-RT-07). Three things may end it: the high watermark passes it
(``replicated``), the append fails directly after the step (``append_failed``), or the write timeout fires first
(``timed_out``); an unload fails all that are open.

Two kinds of answers hang on this. Heartbeat, LeaveGroup and DeleteGroups are answered *by* the operation, so they are
never ahead of the log. JoinGroup and SyncGroup are answered by the group, when the rebalance says so; their operation
only guards the record they wrote, by a callback that tells the group what became of it:

* ``GroupCreated``: nothing to do when it succeeds; when the append fails the group is gone again (C-JOIN-16).
* ``AssignmentSent``: success makes the group Stable, failure starts another rebalance (C-SYNC-21…23).
* ``MemberReplaced``: success answers the returning static member, failure puts its old id back (C-STATIC-04…06).
* ``ClassicJoined``, ``ClassicSynced``: success sets the timers of a member of a consumer group (X-JOIN-20, X-SYNC-06).

Each stands in the layer that it is of, with the function that starts it. A callback acts on the group *object* it was
made for; the incarnation number stands for that identity.

Memory follows the log: a timeout answers the request that made the write, so that its sender need not wait, and leaves
everything else to the callback, which still comes.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.quirks import varies

from . import operations
from .errors import operation_error
from .replies import refusal
from .state import Callback, Operation
from .step import Step


@dataclass(frozen=True, slots=True)
class AppendCallback(Callback):
    """What an operation does when it is known what became of its records; nothing, unless a method says so."""

    def replicated(self, step: Step, request: Request) -> None:
        """The records of the request are in the log."""

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """They are not, or the partition is lost and nobody can tell."""

    def timed_out(self, step: Step, number: int, operation: Operation) -> None:
        """They may still come to be replicated; memory follows the log, so this callback comes then."""

    def unloaded(self, step: Step, number: int, operation: Operation, error: ErrorCode) -> None:
        """The partition is lost while the operation is open (F-UNLOAD-01)."""
        fail(step, number, operation, error)


@varies
def replicated(step: Step, offset: int) -> None:
    """The high watermark is at ``offset``: open operations below are done, in log order (F-RT-14), so who has seen what
    an earlier one did is not answered before that one (F-RT-06)."""
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
    """The write timeout ran out (G-CFG-25)."""
    operation = step.requests.operations.get(number)
    if operation is not None:
        give_up_waiting(step, number, operation)


@varies
def give_up_waiting(step: Step, number: int, operation: Operation) -> None:
    """Nobody waits longer for the operation; its records are in the log and may yet be replicated, so what they changed
    stays, and a callback still comes (F-RT-09)."""
    callback = _callback(operation)
    if callback is None:
        fail(step, number, operation, ErrorCode.REQUEST_TIMED_OUT)
    else:
        callback.timed_out(step, number, operation)


def fail_since(step: Step, base: int, error: ErrorCode) -> None:
    """What was written from ``base`` on is not in the log (F-RT-08)."""
    for number, operation in list(step.requests.operations.items()):
        if operation.offset > base:
            fail(step, number, operation, error)


def unload(step: Step, error: ErrorCode) -> None:
    """The partition goes, so nobody waits any longer (F-UNLOAD-01)."""
    for number, operation in list(step.requests.operations.items()):
        callback = _callback(operation)
        if callback is None:
            fail(step, number, operation, error)
        else:
            callback.unloaded(step, number, operation, error)


def fail(step: Step, number: int, operation: Operation, error: ErrorCode) -> None:
    """Callback first, then whoever still waits for an answer (F-RT-13)."""
    request, callback = operation.request, _callback(operation)
    if callback is not None:
        callback.failed(step, request, error)  # F-RT-13
    if request is not None:
        if not step.requests.operations[number].answered and answers_failure(step, operation):
            step.reply(number, refusal(request, operation_error(error)))
        if step.requests.operations[number].answered:
            step.mark_answered(request.id)
    close(step, number)


@varies
def answers_failure(step: Step, operation: Operation) -> bool:
    """Whether the operation tells its request that it failed. A JoinGroup or SyncGroup that wrote nothing is parked in
    its group, which alone answers it: only earlier writes were late (C-JOIN-70, F-RT-13)."""
    return operation.callback is not None or operation.reply is not None


def close(step: Step, number: int) -> None:
    """The operation is over."""
    step.requests.close(number)
    step.timers.cancel(operations.timer(number))


def _callback(operation: Operation) -> AppendCallback | None:
    callback = operation.callback
    assert callback is None or isinstance(callback, AppendCallback)
    return callback
