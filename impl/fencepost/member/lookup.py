"""Finding and forgetting the coordinator (K-FIND-01)."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from fencepost.protocol.errors import ErrorCode

from .events import Disconnect, Failure, FailureKind, FindCoordinator, MemberTimer, RequestMetadata
from .state import Coordinator, Retry, SentKind
from .turn import AnyTurn, M, Turn

Request = TypeVar("Request")

#: Answers to a look-up after which another is tried; everything else is fatal.
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
    """Look the coordinator up, one request at a time, not during the back-off. What the last one failed of is
    forgotten: a poll throws it, or refreshes metadata for it, only if it comes before (K-FIND-01)."""
    coordinator = turn.member.coordinator
    if coordinator.node is None and not coordinator.looking_up and not turn.running(MemberTimer.LOOKUP):
        turn.member = turn.member._replace(
            coordinator=replace(coordinator, looking_up=True, failure=None, failed_for_now=False)
        )
        turn.drop_deadline(MemberTimer.LOOKUP)
        turn.emit(FindCoordinator(turn.member.settings.group_id))


def found(turn: Turn, node: int) -> None:
    """The coordinator is this node."""
    turn.member = turn.member._replace(coordinator=Coordinator(node=node))
    turn.drop_deadline(MemberTimer.LOOKUP)
    turn.set_deadline(MemberTimer.SESSION, turn.member.settings.session_timeout_ms)  # K-HB-02


def failed(turn: Turn, error: ErrorCode | None) -> None:
    """The look-up failed: after a retriable failure the next poll waits and refreshes metadata, a fatal one is thrown
    by the next poll (K-FIND-01)."""
    coordinator = replace(turn.member.coordinator, looking_up=False)
    if error is not None and error not in RETRIABLE:
        turn.member = turn.member._replace(coordinator=replace(coordinator, failure=Failure(FailureKind.ANSWER, error)))
        turn.set_deadline(MemberTimer.LOOKUP, turn.member.settings.retry_backoff_ms)  # the thread waits; a poll throws
        return
    attempts = coordinator.failed_attempts
    turn.member = turn.member._replace(
        coordinator=replace(coordinator, failed_attempts=attempts + 1, failed_for_now=True)
    )
    turn.set_deadline(MemberTimer.LOOKUP, turn.backoff(attempts))


def start_again(turn: Turn) -> None:
    """Look the coordinator up for a poll: one whose last look-up failed for now refreshes metadata first, unless the
    heartbeat thread has looked again meanwhile (K-FIND-01)."""
    if turn.member.coordinator.failed_for_now and not turn.running(MemberTimer.LOOKUP):
        turn.member = turn.member._replace(metadata_requested=True)
        turn.emit(RequestMetadata(turn.member.subscription.watched))
    start(turn)


def drop(turn: AnyTurn[M], sent: tuple[Request, ...], *, disconnected: bool) -> tuple[Request, ...]:
    """The coordinator is unknown from now on, and every request to it has failed (K-ERR-13): gives those."""
    if turn.member.coordinator.node is None:
        return ()
    turn.member = turn.member._replace(coordinator=Coordinator(), sent=())
    if not disconnected:
        turn.emit(Disconnect())
    return sent


def forget(turn: Turn, *, disconnected: bool = False) -> None:
    """The coordinator is unknown from now on, and what was sent to it has failed."""
    for request in drop(turn, turn.member.sent, disconnected=disconnected):
        if request.kind in (SentKind.JOIN, SentKind.SYNC):
            turn.fail_join("DisconnectException", Retry.BACK_OFF)
        elif request.kind is SentKind.HEARTBEAT:
            heartbeat_failed(turn)


def heartbeat_failed(turn: Turn) -> None:
    """The next heartbeat is due after a back-off; the session timer runs on (K-HB-05)."""
    thread = turn.member.thread
    turn.set_deadline(MemberTimer.HEARTBEAT, turn.backoff(thread.failed_attempts))
    turn.member = turn.member._replace(thread=replace(thread, failed_attempts=thread.failed_attempts + 1))
