"""Coordinator look-up (K-FIND-01)."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from fencepost.protocol.errors import ErrorCode

from .events import Disconnect, Failure, FailureKind, FindCoordinator, MemberTimer, RequestMetadata
from .state import Coordinator, Retry, SentKind
from .turn import AnyTurn, M, Turn

Request = TypeVar("Request")

#: Look-up errors after which the member tries again; every other error is fatal.
RETRIABLE = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


def start(turn: AnyTurn[M]) -> None:
    """Look the coordinator up, unless a look-up is in progress or its back-off runs. This clears the failure of the
    previous look-up, so only an earlier poll throws it or refreshes metadata because of it (K-FIND-01)."""
    coordinator = turn.member.coordinator
    if coordinator.node is None and not coordinator.looking_up and not turn.running(MemberTimer.LOOKUP):
        turn.member = turn.member._replace(
            coordinator=replace(coordinator, looking_up=True, failure=None, failed_for_now=False)
        )
        turn.drop_deadline(MemberTimer.LOOKUP)
        turn.emit(FindCoordinator(turn.member.settings.group_id))


def found(turn: Turn, node: int) -> None:
    """Store the node of the coordinator."""
    turn.member = turn.member._replace(coordinator=Coordinator(node=node))
    turn.drop_deadline(MemberTimer.LOOKUP)
    turn.set_deadline(MemberTimer.SESSION, turn.member.settings.session_timeout_ms)  # K-HB-02


def failed(turn: Turn, error: ErrorCode | None) -> None:
    """Handle a failed look-up (K-FIND-01). After a retriable error, the next poll waits and refreshes metadata; a fatal
    error is thrown by the next poll."""
    coordinator = replace(turn.member.coordinator, looking_up=False)
    if error is not None and error not in RETRIABLE:
        turn.member = turn.member._replace(coordinator=replace(coordinator, failure=Failure(FailureKind.ANSWER, error)))
        # the heartbeat thread waits; a poll throws
        turn.set_deadline(MemberTimer.LOOKUP, turn.member.settings.retry_backoff_ms)
        return
    attempts = coordinator.failed_attempts
    turn.member = turn.member._replace(
        coordinator=replace(coordinator, failed_attempts=attempts + 1, failed_for_now=True)
    )
    turn.set_deadline(MemberTimer.LOOKUP, turn.backoff(attempts))


def start_again(turn: Turn) -> None:
    """Look the coordinator up for a poll. If the last look-up failed and may succeed later, refresh metadata first,
    unless the heartbeat thread has started another look-up meanwhile (K-FIND-01)."""
    if turn.member.coordinator.failed_for_now and not turn.running(MemberTimer.LOOKUP):
        turn.member = turn.member._replace(metadata_requested=True)
        turn.emit(RequestMetadata(turn.member.subscription.watched))
    start(turn)


def drop(turn: AnyTurn[M], sent: tuple[Request, ...], *, disconnected: bool) -> tuple[Request, ...]:
    """Forget the coordinator, which fails every request to it (K-ERR-13). Return those requests."""
    if turn.member.coordinator.node is None:
        return ()
    turn.member = turn.member._replace(coordinator=Coordinator(), sent=())
    if not disconnected:
        turn.emit(Disconnect())
    return sent


def forget(turn: Turn, *, disconnected: bool = False) -> None:
    """Forget the coordinator, and handle the failure of every request to it."""
    for request in drop(turn, turn.member.sent, disconnected=disconnected):
        if request.kind in (SentKind.JOIN, SentKind.SYNC):
            turn.fail_join("DisconnectException", Retry.BACK_OFF)
        elif request.kind is SentKind.HEARTBEAT:
            heartbeat_failed(turn)


def heartbeat_failed(turn: Turn) -> None:
    """Set the next heartbeat to the end of a back-off; the session timer keeps running (K-HB-05)."""
    thread = turn.member.thread
    turn.set_deadline(MemberTimer.HEARTBEAT, turn.backoff(thread.failed_attempts))
    turn.member = turn.member._replace(thread=replace(thread, failed_attempts=thread.failed_attempts + 1))
