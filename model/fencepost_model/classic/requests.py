"""Requests to classic groups as write operations: which are answered at once, and which wait for the log
(F-RT-20…26)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ResponseBody,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.records import Record

from ..consumer.state import ConsumerGroup
from ..consumer.tombstones import of_group
from ..machines import COMPLETING, DEAD, PREPARING, STABLE
from ..offsets.clean import with_group
from ..offsets.work import write_group_tombstones
from ..table import IllegalTransition
from .draft import Draft, InternalError
from .failure import failure
from .join import join
from .live import heartbeat
from .slots import CommittedView, Written
from .state import Arrive, Created, Group, Operation
from .sync import sync
from .work import Work


def handle_request(work: Work, request: Arrive) -> None:
    """Handle a valid request at an active coordinator."""
    body = request.body
    try:
        if isinstance(body, JoinGroupRequest):
            _join(work, request, body)
        elif isinstance(body, SyncGroupRequest):
            _sync(work, request, body)
        elif isinstance(body, HeartbeatRequest):
            _heartbeat(work, request, body)
        elif isinstance(body, LeaveGroupRequest):
            _leave(work, request, body)
        elif isinstance(body, DeleteGroupsRequest):
            work.variant.classic.delete_groups(work, request, body)
        else:
            raise TypeError(f"not a write operation: {type(body).__name__}")
    except (InternalError, IllegalTransition):
        _answer_internal_error(work, request)


def _answer_internal_error(work: Work, request: Arrive) -> None:
    """Answer after an exception inside the operation: nothing is appended, but changes stay (F-RT-10)."""
    work.failed = True
    operation = Operation(request.id, "", request.body, 0)
    if not any(answered == request.id for answered, _ in work.replies):
        for draft in work.drafts.values():
            work.mark_answered(draft, request.id)
        work.replies.append((request.id, failure(operation, ErrorCode.UNKNOWN_SERVER_ERROR)))


def answered_now(work: Work, request: int) -> bool:
    return any(answered == request for answered, _ in work.replies)


def _join(work: Work, request: Arrive, body: JoinGroupRequest) -> None:
    if request.version == 0:  # v0 has no rebalance timeout (D-30)
        body = replace(body, rebalance_timeout_ms=body.session_timeout_ms)
    draft = work.draft(body.group_id)
    is_new = draft is None
    displaced = work.consumer_group(body.group_id)  # an empty one (C-JOIN-10)
    if draft is None:
        if body.member_id:
            work.variant.classic.refuse_without_group(work, request, body)
            return
        work.rules.append("C-JOIN-12")
        begin = displaced.epoch if displaced is not None and work.variant.mixed.empty_group_keeps_epoch else 0
        draft = work.create(body.group_id, begin)
    records: list[Record] = []
    join(draft, request, body)
    records, callback = draft.records, draft.callback
    if is_new and not records and work.variant.classic.writes_new_group:
        work.rules.append("C-JOIN-16")  # F-ORD-01
        created = Draft(work.context, body.group_id, Group(timestamp=draft.timestamp, generation=begin), None)
        records, callback = [created.record({})], Created()
        if displaced is not None:
            records = [*of_group(body.group_id, displaced), *records]  # F-ORD-16
            work.variant.classic.note_removal(work, body.group_id)
        work.committed_views = (
            *work.committed_views,
            CommittedView(work.undurable + len(records), body.group_id, displaced),
        )
        work.written = Written(len(records), request.id, ((body.group_id, displaced),))
    elif records:
        work.written = Written(len(records), request.id)
    work.submit(
        Operation(request.id, body.group_id, body, 0, answered=answered_now(work, request.id), callback=callback),
        records,
    )


def refuse_without_group(work: Work, request: Arrive, body: JoinGroupRequest) -> None:
    """Refuse a member id that cannot be known, as there is no classic group (C-JOIN-11)."""
    work.rules.append("C-JOIN-11")
    _submit_future(work, request, JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID, member_id=body.member_id))


def _submit_future(work: Work, request: Arrive, body: ResponseBody) -> None:
    """Submit a JoinGroup or SyncGroup that is answered at once; it is an operation nevertheless."""
    work.replies.append((request.id, body))
    work.submit(Operation(request.id, "", request.body, 0, answered=True), [])


def _sync(work: Work, request: Arrive, body: SyncGroupRequest) -> None:
    draft = work.draft(body.group_id)
    if draft is None:
        work.rules.append("C-SYNC-05")
        _submit_future(work, request, SyncGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID))
        return
    sync(draft, request, body)
    if draft.records:
        work.written = Written(len(draft.records), request.id)
    work.submit(
        Operation(request.id, body.group_id, body, 0, answered=answered_now(work, request.id), callback=draft.callback),
        draft.records,
    )


def _heartbeat(work: Work, request: Arrive, body: HeartbeatRequest) -> None:
    draft = work.draft(body.group_id)
    if draft is None:
        work.rules.append("C-HB-05")
        answer = HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID)
    else:
        answer = heartbeat(draft, body)
    waits = draft is None or work.variant.classic.answers_wait_for_log
    if waits and answer.error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        work.submit(Operation(request.id, body.group_id, body, 0, answer), [])  # F-RT-24, C-HB-14
    else:
        work.replies.append((request.id, answer))  # an error is thrown and does not wait for the log


def _leave(work: Work, request: Arrive, body: LeaveGroupRequest) -> None:
    draft = work.draft(body.group_id)
    if draft is None:
        work.rules.append("C-LEAVE-03")
        rows = tuple(
            LeaveGroupMemberResponse(
                m.member_id, group_instance_id=m.group_instance_id, error_code=ErrorCode.UNKNOWN_MEMBER_ID
            )
            for m in body.members
        )
        work.replies.append((request.id, leave_answer(request.version, rows)))
        return
    if draft.state == DEAD:
        work.rules.append("C-LEAVE-05")
        answer = LeaveGroupResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        work.submit(Operation(request.id, body.group_id, body, 0, answer), [])
        return
    # the answer waits for the record, if any (C-LEAVE-23, F-RT-25)
    rows = work.variant.classic.remove_members(draft, body)
    if draft.records:
        work.written = Written(len(draft.records), request.id)
    answer = leave_answer(request.version, rows)
    answered = not work.variant.classic.answers_wait_for_log
    if answered:
        work.replies.append((request.id, answer))
    waiting = None if answered else answer
    work.submit(
        Operation(request.id, body.group_id, body, 0, waiting, answered=answered, callback=draft.callback),
        draft.records,
    )


def run_due_deletions(work: Work) -> None:
    """Run the events that the step itself has queued: deletions whose first phase is over, one after the other.

    Each is appended separately (F-RT-05). A later event decides whether the append of the last one fails. For those
    before it, that is part of this step, and a choice.
    """
    outcome = ""
    while work.due:
        request = work.due.pop(0)
        if not isinstance(request.body, DeleteGroupsRequest):
            continue
        written = delete_groups(work, request, request.body)
        if written is not None and work.due:
            outcome = outcome or work.context.chooser.pick("append", _APPENDS)
            if outcome != _APPENDS[0]:
                work.append_error(written, ErrorCode[outcome])


#: The outcomes of a deletion's append, as far as answers can differ by them (F-RT-10).
_APPENDS = (
    "succeeds",
    ErrorCode.KAFKA_STORAGE_ERROR.name,
    ErrorCode.NOT_ENOUGH_REPLICAS.name,
    ErrorCode.MESSAGE_TOO_LARGE.name,
    ErrorCode.NETWORK_EXCEPTION.name,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND.name,
)


def delete_groups(work: Work, request: Arrive, body: DeleteGroupsRequest) -> Written | None:
    """Delete the groups (C-ADM-09). Returns what was written, which is also the last write of the step."""
    work.rules.append("C-ADM-09")
    rows: list[DeletedGroup] = []
    records: list[Record] = []
    before: list[tuple[str, Group | ConsumerGroup]] = []
    allowed = []
    for group_id in dict.fromkeys(body.groups_names):
        if group_id in request.denied:
            rows.append(DeletedGroup(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        allowed.append(group_id)
        draft = work.draft(group_id)
        group = draft.close() if draft is not None else work.consumer_group(group_id)
        if group is None:
            rows.append(DeletedGroup(group_id, ErrorCode.GROUP_ID_NOT_FOUND))
        elif group.members if isinstance(group, ConsumerGroup) else group.state in (PREPARING, COMPLETING, STABLE):
            rows.append(DeletedGroup(group_id, ErrorCode.NON_EMPTY_GROUP))
        else:
            rows.append(DeletedGroup(group_id, ErrorCode.NONE))
            records += with_group(work.offsets, group_id)
            before.append((group_id, group))
            write_group_tombstones(work, group_id, group, records)
    for group_id, _ in before:
        work.delete(group_id)
    if not allowed:  # the request layer answers, so there is no operation
        work.replies.append((request.id, DeleteGroupsResponse(tuple(rows))))
        return None
    work.written = Written(len(records), request.id, tuple(before)) if records else None
    work.submit(Operation(request.id, "", body, 0, DeleteGroupsResponse(tuple(rows))), records)
    return work.written


def leave_answer(version: int, rows: tuple[LeaveGroupMemberResponse, ...]) -> LeaveGroupResponse:
    """Return the answer; up to v2 the error of the single entry becomes the top-level error (G-WIRE-23)."""
    if version <= 2:
        return LeaveGroupResponse(rows[0].error_code if rows else ErrorCode.NONE)
    return LeaveGroupResponse(ErrorCode.NONE, rows)
