"""Finding and losing the coordinator, for offsets (K-FIND-01, K-OFF-11)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import Disconnect
from fencepost.member.lookup import RETRIABLE
from fencepost.protocol.errors import ErrorCode

from . import commits, committed
from .events import Problem, ProblemKind
from .settings import Client
from .state import CallKind, Coordinator, SentCommit, SentLookup
from .turn import Turn


def found(turn: Turn, node: int) -> None:
    """What waited for the coordinator goes out at the end of the step. The new consumer keeps a back-off before the
    next look-up all the same (K-FIND-01)."""
    retry_at = turn.now + turn.backoff(0) if turn.client is Client.CONSUMER else None
    problem = turn.reader.coordinator.problem if turn.client is Client.CONSUMER else None
    turn.reader = turn.reader._replace(coordinator=Coordinator(node, retry_at=retry_at, problem=problem))


def keep(turn: Turn) -> None:
    """The new consumer's background looks for a coordinator that is unknown, whether anything waits for it or not, and
    until a close has committed (N-CLOSE-01)."""
    if turn.client is Client.CONSUMER and turn.reader.settings.group_id and not turn.reader.parting:
        turn.coordinator_known()


def failed(turn: Turn, error: ErrorCode | None) -> None:
    """Another look-up follows after a back-off; what is no passing failure fails whoever waits for it."""
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
    if not retriable and waiting is not None and waiting.seeks:  # a close ends there, and calls back of nothing
        turn.reader = turn.reader._replace(waiting=replace(waiting, seeks=False, commit=None))
    if not retriable and (turn.client is not Client.CLASSIC or turn.reader.mode.automatic):
        committed.fail(turn, problem)


def _waits_to_be_thrown(turn: Turn) -> bool:
    """To the old consumer without membership a failure for good is thrown by the call that needs the coordinator next,
    be it another one than what looked for it; to the new one by the next poll. A synchronous commit has it from
    ``commits``."""
    if turn.client is Client.CONSUMER:
        return not turn.reader.mode.automatic
    waiting = turn.reader.waiting
    if waiting is not None and waiting.seeks:
        own = any(each.number == waiting.commit for each in turn.reader.commits)
        return waiting.kind is CallKind.COMMIT_SYNC or not own  # nobody misses the commit of a close
    asks = waiting is None or waiting.kind in (CallKind.COMMITTED, CallKind.POSITION)
    return asks and turn.client is Client.CLASSIC and not turn.reader.mode.automatic


def lost(turn: Turn, *, disconnected: bool) -> None:
    """It is unknown from now on, and what was sent to it has failed (K-ERR-13); the new consumer keeps the connection
    to a broker that only says that it is none, until that is lost too."""
    before = turn.reader.coordinator
    if before.node is not None:
        turn.reader = turn.reader._replace(coordinator=Coordinator(retry_at=before.retry_at, problem=before.problem))
    elif not disconnected:
        return
    if not disconnected and turn.client is Client.CONSUMER:
        return  # what it has sent may still be answered
    if not disconnected:
        turn.emit(Disconnect())
    for request_id, sent in tuple(turn.reader.sent.items()):
        if isinstance(sent, SentCommit):
            turn.landed(request_id)
            commits.answered(turn, request_id, sent, None)
        elif isinstance(sent, SentLookup):
            turn.landed(request_id)
            committed.answered(turn, request_id, sent, None)
