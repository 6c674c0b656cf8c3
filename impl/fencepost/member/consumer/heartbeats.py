"""The background: poll interval, heartbeats, and reconciliation that needs no poll (8.10).

It is not a thread here: it runs at the end of every step and does whatever is due. Its timers make sure that the next
step is in time.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_messages import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import varies

from .. import lookup
from ..events import Call, CloseOption, Failure, FailureKind, MemberTimer
from . import reconciling, requests
from .state import Beat, ConsumerState, LastSent, Reason, SentHeartbeat
from .turn import ConsumerTurn

_AT_ONCE = (ConsumerState.JOINING, ConsumerState.ACKNOWLEDGING)


def have_turn(turn: ConsumerTurn) -> None:
    """Run the background until nothing is due."""
    while _work(turn) or reconciling.start(turn, polled=False):
        pass


def _work(turn: ConsumerTurn) -> bool:
    member = turn.member
    if member.coordinator.node is None:  # N-TR-13
        if not member.closed:  # K-FIND-01
            lookup.start(turn)
        if member.state is not ConsumerState.LEAVING:
            return False
        turn.move(ConsumerState.UNSUBSCRIBED)  # N-TR-12
        turn.left()
    elif member.state is ConsumerState.LEAVING:
        if holds_leave(turn):
            return False
        _leave(turn)
    elif member.state.in_group and not turn.running(MemberTimer.POLL):
        _expire(turn)
    elif _due(turn):
        _beat(turn)
    else:
        return False
    return True


def _due(turn: ConsumerTurn) -> bool:
    """Return whether a heartbeat is due: none is unanswered, and interval or back-off has passed (N-HB-06, N-HB-07)."""
    member = turn.member
    if not member.state.heartbeats:
        return False
    if member.in_flight is not None:
        return False  # N-HB-06
    if member.state is ConsumerState.JOINING:
        return may_join(turn)
    return member.state in _AT_ONCE or not (turn.running(MemberTimer.BACKOFF) or turn.running(MemberTimer.HEARTBEAT))


def may_join(turn: ConsumerTurn) -> bool:
    """Return whether the member may join now. It does not wait for the interval, but for the back-off after a failed
    join (N-ERR-03)."""
    backs_off = turn.rules.joins_back_off and turn.member.failed_attempts
    return not turn.running(MemberTimer.BACKOFF) or not backs_off


def _beat(turn: ConsumerTurn) -> None:
    member = turn.member
    if member.subscription.regex is not None and member.settings.version == 0:
        turn.fail(Failure(FailureKind.ANSWER, ErrorCode.UNSUPPORTED_VERSION))  # N-HB-02, N-ERR-04
        return
    requests.send_heartbeat(turn, Beat.CURRENT)
    if turn.member.state is ConsumerState.ACKNOWLEDGING:  # N-TR-05: sending is enough
        reconciled = turn.member.current == turn.member.target
        turn.move(ConsumerState.STABLE if reconciled else ConsumerState.RECONCILING)


# --- intervals and back-off ---


def good(turn: ConsumerTurn, interval_ms: int) -> None:
    """Handle a response without error: set the least gap; a new interval length starts now (N-HB-07)."""
    if interval_ms != turn.member.interval_ms:
        turn.set_deadline(MemberTimer.HEARTBEAT, interval_ms)
    turn.member = turn.member._replace(failed_attempts=0, interval_ms=interval_ms)
    turn.set_deadline(MemberTimer.BACKOFF, backoff(turn, 0))


def failed(turn: ConsumerTurn) -> None:
    """Handle an error or a lost response: the next heartbeat sends everything (N-HB-04), after a back-off (N-HB-07)."""
    attempts = turn.member.failed_attempts
    turn.member = turn.member._replace(last_sent=LastSent(), failed_attempts=attempts + 1)  # N-HB-04
    turn.drop_deadline(MemberTimer.HEARTBEAT)
    turn.set_deadline(MemberTimer.BACKOFF, backoff(turn, attempts))


def skip_backoff(turn: ConsumerTurn) -> None:
    """Send the next heartbeat without back-off: to another coordinator, or as a new member (N-ERR-01, N-ERR-02)."""
    turn.member = turn.member._replace(failed_attempts=0)
    turn.drop_deadline(MemberTimer.HEARTBEAT)
    turn.drop_deadline(MemberTimer.BACKOFF)


@varies
def backoff(turn: ConsumerTurn, attempts: int) -> int:
    """Return the back-off in ms after ``attempts`` failed heartbeats (N-HB-07)."""
    return turn.backoff(attempts)


def lost(turn: ConsumerTurn) -> None:
    """Handle a lost connection or a request timeout (N-ERR-06). A member that waits only for the response to its leave
    for the poll interval ignores it (N-TR-09)."""
    if all(sent.beat is Beat.IGNORED for sent in turn.member.sent):
        turn.member = turn.member._replace(sent=())
    else:
        forget_coordinator(turn, disconnected=True)  # N-ERR-06


@varies
def let_go(turn: ConsumerTurn) -> None:
    """Forget a node that is no longer the coordinator, and ignore the responses to requests sent to it (N-ERR-01)."""
    forget_coordinator(turn)


def forget_coordinator(turn: ConsumerTurn, *, disconnected: bool = False) -> None:
    """Forget the coordinator; every request to it has failed (K-ERR-13)."""
    unanswered = turn.member.sent
    lookup.drop(turn, unanswered, disconnected=disconnected)
    turn.member = turn.member._replace(sent=())
    for sent in unanswered:
        if sent.beat is Beat.LEAVE:
            turn.left()
        if sent.beat in (Beat.CURRENT, Beat.LEAVE) or (sent.beat is Beat.LATE and late_loss_counts(turn)):
            failed(turn)


@varies
def late_loss_counts(turn: ConsumerTurn) -> bool:
    """Return whether the loss of a heartbeat that was sent before a leave counts as a failure (N-HB-11)."""
    return False


# --- leaving ---


def leave_epoch(turn: ConsumerTurn, option: CloseOption) -> int:
    """Return the epoch of the leave heartbeat: a final leave, or a static member that will return (N-HB-09)."""
    static = turn.member.settings.group_instance_id is not None
    return STATIC_LEAVE_EPOCH if static and option is not CloseOption.LEAVE_GROUP else LEAVE_EPOCH


def _expire(turn: ConsumerTurn) -> None:
    """Leave because the application has not polled for a poll interval; the listener is called later (N-TR-09)."""
    turn.move(ConsumerState.PREPARE_LEAVING)
    turn.member = turn.member._replace(expired=True, epoch=leave_epoch(turn, CloseOption.DEFAULT), current=None)
    turn.move(ConsumerState.LEAVING)


def _leave(turn: ConsumerTurn) -> None:
    """Send the leave heartbeat even if a heartbeat is unanswered (N-HB-06); a response to that one is then late."""
    if not turn.member.expired and stays_silent(turn):
        turn.move(ConsumerState.UNSUBSCRIBED)
        turn.left()
        return
    late = tuple(
        replace(sent, beat=Beat.LATE) if sent.beat in (Beat.CURRENT, Beat.LEAVE) else sent for sent in turn.member.sent
    )
    turn.member = turn.member._replace(sent=late)
    if not turn.member.expired:
        requests.send_heartbeat(turn, Beat.LEAVE)
        turn.move(ConsumerState.UNSUBSCRIBED)  # N-TR-08
        return
    requests.send_heartbeat(turn, Beat.IGNORED)
    turn.member = turn.member._replace(last_sent=LastSent())
    skip_backoff(turn)
    turn.move(ConsumerState.STALE)
    if not turn.give_up(Call.LOST, Reason.STALE):
        turn.release()


def holds_leave(turn: ConsumerTurn) -> bool:
    """Return whether the leave waits for the response to an unanswered heartbeat (N-HB-06, N-HB-09)."""
    member = turn.member
    remains = member.option is CloseOption.REMAIN_IN_GROUP and member.settings.group_instance_id is None
    leaves = remains and not turn.rules.dynamic_member_remains
    return leaves and not member.expired and member.in_flight is not None


def stays_silent(turn: ConsumerTurn) -> bool:
    """Return whether a member that remains in the group sends nothing. A dynamic member does; a static one announces
    its return (N-HB-09)."""
    rules, static = turn.rules, turn.member.settings.group_instance_id is not None
    silent = static if rules.static_member_remains_silently else rules.dynamic_member_remains and not static
    return silent and turn.member.option is CloseOption.REMAIN_IN_GROUP


def in_flight(turn: ConsumerTurn, request_id: int) -> SentHeartbeat | None:
    """Remove and return the unanswered request with this id; None if there is none."""
    sent = next((each for each in turn.member.sent if each.request_id == request_id), None)
    if sent is not None:
        turn.member = turn.member._replace(sent=tuple(each for each in turn.member.sent if each is not sent))
    return sent
