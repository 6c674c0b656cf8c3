"""How a KIP-848 member handles heartbeat answers (rule book, 8.10)."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode

from ...machines import FENCED, IN_GROUP, LEAVING, PREPARE_LEAVING, RECONCILING, UNSUBSCRIBED
from .background import leave_epoch
from .draft import ClientDraft
from .inputs import HeartbeatAnswered
from .state import Local, SentFields

_GONE: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_FENCED: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


def handle_answer(d: ClientDraft, answer: HeartbeatAnswered) -> None:
    """Handle an answer, or its loss. Raises ValueError if no such request is unanswered."""
    now, request = d.now, answer.request
    if request not in (*now.ignored, *now.late, now.in_flight):
        raise ValueError(f"no request {request} is in flight")
    if answer.body is None:
        d.rule("N-ERR-06")
        if now.in_flight is None and not now.late:
            d.set(ignored=frozenset())  # its answer is ignored (N-TR-09)
        else:
            d.lose_everything()
        return
    if request in now.ignored:
        d.set(ignored=now.ignored - {request})
        return
    error = answer.body.error_code
    leave_request = now.leave_request is not None
    if request in now.late:
        d.set(late=now.late - {request})
        d.rule("N-HB-11")
        if not d.variant.late_answers_count:
            return
        d.set(late=d.now.late | ({now.in_flight} if now.in_flight is not None else set()))
        # An answer ends the leave if it says that the member is not in the group.
        over = error is not ErrorCode.NONE or answer.body.member_epoch < 0
        leave_request = now.leaving and now.state == UNSUBSCRIBED and over
    d.set(in_flight=None, leave_request=None)
    if leave_request:
        d.rule("N-TR-08")
        d.left()  # with any code
    if error is ErrorCode.NONE:
        d.set(failing=False, due=False)
        _good(d, answer.body)
        return
    d.rule("N-HB-04")
    d.set(sent_fields=SentFields(), failing=True, due=False)
    before = d.now.state
    if (
        not (leave_request or before == UNSUBSCRIBED)
        or error in (*_GONE, *_FENCED)
        or d.variant.counts_after_leave(d, error)
    ):
        _bad(d, error, parting=leave_request)
    if before == FENCED and error in _FENCED:
        d.give_up("lost", "fenced")  # N-HB-11: only a late answer can tell a fenced member this


def counts_after_leave(d: ClientDraft, error: ErrorCode) -> bool:
    """Return whether the answer to a leave does more than end it (N-TR-08, N-ERR-05): it does not."""
    return False


def _good(d: ClientDraft, body: ConsumerGroupHeartbeatResponse) -> None:
    d.rule("N-HB-10")
    if d.now.state not in (*IN_GROUP, PREPARE_LEAVING):
        return
    if body.member_epoch < 0 and not d.variant.adopts_negative_epoch:
        return
    d.set(epoch=body.member_epoch)
    if body.member_epoch != 0:
        d.set(known_member=True)
    if body.member_epoch > 0:
        d.set(in_since=True)
    if d.now.state == PREPARE_LEAVING or body.assignment is None:
        return
    parts = frozenset((row.topic_id, each) for row in body.assignment for each in row.partitions)
    target = d.now.target
    if target is None or target.partitions != parts:
        d.set(target=Local(0 if target is None else target.epoch + 1, parts))
    if d.now.target != d.now.current:
        d.rule("N-TR-02")
        d.transition("target_received")
    elif d.now.state == RECONCILING:
        d.rule("N-TR-03")
        d.transition("target_is_current")


def _bad(d: ClientDraft, error: ErrorCode, *, parting: bool) -> None:
    if error in _GONE:
        d.rule("N-ERR-01")
        d.set(failing=False, due=True)
        if d.variant.late_answers_count:
            d.set(coordinator=False)  # N-HB-11: other requests to it may still be answered
        else:
            d.forget_coordinator()
    elif error in _FENCED:
        d.rule("N-ERR-02")
        d.set(failing=False, due=True)
        _fenced(d)
    elif error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        d.rule("N-ERR-03")
    elif error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        d.rule("N-ERR-07")
        d.throw(error.name)
    else:
        d.fatal(error.name, parting=parting)


def _fenced(d: ClientDraft) -> None:
    """Handle a fence: release the partitions and join again, or end the leave (N-TR-06)."""
    if d.now.state in (PREPARE_LEAVING, LEAVING):
        d.transition("fenced" if d.now.state == PREPARE_LEAVING else "left")
        d.set(epoch=leave_epoch(d), known_member=True, current=None)  # as if it had sent its leave
        d.left()
    elif d.in_group:
        d.rule("N-TR-06")
        d.transition("fenced")
        d.set(epoch=0)
        if not d.give_up("lost", "fenced"):
            d.release()
            d.join("loss_reported")
