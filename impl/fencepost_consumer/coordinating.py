"""Finding and losing the coordinator, for offset requests (K-FIND-01, K-OFF-11)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import Disconnect
from fencepost.member.lookup import RETRIABLE
from fencepost.protocol.errors import ErrorCode
from fencepost_consumer import commits, committed
from fencepost_consumer.events import Problem, ProblemKind
from fencepost_consumer.state import Coordinator, SentCommit, SentLookup
from fencepost_consumer.turn import Turn


def found(turn: Turn, node: int) -> None:
    """Store the coordinator; waiting requests are sent at the end of the step."""
    turn.reader = turn.reader._replace(coordinator=turn.coordinator_found(node))


def keep(turn: Turn) -> None:
    """Look up an unknown coordinator in the background, even if no request waits for it, until a close has committed
    (N-CLOSE-01)."""
    if turn.looks_up_coordinator_unasked and turn.reader.settings.group_id and not turn.reader.parting:
        turn.coordinator_known()


def failed(turn: Turn, error: ErrorCode | None) -> None:
    """Handle a failed look-up: set the back-off for the next. A fatal error fails all that waits for it."""
    coordinator = turn.reader.coordinator
    if coordinator.node is not None:
        return
    attempts = coordinator.failed_attempts
    retry_at = turn.now + turn.backoff(attempts)
    turn.reader = turn.reader._replace(
        coordinator=replace(coordinator, looking_up=False, failed_attempts=attempts + 1, retry_at=retry_at)
    )
    retriable = error is None or error in RETRIABLE
    problem = Problem(ProblemKind.API, error or ErrorCode.COORDINATOR_NOT_AVAILABLE)
    kept = not retriable and turn.keeps_failed_lookup()
    if kept:
        turn.reader = turn.reader._replace(coordinator=replace(turn.reader.coordinator, problem=problem))
    commits.fail(turn, problem, retriable=retriable)
    if retriable:
        return
    waiting = turn.reader.waiting
    # a close ends its search here, and runs no callbacks
    if not kept and waiting is not None and waiting.seeks:
        turn.reader = turn.reader._replace(waiting=replace(waiting, seeks=False, commit=None))
    if turn.fails_committed(kept=kept):
        committed.fail(turn, problem)


def lost(turn: Turn, *, disconnected: bool) -> None:
    """Forget the coordinator, which fails every request to it (K-ERR-13). If the node has only said that it is not the
    coordinator, a client may keep the connection until that is lost too."""
    before = turn.reader.coordinator
    if before.node is not None:
        turn.reader = turn.reader._replace(coordinator=Coordinator(retry_at=before.retry_at, problem=before.problem))
    elif not disconnected:
        return
    if not disconnected and turn.keeps_former_connection:
        return  # requests already sent may still be answered
    if not disconnected:
        turn.emit(Disconnect())
    for request_id, sent in tuple(turn.reader.sent.items()):
        if isinstance(sent, SentCommit):
            turn.landed(request_id)
            commits.answered(turn, request_id, sent, None)
        elif isinstance(sent, SentLookup):
            turn.landed(request_id)
            committed.answered(turn, request_id, sent, None)
