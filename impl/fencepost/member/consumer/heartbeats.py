"""A turn of the background: poll interval, heartbeats, and a reconciliation that needs no poll (8.10).

There is no thread here: the background has its turn at the end of every step, when all that is due is done, and the
timers say when the next turn is needed at the latest.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_messages import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from fencepost.protocol.errors import ErrorCode

from .. import lookup
from ..events import Call, CloseOption, Failure, FailureKind, MemberTimer
from . import reconciling, requests
from .state import Beat, ConsumerState, LastSent, Reason, Sent
from .turn import ConsumerTurn

_AT_ONCE = (ConsumerState.JOINING, ConsumerState.ACKNOWLEDGING)


def have_turn(turn: ConsumerTurn) -> None:
    """Until nothing is due."""
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
        _leave(turn)
    elif member.state.in_group and not turn.running(MemberTimer.POLL):
        _expire(turn)
    elif _due(turn):
        _beat(turn)
    else:
        return False
    return True


def _due(turn: ConsumerTurn) -> bool:
    """N-HB-06, N-HB-07."""
    member = turn.member
    if not member.state.heartbeats or member.in_flight is not None:
        return False
    held = turn.running(MemberTimer.BACKOFF)
    if member.state is ConsumerState.JOINING:
        impatient = member.settings.profile.fault_joining_skips_backoff
        return impatient or not held or not member.failed_attempts  # N-ERR-03
    return member.state in _AT_ONCE or not (held or turn.running(MemberTimer.HEARTBEAT))


def _beat(turn: ConsumerTurn) -> None:
    member = turn.member
    if member.subscription.regex is not None and member.settings.version == 0:
        turn.fail(Failure(FailureKind.ANSWER, ErrorCode.UNSUPPORTED_VERSION))  # N-HB-02, N-ERR-04
        return
    requests.send_heartbeat(turn, Beat.CURRENT)
    if turn.member.state is ConsumerState.ACKNOWLEDGING:  # N-TR-05: sent is enough
        reconciled = turn.member.current == turn.member.target
        turn.move(ConsumerState.STABLE if reconciled else ConsumerState.RECONCILING)


# --- intervals and back-off ---


def good(turn: ConsumerTurn, interval_ms: int) -> None:
    """An answer without error: the interval starts anew, with a least gap (N-HB-07)."""
    turn.member = turn.member._replace(failed_attempts=0, interval_ms=interval_ms)
    turn.set_deadline(MemberTimer.HEARTBEAT, interval_ms)
    turn.set_deadline(MemberTimer.BACKOFF, _backoff(turn, 0))


def failed(turn: ConsumerTurn) -> None:
    """Any error, or no answer: the next heartbeat tells everything (N-HB-04), after a back-off (N-HB-07)."""
    attempts = turn.member.failed_attempts
    turn.member = turn.member._replace(last_sent=LastSent(), failed_attempts=attempts + 1)
    turn.drop_deadline(MemberTimer.HEARTBEAT)
    turn.set_deadline(MemberTimer.BACKOFF, _backoff(turn, attempts))


def skip_backoff(turn: ConsumerTurn) -> None:
    """N-ERR-01, N-ERR-02."""
    turn.member = turn.member._replace(failed_attempts=0)
    turn.drop_deadline(MemberTimer.HEARTBEAT)
    turn.drop_deadline(MemberTimer.BACKOFF)


def _backoff(turn: ConsumerTurn, attempts: int) -> int:
    settings = turn.member.settings
    if not settings.profile.old_backoff_jitter:
        return turn.backoff(attempts)
    # N-HB-07 [4.0, 4.1]: the factor is drawn from 1 ± the poll interval in ms
    factor = 1 + (turn.jitter - 1) / 0.2 * settings.max_poll_interval_ms
    delay = settings.retry_backoff_ms * 2 ** min(attempts, 30) * factor
    return max(0, int(min(delay, settings.retry_backoff_max_ms)))


def forget_coordinator(turn: ConsumerTurn, *, disconnected: bool = False) -> None:
    """Every request to it has failed (K-ERR-13)."""
    lost = lookup.drop(turn, turn.member.sent, disconnected=disconnected)
    for sent in lost:
        if sent.beat is Beat.LEAVE:
            turn.left()
        if sent.beat in (Beat.CURRENT, Beat.LEAVE):
            failed(turn)


# --- leaving ---


def leave_epoch(turn: ConsumerTurn, option: CloseOption) -> int:
    """N-HB-09."""
    static = turn.member.settings.group_instance_id is not None
    return STATIC_LEAVE_EPOCH if static and option is not CloseOption.LEAVE_GROUP else LEAVE_EPOCH


def _expire(turn: ConsumerTurn) -> None:
    """The application has not polled for a poll interval: leave without asking it (N-TR-09)."""
    turn.move(ConsumerState.PREPARE_LEAVING)
    turn.member = turn.member._replace(expired=True, epoch=leave_epoch(turn, CloseOption.DEFAULT), current=None)
    turn.move(ConsumerState.LEAVING)


def _leave(turn: ConsumerTurn) -> None:
    """The leave heartbeat, regardless of what is in flight (N-HB-06); its answer is late for whatever was."""
    if not turn.member.expired and _stays_silent(turn):
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


def _stays_silent(turn: ConsumerTurn) -> bool:
    """REMAIN_IN_GROUP: a static member says that it will be back, a dynamic one nothing (N-HB-09)."""
    settings = turn.member.settings
    if turn.member.option is not CloseOption.REMAIN_IN_GROUP:
        return False
    if settings.group_instance_id is not None:
        return settings.profile.old_static_remains_silently
    return not settings.profile.fault_remaining_member_leaves


def in_flight(turn: ConsumerTurn, request_id: int) -> Sent | None:
    """The request, taken out of those without answer."""
    sent = next((each for each in turn.member.sent if each.request_id == request_id), None)
    if sent is not None:
        turn.member = turn.member._replace(sent=tuple(each for each in turn.member.sent if each is not sent))
    return sent
