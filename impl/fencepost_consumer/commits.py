"""Commits: when the reader sends them, how it handles responses, and callbacks of asynchronous commits (8.6, 8.11)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import CommitFinished, CommitRefused, CommitResult
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import varies
from fencepost_consumer.events import CommitCallback, Offsets, PassToMember, Problem, ProblemKind
from fencepost_consumer.membership import Phase
from fencepost_consumer.state import Cause, Commit, Mode, Outcome, SentCommit
from fencepost_consumer.turn import Turn, ids_of
from fencepost_consumer.working_copy import Thrown

_E = ErrorCode
_K = ProblemKind
#: Errors after which the coordinator must be looked up (K-OFF-11).
_FORGET = frozenset({_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR, _E.REQUEST_TIMED_OUT})
_THROWN = frozenset(
    {_E.OFFSET_METADATA_TOO_LARGE, _E.INVALID_COMMIT_OFFSET_SIZE, _E.GROUP_AUTHORIZATION_FAILED}
)  # K-OFF-15
_RETRIABLE = frozenset({_E.COORDINATOR_LOAD_IN_PROGRESS, _E.UNKNOWN_TOPIC_OR_PARTITION})  # K-OFF-10
_QUEUED = (Cause.ASYNC, Cause.INTERVAL)
_AUTOMATIC = (Cause.INTERVAL, Cause.MEMBER)
_NOT_SENT = Outcome(Problem(_K.API, _E.COORDINATOR_NOT_AVAILABLE), retriable=True)


# --- starting ---


def start(
    turn: Turn,
    cause: Cause,
    offsets: Offsets,
    label: int | None = None,
    *,
    closing: bool = False,
    deadline_ms: int | None = None,
) -> int:
    """Start a commit; send it now if possible. Return its number. Without offsets it ends immediately (K-OFF-21)."""
    commit = Commit(turn.reader.next_commit, cause, offsets, label, closing, deadline_ms)
    turn.reader = turn.reader._replace(commits=(*turn.reader.commits, commit), next_commit=turn.reader.next_commit + 1)
    if cause is Cause.ASYNC:
        turn.reader = turn.reader._replace(last_async=commit.number)
    if turn.one_automatic_commit and cause in _AUTOMATIC:
        turn.reader = turn.reader._replace(committing=True)
    _attempt(turn, commit)
    return commit.number


def maybe_auto_commit(turn: Turn) -> None:
    """If the interval has passed, commit the positions of returned records (K-OFF-04), and none beyond (INV-CL-04)."""
    settings, due = turn.reader.settings, turn.reader.commit_due_ms
    if not settings.auto_commit or due is None or turn.now < due:
        return
    if turn.reader.committing:
        return
    restart_interval(turn)
    if not turn.in_background:
        run_callbacks(turn)
        if turn.reader.consumed:
            turn.throw_failed_lookup()
    start(turn, Cause.INTERVAL, turn.reader.consumed)  # K-OFF-04


def restart_interval(turn: Turn) -> None:
    """Set the next automatic commit to one interval from now (K-CB-05, N-REC-08)."""
    if turn.reader.settings.auto_commit:
        turn.reader = turn.reader._replace(commit_due_ms=turn.now + turn.reader.settings.auto_commit_interval_ms)


def wanted(turn: Turn, commit_id: int, partitions: frozenset[TopicPartition], *, closing: bool) -> None:
    """Commit positions for the member, before it gives up partitions (K-CB-01, N-REC-04, K-LEAVE-04). The classic
    consumer closes with a synchronous commit, which first runs due callbacks (K-OFF-18). Without membership the reader
    commits itself (``calls.close``)."""
    if not turn.reader.mode.automatic:
        turn.emit(PassToMember(CommitFinished(turn.now, commit_id=commit_id, result=CommitResult.DONE)))
        return
    if closing and not turn.in_background:
        if turn.reader.fenced:  # K-OFF-20
            turn.emit(PassToMember(CommitFinished(turn.now, commit_id=commit_id, result=CommitResult.FAILED)))
            return
        run_callbacks(turn, throw=False)
    offsets = tuple((each, offset) for each, offset in turn.reader.consumed if each in partitions)
    deadline = turn.now + turn.reader.settings.max_poll_interval_ms
    until = deadline if turn.retries_member_commits and not closing else None
    start(turn, Cause.MEMBER, offsets, commit_id, closing=closing, deadline_ms=until)


def advance_commits(turn: Turn) -> None:
    """Send commits that waited for the coordinator or a back-off, and report ended ones to the member."""
    waiting = turn.reader.waiting
    for commit in turn.reader.commits:
        late = waiting is not None and waiting.commit == commit.number and turn.now >= waiting.deadline_ms
        if commit.outcome is None and commit.request_id is None and not late:
            if commit.deadline_ms is not None and turn.now >= commit.deadline_ms:
                _finish(turn, commit, Outcome(Problem(_K.TIMEOUT)))
            else:
                _attempt(turn, commit)
    for commit in turn.reader.commits:
        if commit.cause is Cause.MEMBER and commit.outcome is not None and not _others_first(turn, commit):
            if commit.closing:
                run_callbacks(turn, throw=False)
            _report_to_member(turn, commit, commit.outcome)


def _others_first(turn: Turn, commit: Commit) -> bool:
    """Return whether the commit of a close still waits for asynchronous ones (K-LEAVE-04, K-OFF-21). In the classic
    consumer it waits for unsent ones. Without offsets it waits for all, also for the one before a rejoin."""
    if not commit.closing:
        return False
    if turn.in_background or not commit.offsets:
        return open_async(turn) or flying_async(turn)
    return unsent_async(turn)


def _attempt(turn: Turn, commit: Commit) -> None:
    if not commit.offsets:
        _finish(turn, commit, Outcome())
        return
    if commit.retry_at is not None and turn.now < commit.retry_at:
        return
    if not turn.coordinator_known(at_once=commit.cause in _QUEUED and not turn.commits_wait_for_coordinator):
        if commit.cause is Cause.MEMBER and not turn.commits_wait_for_coordinator:
            _finish(turn, commit, _NOT_SENT)
        return
    phase = turn.reader.membership.phase
    if not turn.kip_848 and turn.reader.mode.automatic and phase is not Phase.STABLE:  # K-OFF-02
        kind = _K.COMMIT_FAILED if phase is Phase.OUT else _K.REBALANCE
        _finish(turn, commit, Outcome(Problem(kind)))
        return
    _send(turn, commit)


def _send(turn: Turn, commit: Commit) -> None:
    """Send the commit, with the member's identity if there is a member (K-OFF-02, K-OFF-03, N-CMT-01)."""
    member = turn.kip_848 or turn.reader.mode.automatic
    member_id, epoch = turn.reader.membership.identity if member else ("", -1)
    names = ids_of(turn, (each for each, _ in commit.offsets))
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for partition, offset in commit.offsets:
        entry = OffsetCommitRequestPartition(
            partition.partition,
            committed_offset=offset.offset,
            committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
            committed_metadata=offset.metadata,
        )
        topics.setdefault(partition.topic, []).append(entry)
    body = OffsetCommitRequest(
        turn.reader.settings.group_id,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        group_instance_id=turn.reader.settings.group_instance_id if member else None,
        topics=tuple(
            OffsetCommitRequestTopic(topic_id=turn.reader.topic_ids[name], partitions=tuple(entries))
            if names
            else OffsetCommitRequestTopic(name=name, partitions=tuple(entries))
            for name, entries in topics.items()
        ),
    )
    request_id = turn.send(body, SentCommit(commit.number, (member_id, epoch)))
    _put(turn, replace(commit, request_id=request_id, retry_at=None, identity=(member_id, epoch)))


# --- responses ---


def answered(turn: Turn, request_id: int, sent: SentCommit, body: OffsetCommitResponse | None) -> bool:
    """Handle the response to a commit. Return true if the node is not the coordinator, even if the commit was given up.
    ``body`` None: no response arrived."""
    commit = next((each for each in turn.reader.commits if each.number == sent.number), None)
    if commit is not None and commit.request_id == request_id:
        if body is None:
            _finish(turn, commit, Outcome(Problem(_K.API, _E.NETWORK_EXCEPTION), retriable=True))
        else:
            _finish(turn, commit, _read(turn, commit, body))
    elif body is not None and not turn.kip_848:
        _classic_problem(turn, sent.identity, _deciding(body))  # the commit was given up, but the member must know
    return body is not None and _deciding(body) in _FORGET


def _deciding(body: OffsetCommitResponse) -> ErrorCode:
    """Return the first error; a denied topic counts only without other errors (K-OFF-17)."""
    errors = [each.error_code for topic in body.topics for each in topic.partitions if each.error_code is not _E.NONE]
    others = [each for each in errors if each is not _E.TOPIC_AUTHORIZATION_FAILED]  # K-OFF-17
    return next(iter(others or errors), _E.NONE)


def _read(turn: Turn, commit: Commit, body: OffsetCommitResponse) -> Outcome:
    error = _deciding(body)
    if error in (_E.NONE, _E.TOPIC_AUTHORIZATION_FAILED):
        return Outcome(None if error is _E.NONE else Problem(_K.API, error))
    return _outcome(turn, commit, error)


def _outcome(turn: Turn, commit: Commit, error: ErrorCode) -> Outcome:
    """Return the outcome for an error. Some are retriable (K-OFF-10), some with another coordinator (K-OFF-11). Some
    are thrown as they are (K-OFF-15), the rest as unexpected errors (K-OFF-16)."""
    plain = Problem(_K.API, error)
    if (
        error in _FORGET  # K-OFF-11
        or error in _RETRIABLE  # K-OFF-10
    ):
        return Outcome(plain, retriable=True)
    if error in _THROWN:
        return Outcome(plain)  # K-OFF-15
    if not turn.kip_848:
        return Outcome(_classic_problem(turn, commit.identity, error))
    match error:  # N-CMT-02, N-CMT-03, N-CMT-06
        case ErrorCode.UNKNOWN_TOPIC_ID:
            return Outcome(plain, retriable=turn.rules.unknown_topic_id_is_retried)
        case ErrorCode.STALE_MEMBER_EPOCH:
            return Outcome(plain, stale=True)  # N-CMT-02
        case ErrorCode.UNKNOWN_MEMBER_ID:
            return Outcome(Problem(_K.COMMIT_FAILED, error))  # N-CMT-03
    return Outcome(Problem(_K.KAFKA, error))


def _classic_problem(turn: Turn, identity: tuple[str, int], error: ErrorCode) -> Problem:
    """Return the problem for an error about membership; it depends on changes of the member since (K-OFF-12…14,
    K-OFF-16)."""
    membership = turn.reader.membership
    changed, preparing = identity != membership.identity, membership.phase is Phase.PREPARING
    match error:
        case ErrorCode.FENCED_INSTANCE_ID:
            if not changed:
                return Problem(_K.FENCED_INSTANCE, error)  # K-OFF-14
            return Problem(_K.REBALANCE if preparing else _K.COMMIT_FAILED, error)
        case ErrorCode.REBALANCE_IN_PROGRESS:
            _report_refused(turn, error)
            return Problem(_K.REBALANCE, error)  # K-OFF-12
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
            if changed and preparing:
                return Problem(_K.REBALANCE, error)
            _report_refused(turn, error)
            return Problem(_K.COMMIT_FAILED, error)  # K-OFF-13
    return Problem(_K.KAFKA, error)


def _report_refused(turn: Turn, error: ErrorCode) -> None:
    """Report the error to the member. Even after an unsubscribe, the next join has it as its reason (K-ERR-17)."""
    if turn.reader.mode is not Mode.MANUAL:
        turn.emit(PassToMember(CommitRefused(turn.now, error)))


def fail(turn: Turn, problem: Problem, *, retriable: bool) -> None:
    """Fail commits because the coordinator was not found. While the error is retriable, those that may wait for the
    coordinator keep looking."""
    for commit in turn.reader.commits:
        if commit.outcome is not None or commit.request_id is not None:
            continue
        queued = commit.cause in _QUEUED and not turn.commits_wait_for_coordinator
        if not retriable or queued:
            _finish(turn, commit, Outcome(problem, retriable or queued, unfound=True))


def _finish(turn: Turn, commit: Commit, outcome: Outcome) -> None:
    """End a commit, or schedule a retry. Only commits with a waiting call are retried (K-OFF-18, N-CMT-06), and only
    after retriable errors (K-OFF-22)."""
    if commit.cause in _AUTOMATIC:
        turn.reader = turn.reader._replace(committing=False)
    if _comes_again(turn, commit, outcome):
        delay = turn.backoff(commit.attempts)
        again = replace(commit, offsets=turn.reader.consumed, request_id=None, attempts=commit.attempts + 1)
        _put(turn, replace(again, retry_at=turn.now + delay))
        return
    if commit.cause in (Cause.SYNC, Cause.CLOSE):
        if outcome.retriable:
            delay = turn.backoff(commit.attempts)
            again = replace(commit, request_id=None, attempts=commit.attempts + 1, retry_at=turn.now + delay)
            _put(turn, again)  # K-OFF-18
            return
        if outcome.stale:  # N-CMT-02
            outcome = Outcome(Problem(_K.COMMIT_FAILED, _E.STALE_MEMBER_EPOCH))
    elif commit.cause is Cause.ASYNC and outcome.retriable and outcome.problem is not None:  # N-CMT-06
        outcome = Outcome(replace(outcome.problem, kind=_K.RETRIABLE_COMMIT))
    elif commit.cause is Cause.INTERVAL and turn.one_automatic_commit:
        _drop(turn, commit)
        return
    problem = outcome.problem
    asynchronous = commit.cause in _QUEUED or (commit.cause is Cause.MEMBER and not commit.closing)
    if asynchronous and problem is not None and problem.kind is _K.FENCED_INSTANCE:
        turn.reader = turn.reader._replace(fenced=True)  # K-OFF-20
    turn.reader = turn.reader._replace(outcomes=turn.reader.outcomes + 1)
    _put(turn, replace(commit, request_id=None, outcome=outcome, ended=turn.reader.outcomes))


def _comes_again(turn: Turn, commit: Commit, outcome: Outcome) -> bool:
    """Return whether a commit before a reconciliation is retried, with the then consumed positions. It is, until the
    reconciliation's deadline, even if that has ended (N-REC-04, N-CMT-02)."""
    if commit.deadline_ms is None or turn.now >= commit.deadline_ms or outcome.problem is None:
        return False
    unknown = outcome.problem.error in (_E.UNKNOWN_TOPIC_OR_PARTITION, _E.UNKNOWN_TOPIC_ID)
    return not unknown and (outcome.retriable or (outcome.stale and turn.reader.membership.epoch > 0))


def _interval_over(turn: Turn, outcome: Outcome) -> None:
    """After a retriable error, shorten the wait for the next automatic commit (K-OFF-19)."""
    if outcome.retriable:
        turn.reader = turn.reader._replace(commit_due_ms=turn.now + turn.reader.settings.retry_backoff_ms)  # K-OFF-19


# --- reporting ---


def open_async(turn: Turn) -> bool:
    """Return whether asynchronous or interval commits have no outcome."""
    return any(each.cause in _QUEUED and each.outcome is None for each in turn.reader.commits)


def unsent_async(turn: Turn) -> bool:
    """Return whether such commits wait for a coordinator."""
    unsent = [each for each in turn.reader.commits if each.outcome is None and each.request_id is None]
    return any(each.cause in _QUEUED for each in unsent)


def set_reported_attempts(turn: Turn, commit: Commit, attempts: int) -> None:
    """Record that callbacks have run for this commit after so many attempts."""
    _put(turn, replace(commit, reported_attempts=attempts))


def last_async(turn: Turn) -> bool:
    """Return whether the application's last asynchronous commit has not ended. The new consumer waits for it before it
    checks a synchronous commit; then it runs callbacks."""
    return any(each.number == turn.reader.last_async and each.outcome is None for each in turn.reader.commits)


def flying_async(turn: Turn) -> bool:
    """Return whether such a commit is in flight; for the classic consumer also one before a rejoin."""
    causes = _QUEUED if turn.in_background else (*_QUEUED, Cause.MEMBER)
    return any(
        each.cause in causes and each.request_id is not None and not each.closing for each in turn.reader.commits
    )


def run_callbacks(turn: Turn, *, throw: bool = True) -> None:
    """Run the callbacks of ended asynchronous commits, in call order (K-OFF-18). Once one of them was fenced, run none
    and always throw (K-OFF-20)."""
    if turn.reader.fenced:
        if throw:
            raise Thrown(Problem(_K.FENCED_INSTANCE, _E.FENCED_INSTANCE_ID))
        return
    _call_back(turn)


def _call_back(turn: Turn) -> None:
    for commit in turn.reader.commits:
        if commit.cause is Cause.INTERVAL and commit.outcome is not None:
            _drop(turn, commit)
            _interval_over(turn, commit.outcome)
    for commit in callbacks_due(turn):
        _drop(turn, commit)
        if commit.label is not None and commit.outcome is not None:
            turn.emit(CommitCallback(commit.label, commit.offsets, commit.outcome.problem))


@varies
def callbacks_due(turn: Turn) -> tuple[Commit, ...]:
    """Return the asynchronous commits that have ended, and all before which have ended too (K-OFF-18)."""
    due = []
    for commit in turn.reader.commits:
        if commit.cause is not Cause.ASYNC:
            continue
        if commit.outcome is None:
            break
        due.append(commit)
    return tuple(due)


@varies
def last_callbacks(turn: Turn) -> None:
    """Run the callbacks at the end of a close (K-LEAVE-04, N-CLOSE-01)."""
    _call_back(turn)


def give_up_unsent(turn: Turn) -> None:
    """At a close, fail unsent commits that wait for an unknown coordinator (N-CLOSE-01)."""
    waits = turn.commits_wait_for_coordinator and turn.reader.coordinator.node is None
    if waits and turn.rules.close_gives_up_unsent:
        for commit in turn.reader.commits:
            if commit.outcome is None and commit.request_id is None:
                _finish(turn, commit, Outcome(Problem(_K.COMMIT_FAILED)))


def send_at_once(turn: Turn) -> None:
    """Send commits that wait for a back-off now (N-CLOSE-01)."""
    for commit in turn.reader.commits:
        if commit.outcome is None and commit.request_id is None:
            _attempt(turn, replace(commit, retry_at=None))


def _report_to_member(turn: Turn, commit: Commit, outcome: Outcome) -> None:
    """Report the commit to the member, which then continues (K-CB-01, N-REC-04)."""
    assert commit.label is not None
    result = CommitResult.FAILED
    if outcome.problem is None:
        result = CommitResult.DONE
    elif outcome.retriable and not turn.retries_member_commits:
        result = CommitResult.RETRIABLE
    _drop(turn, commit)
    turn.emit(PassToMember(CommitFinished(turn.now, commit_id=commit.label, result=result)))


def give_up(turn: Turn, number: int) -> None:
    """Drop a commit that no call waits for any longer."""
    for commit in turn.reader.commits:
        if commit.number == number:
            _drop(turn, commit)


def _put(turn: Turn, commit: Commit) -> None:
    commits = tuple(commit if each.number == commit.number else each for each in turn.reader.commits)
    turn.reader = turn.reader._replace(commits=commits)


def _drop(turn: Turn, commit: Commit) -> None:
    commits = tuple(each for each in turn.reader.commits if each.number != commit.number)
    turn.reader = turn.reader._replace(commits=commits)
