"""Join prepare and join complete: what a member gives up before a join, and takes over after it (8.5).

Both call the listener, and resume when it returns. ``Member.waiting`` holds the remaining work.
"""

from __future__ import annotations

from enum import Enum

from . import leading
from .assignors.base import RebalanceProtocol
from .consumer_protocol import Assignment, SchemaError, decode_assignment
from .events import Call, Commit, CommitResult, Failure, FailureKind, MemberTimer
from .partitions import TopicPartition
from .state import CallStage, ClassicMemberState, Generation, PrepareCommit, WaitingCall
from .turn import Turn


class Progress(Enum):
    """How far join prepare or join complete has come."""

    OVER = "over"
    LISTENER = "the listener is called"
    LATER = "not finished; the next poll continues"
    THROWN = "the poll has thrown"


# --- join prepare ---


def prepare(turn: Turn) -> Progress:
    """Prepare a rejoin: commit if configured, then revoke the partitions that the rebalance protocol requires
    (K-CB-01…04)."""
    if not _commit_over(turn):
        return Progress.LATER
    member = turn.member
    turn.member = turn.member._replace(needs_prepare=False)  # K-CB-09: not repeated, even if the listener throws
    owned = member.subscription.owned
    waiting = WaitingCall(CallStage.PREPARE)
    if member.generation.generation_id == -1 or not member.generation.member_id:
        if owned:  # K-CB-02
            turn.call(Call.LOST, owned, waiting)
            return Progress.LISTENER
    elif member.settings.protocol is RebalanceProtocol.EAGER:  # K-CB-03
        turn.call(Call.REVOKED, owned, waiting)
        return Progress.LISTENER
    else:
        dropped = frozenset(each for each in owned if each.topic not in member.subscription.topics)
        if dropped:  # K-CB-04
            turn.call(Call.REVOKED, dropped, WaitingCall(CallStage.PREPARE, keep=owned - dropped))
            return Progress.LISTENER
        waiting = WaitingCall(CallStage.PREPARE, keep=owned)
    return prepared(turn, waiting, None)


def prepared(turn: Turn, waiting: WaitingCall, error: str | None) -> Progress:
    """Finish join prepare: the listener returned, or there was no need to call it."""
    subscription = turn.member.subscription.assign(waiting.keep).watch_own()
    turn.member = turn.member._replace(
        subscription=subscription,
        is_leader=False,
        waiting=None,
        prepare_deadline_ms=None,
        prepare_commit=PrepareCommit.NONE,
        prepare_commit_id=None,
    )
    if error is None:
        return Progress.OVER
    turn.returns(Failure(FailureKind.LISTENER, text=error))  # K-CB-09
    return Progress.THROWN


def _commit_over(turn: Turn) -> bool:
    """Return whether the commit before a rejoin has ended. Start it if needed; it may take several polls (K-CB-01)."""
    member = turn.member
    if member.prepare_commit is PrepareCommit.OVER:
        return True
    if member.prepare_deadline_ms is not None and turn.now >= member.prepare_deadline_ms:
        return True
    if member.prepare_commit is PrepareCommit.OPEN:
        return False
    owned = member.subscription.owned
    if not member.settings.auto_commit or not owned:
        return True
    if member.settings.protocol is RebalanceProtocol.EAGER:
        turn.member = turn.member._replace(subscription=member.subscription.mark_all())
    if member.state is not ClassicMemberState.STABLE:
        return True  # the commit would fail without a request, with an error that is not retriable (K-OFF-02)
    if member.prepare_deadline_ms is None:
        turn.member = turn.member._replace(prepare_deadline_ms=turn.now + member.settings.max_poll_interval_ms)
    commit_id = member.next_request_id
    turn.member = turn.member._replace(
        prepare_commit=PrepareCommit.OPEN, prepare_commit_id=commit_id, next_request_id=commit_id + 1
    )  # K-CB-01
    turn.emit(Commit(commit_id, owned))
    return False


def commit_finished(turn: Turn, commit_id: int, result: CommitResult) -> None:
    """Handle the end of the commit. After a retriable failure and a back-off, commit again, with the positions of that
    time (K-CB-01)."""
    if commit_id != turn.member.prepare_commit_id:
        return
    retry = result is CommitResult.RETRIABLE
    turn.member = turn.member._replace(
        prepare_commit=PrepareCommit.NONE if retry else PrepareCommit.OVER, prepare_commit_id=None
    )
    if retry and not turn.member.closed:  # a closed member does not join again, so it does not retry
        turn.set_deadline(MemberTimer.RETRY, turn.member.settings.retry_backoff_ms)


# --- join complete ---


def complete(turn: Turn, data: bytes) -> Progress:
    """Complete a successful join: take over the new assignment and call the listener (K-CB-05, K-CB-06; order:
    K-CB-13). The join has ended if this returns ``OVER``."""
    if not turn.member.is_leader:
        # K-JOIN-02: a member that was leader watches the metadata until here
        turn.member = turn.member._replace(assignment_snapshot=None)
    member = turn.member
    if leading.by_name(member.assignors, member.generation.protocol_name) is None:
        return _unusable(turn, f"the coordinator selected the unknown protocol {member.generation.protocol_name!r}")
    if len(data) < 2:
        return _unusable(turn, f"assignment too short: {len(data)} bytes, expected at least 2")  # K-JOIN-14
    try:
        assignment = decode_assignment(data)
    except SchemaError as reason:
        return _unusable(turn, str(reason))
    if not all(member.subscription.accepts(partition.topic) for partition in assignment.partitions):
        turn.request_rejoin("received assignment does not match the current subscription")  # K-CB-08
        return Progress.OVER
    revoked = member.subscription.owned - _partitions(assignment)
    if revoked and member.settings.protocol is RebalanceProtocol.COOPERATIVE:
        waiting = WaitingCall(CallStage.COMPLETE_REVOKED, assignment=assignment, generation=member.generation)
        turn.call(Call.REVOKED, revoked, waiting)  # K-CB-06
        return Progress.LISTENER
    return _adopt(turn, assignment, member.generation, None)


def revoked(turn: Turn, waiting: WaitingCall, error: str | None) -> Progress:
    """Request a rejoin after the listener gave up partitions, so that other members can get them (K-CB-06).

    The member does not commit the positions of those partitions here (K-CB-12)."""
    assert waiting.assignment is not None
    turn.request_rejoin("need to revoke partitions and re-join")  # K-JOIN-04
    failure = None if error is None else Failure(FailureKind.LISTENER, text=error)
    return _adopt(turn, waiting.assignment, waiting.generation, failure)


def _adopt(turn: Turn, assignment: Assignment, generation: Generation, failure: Failure | None) -> Progress:
    member = turn.member
    subscription = member.subscription
    topics = frozenset(partition.topic for partition in assignment.partitions)
    joined = member.joined_topics or frozenset()
    if subscription.pattern is not None and not topics <= joined:  # K-JOIN-16
        subscription = subscription.adopt(topics - joined)
        turn.member = turn.member._replace(joined_topics=joined | topics)
    assignor = leading.by_name(member.assignors, generation.protocol_name)
    assert assignor is not None
    try:
        leading.remember(turn, assignor, assignor.on_assignment(assignment, generation.generation_id))
    except Exception as reason:  # a plug-in may raise anything; the join completes anyway (K-CB-09)
        failure = failure or Failure(FailureKind.ASSIGNOR, text=str(reason))
    added = _partitions(assignment) - subscription.owned
    turn.member = turn.member._replace(subscription=subscription.assign(assignment.partitions))  # K-CB-05
    waiting = WaitingCall(CallStage.COMPLETE_ASSIGNED, assignment=assignment, failure=failure)
    turn.call(Call.ASSIGNED, added, waiting)
    return Progress.LISTENER


def assigned(turn: Turn, waiting: WaitingCall, error: str | None) -> Progress:
    """Finish join complete after the listener. The first failure of this join complete is thrown (K-CB-09)."""
    turn.member = turn.member._replace(waiting=None)
    failure = waiting.failure or (None if error is None else Failure(FailureKind.LISTENER, text=error))
    if failure is None:
        return Progress.OVER
    turn.returns(failure)
    return Progress.THROWN


def _partitions(assignment: Assignment) -> frozenset[TopicPartition]:
    return frozenset(assignment.partitions)


def _unusable(turn: Turn, text: str) -> Progress:
    turn.returns(Failure(FailureKind.ASSIGNMENT, text=text))
    return Progress.THROWN
