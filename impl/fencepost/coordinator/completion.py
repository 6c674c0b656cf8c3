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

A callback acts on the group *object* it was made for; the incarnation number stands for that identity.

Kafka goes further, and the faults of this module all come from it. There, the failure of a JoinGroup or SyncGroup
that wrote nothing answers the parked request behind the group's back (C-JOIN-70). And a timeout runs the callback as
if the append had failed, although the record is in the log and may yet be replicated: memory goes back, the log does
not (F-RT-09). The intended protocol lets memory follow the log: a timeout answers the request that made the write, so
that its sender need not wait, and leaves everything else to the callback, which still comes.
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import DeleteGroupsRequest, SyncGroupRequest

from . import admin, operations, reads, static, sync
from .consumer import timers
from .consumer.state import ConsumerGroup
from .draft import GroupDraft
from .errors import append_error, operation_error
from .mixed import join as mixed_join
from .mixed import sync as mixed_sync
from .replies import refusal
from .state import (
    AppendCallback,
    AssignmentSent,
    ClassicGroup,
    ClassicJoined,
    ClassicSynced,
    DeletionDue,
    GroupCreated,
    MemberReplaced,
    Operation,
    TimerRan,
)
from .work import Step


def replicated(step: Step, offset: int) -> None:
    """The high watermark is at ``offset``: open operations below are done, in log order (F-RT-14)."""
    step.committed = offset
    step.ends = tuple(end for end in step.ends if end > offset)
    step.changes = tuple(change for change in step.changes if change.offset > offset)
    step.relisted = tuple(entry for entry in step.relisted if entry[0] >= offset)
    if not step.operations:
        return
    deletions = []
    for number, operation in list(step.operations.items()):
        if operation.offset > offset:
            break
        if isinstance(operation.callback, DeletionDue):
            deletions.append(operation.request)
        else:
            _succeed(step, operation)
        if operation.reply is not None:
            step.reply(number, operation.reply)
        _close(step, number)
    for request in deletions:  # behind everything else, as events of their own (C-ADM-09)
        assert request is not None
        assert isinstance(request.body, DeleteGroupsRequest)
        admin.delete_now(step, request, request.body)


def append_failed(step: Step, error: ErrorCode) -> None:
    """The records of the step just made are not in the log (F-RT-08): first the map of groups goes back."""
    base = step.state.base
    lost = [change for change in step.changes if change.offset > base]
    if lost:
        groups = dict(step.groups)
        newest = {change.group_id: groups.get(change.group_id) for change in lost}
        for change in reversed(lost):
            now = groups.pop(change.group_id, None)
            step.repark(now, change.before)
            if change.before is not None:
                groups[change.group_id] = change.before
            if isinstance(now, ClassicGroup) and not isinstance(change.before, ClassicGroup):
                _lose_timers(step, now)
                if isinstance(change.before, ConsumerGroup) and not step.profile.fault_downgrade_leaves_timers:
                    timers.bring_back(step, change.before, None)  # all were cancelled; X-DOWN-33 mended
            if change.before is not None:
                step.relisted += tuple((base, entry) for entry in reads.exchanged(change.group_id, change.before, now))
        step.replace_groups(groups, step.changes[: -len(lost)])
        for name, now in newest.items():
            old = groups.get(name)
            if isinstance(now, ClassicGroup) or step.profile.fault_failed_append_loses_timers:
                continue
            if isinstance(old, ConsumerGroup):
                timers.bring_back(step, old, now)
    step.start = base
    step.ends = tuple(end for end in step.ends if end <= base)
    step.lingering = step.state.lingering_base
    for number, operation in list(step.operations.items()):
        if operation.offset > base:
            _fail(step, number, operation, error)


def timed_out(step: Step, number: int) -> None:
    """G-CFG-25 ran out."""
    operation = step.operations.get(number)
    if operation is None:
        return
    if (
        operation.callback is None
        or isinstance(operation.callback, TimerRan)
        or step.profile.fault_timeout_undoes_memory
    ):
        _fail(step, number, operation, ErrorCode.REQUEST_TIMED_OUT)
    elif isinstance(operation.callback, ClassicJoined | ClassicSynced) and not operation.answered:
        assert operation.request is not None  # likewise, and nobody but the operation knows of the request
        step.reply(number, refusal(operation.request, operation_error(ErrorCode.REQUEST_TIMED_OUT)))
    elif isinstance(operation.callback, AssignmentSent | MemberReplaced) and not operation.answered:
        # Memory follows the log (C-SYNC-33, C-STATIC-06 mended): the sender is told, the callback still comes. A new
        # group's first join is different: it waits for the join phase, not for the record (C-JOIN-16 mended).
        assert operation.request is not None
        step.reply(number, refusal(operation.request, append_error(ErrorCode.REQUEST_TIMED_OUT)))
        _release(step, number, operation.callback)
    elif isinstance(operation.callback, GroupCreated):
        _close(step, number)  # its record cannot fail any more, so nothing hangs on it


def fail_all(step: Step, error: ErrorCode) -> None:
    """F-UNLOAD-01; mended, a replacement is not undone, as its record may survive (memory follows the log)."""
    for number, operation in list(step.operations.items()):
        callback, request = operation.callback, operation.request
        if isinstance(callback, MemberReplaced) and not step.profile.fault_timeout_undoes_memory:
            group = _group_of(step, callback)
            if group is not None and request is not None:
                static.part(step, group, callback, request, error)
                _keep(step, group)
            _close(step, number)
        else:
            _fail(step, number, operation, error)


def _succeed(step: Step, operation: Operation) -> None:
    callback = operation.callback
    if operation.request is None:
        return
    if isinstance(callback, ClassicJoined):
        mixed_join.joined(step, callback)
        return
    if isinstance(callback, ClassicSynced):
        assert isinstance(operation.request.body, SyncGroupRequest)
        mixed_sync.taken(step, operation.request, operation.request.body, callback)
        return
    if not isinstance(callback, AssignmentSent | MemberReplaced):
        return
    group = _group_of(step, callback)
    if group is None:
        return
    if isinstance(callback, AssignmentSent):
        sync.written(step, group, callback)
    else:
        static.written(step, group, callback, operation.request)
    _keep(step, group)


def _fail(step: Step, number: int, operation: Operation, error: ErrorCode) -> None:
    """Callback first, then whoever still waits for an answer (F-RT-13)."""
    request = operation.request
    if isinstance(operation.callback, TimerRan) and error is not ErrorCode.NOT_COORDINATOR:
        timers.retry(step, *operation.callback)
    if request is not None:
        if operation.callback is not None:
            _undo(step, request, operation.callback, error)
        parked = operation.callback is None and operation.reply is None
        if not step.operations[number].answered and not (parked and not step.profile.fault_parked_fail_early):
            step.reply(number, refusal(request, operation_error(error)))
        if step.operations[number].answered:
            operations.mark_answered(step, request)
    _close(step, number)


def _undo(step: Step, request: Request, callback: AppendCallback, error: ErrorCode) -> None:
    if isinstance(callback, GroupCreated):
        step.reply(request.id, refusal(request, append_error(error)))  # C-JOIN-16
    if not isinstance(callback, AssignmentSent | MemberReplaced):
        return
    group = _group_of(step, callback)
    if group is None:
        return
    if isinstance(callback, AssignmentSent):
        sync.undo(step, group, callback, error)
    else:
        static.undo(step, group, callback, request, error)
    _keep(step, group)


def _group_of(step: Step, callback: AssignmentSent | MemberReplaced) -> GroupDraft | None:
    """The group of the callback, also if it was upgraded since: the object lives on until that is in the log."""
    befores = [change.before for change in step.changes if change.group_id == callback.group_id]
    for group in (step.groups.get(callback.group_id), *befores):
        if isinstance(group, ClassicGroup) and group.incarnation == callback.incarnation:
            return GroupDraft(group)
    return None


def _keep(step: Step, group: GroupDraft) -> None:
    now = step.groups.get(group.group_id)
    if isinstance(now, ClassicGroup) and now.incarnation == group.incarnation:
        step.keep(group)
    else:
        step.amend_change(group)


def _release(step: Step, request_id: int, callback: AssignmentSent | MemberReplaced) -> None:
    """The request is answered, so the member waits no more and is watched again."""
    group = _group_of(step, callback)
    if group is None:
        return
    for member in group.members.values():
        if request_id in (member.join, member.sync):
            group.put(member._replace(join=None, sync=None))
            step.arm_session(group, member)
            _keep(step, group)
            return


def _lose_timers(step: Step, group: ClassicGroup) -> None:
    """A reverted group leaves its timers behind, to act on the next group of its name (C-TMR-12); mended, they go."""
    if step.profile.fault_timers_outlive_reverted_group:
        return
    name = group.group_id
    for kind in (TimerKind.JOIN, TimerKind.SYNC):  # a downgrade may complete its join phase at once (X-DOWN-22)
        step.cancel_timer(TimerKey(kind, name))
    for member_id in (*group.members, *sorted(group.pending_join)):
        step.cancel_timer(TimerKey(TimerKind.SESSION, name, member_id))


def _close(step: Step, number: int) -> None:
    step.close(number)
    step.cancel_timer(operations.timer(number))
