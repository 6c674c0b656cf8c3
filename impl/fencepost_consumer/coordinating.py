"""Finding and losing the coordinator, for offset requests (K-FIND-01, K-OFF-11)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import Disconnect
from fencepost.member.lookup import RETRIABLE
from fencepost.protocol.errors import ErrorCode
from fencepost_consumer import commits, committed
from fencepost_consumer.events import Problem, ProblemKind
from fencepost_consumer.settings import Client
from fencepost_consumer.state import CallKind, Coordinator, SentCommit, SentLookup
from fencepost_consumer.turn import Turn


def found(turn: Turn, node: int) -> None:
    """Store the coordinator; waiting requests are sent at the end of the step. The new consumer keeps a back-off before
    its next look-up (K-FIND-01)."""
    retry_at = turn.now + turn.backoff(0) if turn.client is Client.CONSUMER else None
    problem = turn.reader.coordinator.problem if turn.client is Client.CONSUMER else None
    turn.reader = turn.reader._replace(coordinator=Coordinator(node, retry_at=retry_at, problem=problem))


def keep(turn: Turn) -> None:
    """Look up an unknown coordinator in the new consumer's background, even if no request waits for it, until a close
    has committed (N-CLOSE-01)."""
    if turn.client is Client.CONSUMER and turn.reader.settings.group_id and not turn.reader.parting:
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
    if not retriable and _waits_to_be_thrown(turn):
        turn.reader = turn.reader._replace(coordinator=replace(turn.reader.coordinator, problem=problem))
        commits.fail(turn, problem, retriable=retriable)
        if turn.client is Client.CONSUMER:
            committed.fail(turn, problem)
        return
    commits.fail(turn, problem, retriable=retriable)
    waiting = turn.reader.waiting
    # a close ends its search here, and runs no callbacks
    if not retriable and waiting is not None and waiting.seeks:
        turn.reader = turn.reader._replace(waiting=replace(waiting, seeks=False, commit=None))
    if not retriable and (turn.client is not Client.CLASSIC or turn.reader.mode.automatic):
        committed.fail(turn, problem)


def _waits_to_be_thrown(turn: Turn) -> bool:
    """Return whether a fatal failure is kept for a later call to throw. In the classic consumer without membership, the
    next call that needs the coordinator throws it, even if another call started the look-up. In the new consumer the
    next poll throws it. A synchronous commit gets it from ``commits``."""
    if turn.client is Client.CONSUMER:
        return not turn.reader.mode.automatic
    waiting = turn.reader.waiting
    if waiting is not None and waiting.seeks:
        own = any(each.number == waiting.commit for each in turn.reader.commits)
        return waiting.kind is CallKind.COMMIT_SYNC or not own  # the commit of a close has no one to report to
    asks = waiting is None or waiting.kind in (CallKind.COMMITTED, CallKind.POSITION)
    return asks and turn.client is Client.CLASSIC and not turn.reader.mode.automatic


def lost(turn: Turn, *, disconnected: bool) -> None:
    """Forget the coordinator, which fails every request to it (K-ERR-13). If the node has only said that it is not the
    coordinator, the new consumer keeps the connection until that is lost too."""
    before = turn.reader.coordinator
    if before.node is not None:
        turn.reader = turn.reader._replace(coordinator=Coordinator(retry_at=before.retry_at, problem=before.problem))
    elif not disconnected:
        return
    if not disconnected and turn.client is Client.CONSUMER:
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
