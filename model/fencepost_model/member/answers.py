"""How a member handles answers (rule book, 8.2).

A JoinGroup or SyncGroup answer ends the running join or continues it; the next poll handles the end (``rejoin``). "The
generation is unchanged" means that the stored generation is the one that the request was sent with (K-ST-15).
"""

from __future__ import annotations

from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupResponse,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)

from ..machines import M_COMPLETING, M_PREPARING, M_STABLE
from .draft import MemberDraft
from .inputs import Answer, CommitAnswer
from .state import Generation, InFlight, Joined

_GONE: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
_JOIN_FATAL: Final = (
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)
DISCONNECT: Final = "DisconnectException"
UNEXPECTED: Final = "KafkaException"


def answered(d: MemberDraft, answer: Answer) -> None:
    """Handle an answer, or its loss. Raises ValueError if no such request is in flight."""
    sent = next((each for each in d.now.in_flight if each.request == answer.request), None)
    if sent is None:
        raise ValueError(f"no request {answer.request} is in flight")
    d.set(in_flight=tuple(each for each in d.now.in_flight if each is not sent))
    body = answer.body
    if body is None:
        d.rule("K-ERR-13")
        d.forget_coordinator()
        if sent.api in ("join", "sync"):
            d.end_join(Joined(error=DISCONNECT, retriable=True))
        elif sent.api == "commit":
            d.set(commit="")  # retriable: join prepare commits again (K-CB-01)
    elif isinstance(body, JoinGroupResponse):
        _join(d, sent, body)
    elif isinstance(body, SyncGroupResponse):
        _sync(d, sent, body)
    elif isinstance(body, HeartbeatResponse):
        _heartbeat(d, sent, body.error_code)
    elif isinstance(body, CommitAnswer):
        _commit(d, sent, body.error_code)


def _join(d: MemberDraft, sent: InFlight, body: JoinGroupResponse) -> None:
    error = body.error_code
    if error is ErrorCode.NONE:
        if body.protocol_type is not None and body.protocol_type != d.config.protocol_type:
            d.rule("K-ERR-12")
            d.end_join(Joined(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL.name))
        elif d.now.state != M_PREPARING:
            d.rule("K-ST-11")  # left or reset meanwhile: the answer is dropped and the join retried
            d.end_join(Joined(error="UnjoinedGroupException", retriable=True))
        else:
            _enter(d, body)
        return
    if error is ErrorCode.UNKNOWN_MEMBER_ID:
        d.rule("K-ERR-04")
        if d.now.generation == sent.generation:
            d.reset(_because(error), keep_id=False)
    elif error is ErrorCode.MEMBER_ID_REQUIRED:
        d.rule("K-ERR-07", "K-ST-17")
        d.set(generation=Generation(member_id=body.member_id))
    elif error in _GONE:
        d.rule("K-ERR-03")
        d.forget_coordinator()
    else:
        d.rule("K-ERR-02", "K-ERR-06", "K-ERR-08", "K-ERR-10", "K-ERR-11")
    retriable = error in (*_GONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    known = retriable or error in (*_JOIN_FATAL, *AT_ONCE)
    if error is ErrorCode.ILLEGAL_GENERATION:
        d.rule("K-ERR-05")  # JoinGroup carries no generation: unexpected
        known = False
    d.end_join(Joined(error=error.name if known else UNEXPECTED, retriable=retriable))


#: Errors after which the join loop continues without back-off (K-ERR-14).
AT_ONCE: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MEMBER_ID_REQUIRED,
)


def _enter(d: MemberDraft, body: JoinGroupResponse) -> None:
    """End the join phase and send the SyncGroup at once (K-ERR-01)."""
    d.rule("K-ST-11", "K-ERR-01")
    d.transition("join_answered")
    d.set(generation=Generation(body.generation_id, body.member_id, body.protocol_name), beating=d.now.thread)
    assignments: tuple[SyncGroupAssignment, ...] = ()
    if body.leader == body.member_id:  # G-WIRE-25
        try:
            assignments = _lead(d, body.members, skip=body.skip_assignment)
        except Exception as thrown:  # an assignor's exception reaches the application
            d.rule("K-JOIN-20")
            d.end_join(Joined(error=type(thrown).__name__))
            return
    generation = d.now.generation
    d.send(
        "sync",
        SyncGroupRequest(
            d.config.group_id,
            generation_id=generation.id,
            member_id=generation.member_id,
            group_instance_id=d.config.instance_id,
            protocol_type=d.config.protocol_type,
            protocol_name=generation.protocol,
            assignments=assignments,
        ),
    )


def _lead(d: MemberDraft, rows: tuple[JoinGroupMember, ...], *, skip: bool) -> tuple[SyncGroupAssignment, ...]:
    """Assign as the leader (K-JOIN-10, 11). From now on it watches the metadata (K-JOIN-02)."""
    topics = frozenset[str]().union(*(d.config.codec.topics(row.metadata) for row in rows))
    d.set(group_topics=topics, leads=True, renewed=d.now.renewed or not topics <= d.now.topics)
    if not topics <= d.now.topics:
        d.ask_metadata()
    d.look_at_metadata()
    given: tuple[tuple[str, bytes], ...] = ()
    if skip:
        d.rule("K-JOIN-11")
    else:
        d.rule("K-JOIN-10")
        given = d.config.codec.assign(d.now.generation.protocol or "", rows, d.now.metadata)
    d.set(watched=d.now.snapshot)
    return tuple(SyncGroupAssignment(member_id, data) for member_id, data in given)


def _sync(d: MemberDraft, sent: InFlight, body: SyncGroupResponse) -> None:
    error = body.error_code
    generation = d.now.generation
    if error is ErrorCode.NONE:
        if body.protocol_type is not None and body.protocol_type != d.config.protocol_type:
            d.rule("K-ERR-12")
            d.end_join(Joined(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL.name))
        elif generation.is_reset or d.now.state != M_COMPLETING:
            d.rule("K-ST-12")
            d.end_join(Joined(error=ErrorCode.ILLEGAL_GENERATION.name))
        elif body.protocol_name is not None and body.protocol_name != generation.protocol:
            d.rule("K-ST-12")
            d.end_join(Joined(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL.name))
        else:
            d.rule("K-ST-12")
            d.transition("sync_answered")
            d.set(rejoin=False, reason="")
            d.end_join(Joined(assignment=body.assignment))
        return
    retriable = False
    name = error.name
    if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
        d.rule("K-ERR-04", "K-ERR-05")
        if generation == sent.generation:
            d.reset(_because(error), keep_id=error is ErrorCode.ILLEGAL_GENERATION)
    elif error in _GONE:
        d.rule("K-ERR-03")
        d.forget_coordinator()
        retriable = True
    elif error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and d.variant.retries_sync_while_loading:
        d.rule("K-ERR-02")
        retriable = True
    elif error in (
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ):
        d.rule("K-ERR-06", "K-ERR-08", "K-ERR-11")
    else:
        d.rule("K-ERR-02", "K-ERR-09")
        name = UNEXPECTED
    d.end_join(Joined(error=name, retriable=retriable))


def _heartbeat(d: MemberDraft, sent: InFlight, error: ErrorCode) -> None:
    """Handle a heartbeat answer: the Heartbeat column of 8.2. The session timer (K-ERR-01, 04…06) belongs to the
    caller, who has the clock."""
    if error in _GONE:
        d.rule("K-ERR-03")
        d.forget_coordinator()
    elif error is ErrorCode.REBALANCE_IN_PROGRESS:
        d.rule("K-ERR-06")
        if d.now.state == M_STABLE:
            d.request_rejoin("group is already rebalancing")
    elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID):
        d.rule("K-ERR-04", "K-ERR-05", "K-ERR-08")
        if d.now.generation == sent.generation:
            d.reset(_because(error), keep_id=error is ErrorCode.ILLEGAL_GENERATION)
            if error is ErrorCode.FENCED_INSTANCE_ID:
                d.set(failure=error.name, thread=False, beating=False)


def _commit(d: MemberDraft, sent: InFlight, error: ErrorCode) -> None:
    """Handle the answer to the commit of join prepare (K-CB-01, K-OFF-10…14)."""
    changed = d.now.generation != sent.generation
    d.set(commit="done")
    if error in (*_GONE, ErrorCode.REQUEST_TIMED_OUT):
        d.rule("K-OFF-11")
        d.forget_coordinator()
        d.set(commit="")
    elif error in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        d.rule("K-OFF-10")
        d.set(commit="")
    elif error is ErrorCode.REBALANCE_IN_PROGRESS:
        d.rule("K-OFF-12")
        d.request_rejoin("offset commit failed since group is already rebalancing")
    elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
        d.rule("K-OFF-13")
        if not (changed and d.now.state == M_PREPARING):
            d.reset(_because(error), keep_id=error is ErrorCode.ILLEGAL_GENERATION)


def _because(error: ErrorCode) -> str:
    return f"encountered {error.name}"
