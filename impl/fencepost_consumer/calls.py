"""The application's calls: one pass of a poll, commits, and calls that wait (8.8, 8.12)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import PollPart
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer import background, commits, committed, fetching, handing, positions
from fencepost_consumer.events import (
    CallReturned,
    CommitAsync,
    CommitSync,
    Offsets,
    PollReturned,
    Problem,
    ProblemKind,
    Refused,
)
from fencepost_consumer.settings import Client
from fencepost_consumer.state import CallKind, Cause, Mode, Purpose, Reader, SentCommit, SentLookup, Waiting
from fencepost_consumer.subscribing import assigned
from fencepost_consumer.turn import Thrown, Turn


def poll(turn: Turn, part: PollPart) -> None:
    """Run the reader's part of one pass, after the member's. For the new consumer in a group it has several parts.
    Raises ``Refused`` without subscription or assignment."""
    if turn.reader.mode is Mode.NONE:
        raise Refused(
            "the consumer has no subscription and no assignment; call subscribe or assign first",
            "IllegalStateException",
        )
    if part in (PollPart.WHOLE, PollPart.BEGIN):
        turn.wake()
    match turn.client:
        case Client.CLASSIC:
            _classic_turn(turn)
        case Client.CONSUMER:
            background.poll(turn, part)
            if part not in (PollPart.WHOLE, PollPart.END):
                return
        case Client.KAFKA_PYTHON:
            if turn.reader.mode.automatic and not turn.reader.membership.settled:
                turn.emit(PollReturned())  # K-PY-01: nothing else happens during a rebalance
                return
            _classic_turn(turn)
    records, advanced = handing.collect(turn)
    if turn.client is not Client.CONSUMER:
        fetching.send_fetches(turn)  # K-POLL-04: even if there are records
    elif records or advanced:
        background.want_fetches(turn)
    background.send_fetches(turn)
    turn.emit(PollReturned(records, advanced))


def poll_by(reader: Reader) -> int | None:
    """Return when a poll has work even if no event arrives: an automatic commit, the end of a back-off of a look-up or
    reset, or of a broker (K-POLL-01). Return None if nothing of the kind is due."""
    times = [reader.commit_due_ms if reader.settings.auto_commit else None]
    times += [state.retry_at for state in reader.partitions.values() if state.valid is None]
    times += [lookup.retry_at for lookup in reader.lookups.values()]
    if reader.initializing and reader.settings.group_id:
        times.append(reader.coordinator.retry_at)
    leaders = {state.valid.leader.node for state in reader.partitions.values() if state.valid is not None}
    times += [until for node, until in reader.unavailable.items() if node in leaders]
    return min((at for at in times if at is not None), default=None)


def _classic_turn(turn: Turn) -> None:
    """Run steps 2, 6 and 7 (K-POLL-01). During a rebalance, position look-ups wait, but records are returned
    (K-POLL-05)."""
    commits.run_callbacks(turn)
    if turn.reader.mode.automatic and not turn.reader.membership.settled:
        return
    commits.maybe_auto_commit(turn)
    positions.update(turn)


# --- commits ---


def _offsets(turn: Turn, named: Offsets | None) -> Offsets:
    """Return the offsets to commit: the given ones, else all valid positions (K-OFF-05). Throw if there is no group."""
    if not turn.reader.settings.group_id:
        raise Thrown(Problem(ProblemKind.INVALID_GROUP))
    offsets = turn.reader.consumed if named is None else named
    negative = [each for each, offset in offsets if offset.offset < 0]
    if negative:  # K-OFF-21
        raise Refused(f"offset of {negative[0].topic}-{negative[0].partition} must be >= 0", "IllegalArgumentException")
    for each, offset in offsets:  # K-POS-08
        turn.saw_epoch(each, offset.leader_epoch)
    return offsets


def commit_async(turn: Turn, event: CommitAsync) -> None:
    """Commit without waiting. A later poll or synchronous commit runs the callback with the result (K-OFF-18)."""
    offsets = _offsets(turn, event.offsets)
    commits.run_callbacks(turn)
    if offsets and turn.client is Client.CLASSIC:
        turn.check_coordinator()
    commits.start(turn, Cause.ASYNC, offsets, event.callback)
    turn.emit(CallReturned())


def commit_sync(turn: Turn, event: CommitSync) -> None:
    """Commit and wait for the response, with retries after retriable errors (K-OFF-18)."""
    offsets = _offsets(turn, event.offsets)
    commits.run_callbacks(turn)
    if offsets and turn.client is Client.CLASSIC:
        turn.check_coordinator(waits=True)
    number = commits.start(turn, Cause.SYNC, offsets)
    if not offsets and turn.client is not Client.CONSUMER and not commits.flying_async(turn):
        commits.give_up(turn, number)
        turn.emit(CallReturned())  # it does not wait, so a wakeup does not end it
        return
    _wait(turn, CallKind.COMMIT_SYNC, event.timeout_ms, commit=number)


# --- questions ---


def ask_committed(turn: Turn, partitions: tuple[TopicPartition, ...], timeout_ms: int | None) -> None:
    """Look up committed offsets and wait for them."""
    _offsets(turn, ())
    if not partitions:
        turn.emit(CallReturned(()))
        return
    if turn.client is Client.CLASSIC:
        committed.drop_other(turn, partitions)
        turn.check_coordinator(waits=True)
        turn.coordinator_known()  # it needs the coordinator, even if the offsets were found
    _wait(turn, CallKind.COMMITTED, timeout_ms)
    assert turn.reader.waiting is not None
    committed.begin(turn, Purpose.CALL, partitions, turn.reader.waiting.deadline_ms)


def ask_position(turn: Turn, partition: TopicPartition, timeout_ms: int | None) -> None:
    """Wait until there is a position; look for it as a poll does. Raises ``Refused`` unless it is assigned."""
    assigned(turn, partition)
    offset = turn.reader.position(partition)
    over = None if offset is None else CallReturned(offset)  # returned without a wait, so a wakeup does not end it
    if over is None and turn.client is not Client.CONSUMER:
        over = _position(turn, partition)
    if over is not None:
        turn.emit(over)
        return
    _wait(turn, CallKind.POSITION, timeout_ms, partition=partition)


# --- waiting ---


def close(turn: Turn, timeout_ms: int) -> None:
    """Close the reader, after the member. Without membership it commits here (K-LEAVE-04). It waits for asynchronous
    commits in flight (N-CLOSE-01)."""
    turn.reader = turn.reader._replace(closed=True)
    if turn.reader.close_by_ms is not None:  # it has committed already
        _wait(turn, CallKind.CLOSE, max(0, turn.reader.close_by_ms - turn.now))
        return
    number = None
    if turn.reader.settings.auto_commit and not turn.reader.mode.automatic and not turn.reader.fenced:
        commits.run_callbacks(turn, throw=False)
        if turn.client is not Client.CLASSIC or turn.reader.coordinator.problem is None:  # else the commit has failed
            number = commits.start(turn, Cause.CLOSE, turn.reader.consumed)
    if number is None or turn.client is not Client.CONSUMER:  # else the commit keeps looking for a coordinator
        commits.give_up_unsent(turn)
    _wait(turn, CallKind.CLOSE, timeout_ms, commit=number)


def commit_on_close(turn: Turn, timeout_ms: int) -> None:
    """Commit all consumed positions synchronously, before the member of the new consumer leaves (N-CLOSE-01)."""
    turn.reader = turn.reader._replace(close_by_ms=turn.now + timeout_ms)
    number = None
    if turn.reader.settings.auto_commit and turn.reader.settings.group_id and not turn.reader.fenced:
        commits.run_callbacks(turn, throw=False)
        number = commits.start(turn, Cause.CLOSE, turn.reader.consumed)
    _wait(turn, CallKind.CLOSE_COMMIT, timeout_ms, commit=number)


def _wait(
    turn: Turn,
    kind: CallKind,
    timeout_ms: int | None,
    *,
    commit: int | None = None,
    partition: TopicPartition | None = None,
) -> None:
    timeout = turn.reader.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
    if turn.client is Client.CLASSIC:  # each of its calls counts failed look-ups from 0 (K-FIND-01)
        turn.reader = turn.reader._replace(coordinator=replace(turn.reader.coordinator, failed_attempts=0))
    turn.reader = turn.reader._replace(waiting=Waiting(kind, turn.now + timeout, commit, partition))


def go_on(turn: Turn) -> None:
    """At the end of a step, let the waiting call return if it can."""
    waiting = turn.reader.waiting
    if waiting is None:
        return
    searches = waiting.kind is CallKind.POSITION and turn.client is Client.CONSUMER
    closes = waiting.kind in (CallKind.CLOSE, CallKind.CLOSE_COMMIT)
    try:
        if not closes and not searches:
            turn.wake()
        over = _over(turn, waiting)
        if over is None and turn.now >= waiting.deadline_ms:
            raise Thrown(Problem(ProblemKind.TIMEOUT))
    except Thrown as thrown:
        over = CallReturned(problem=None if closes else thrown.problem)
    if over is None:
        known = turn.reader.coordinator.node is not None
        looked = waiting.looked or known
        seeks = _seeks(turn, waiting)
        waiting = turn.reader.waiting or waiting
        turn.reader = turn.reader._replace(waiting=replace(waiting, looked=looked, seeks=seeks))
        return
    if waiting.kind is CallKind.COMMITTED:
        committed.give_up(turn)
    if waiting.commit is not None:
        commits.give_up(turn, waiting.commit)
    if waiting.kind is CallKind.CLOSE:
        turn.reader = turn.reader._replace(commits=(), sent={}, lookups={}, buffer=(), partitions={})
    turn.reader = turn.reader._replace(waiting=None)
    turn.emit(over)


def _over(turn: Turn, waiting: Waiting) -> CallReturned | None:
    in_time, known = turn.now < waiting.deadline_ms, turn.reader.coordinator.node is not None
    match waiting.kind:
        case CallKind.COMMIT_SYNC:
            return _commit_over(turn, waiting)
        case CallKind.COMMITTED:
            if turn.client is Client.CLASSIC:
                turn.check_coordinator()
                if not waiting.looked and not (turn.coordinator_known() if in_time else known):
                    return None  # even if the offsets were found
            if in_time:
                committed.go_on(turn, Purpose.CALL)
            lookup = committed.taken(turn, Purpose.CALL)
            if lookup is None:
                return None
            found = lookup.found or {}
            for each, offset in found.items():  # K-POS-08
                turn.saw_epoch(each, None if offset is None else offset.leader_epoch)
            value = tuple((each, found.get(each)) for each in lookup.partitions)
            return CallReturned(None if lookup.problem else value, lookup.problem)
        case CallKind.POSITION:
            assert waiting.partition is not None
            if turn.client is Client.CONSUMER:
                return background.position(turn, waiting, waiting.partition)
            if not in_time or committed.blocks(turn):
                return None
            return _position(turn, waiting.partition)
        case CallKind.CLOSE_COMMIT:
            return CallReturned() if _committed_on_close(turn, waiting) else None
        case CallKind.CLOSE:
            return _closed(turn, waiting)


def _position(turn: Turn, partition: TopicPartition) -> CallReturned | None:
    """Look for a position. Each pass may enable the next one: after a committed offset comes its validation."""
    before = None
    if turn.reader.initializing and Purpose.POSITIONS in turn.reader.lookups and turn.reader.waiting is not None:
        positions.fill(turn)  # committed offsets have been found: set the positions of all partitions
    while before != turn.reader.partitions and turn.reader.position(partition) is None:
        before = turn.reader.partitions
        positions.update(turn)
    offset = turn.reader.position(partition)
    return None if offset is None else CallReturned(offset)


def _commit_over(turn: Turn, waiting: Waiting) -> CallReturned | None:
    """Return the result of a synchronous commit; None while it waits. Callbacks of earlier asynchronous commits run
    first. The new consumer waits for those commits; the classic one does only if it had nothing to commit
    (K-OFF-21)."""
    commit = next(each for each in turn.reader.commits if each.number == waiting.commit)
    old = turn.client is not Client.CONSUMER
    if not old and commits.last_async(turn):
        return None
    commits.attempted(turn)
    if not old and not commit.told:
        turn.reader = turn.reader._replace(last_async=-1)
        commits.told(turn, commit)
        commits.run_callbacks(turn)
    if commit.outcome is None:
        return None
    if waiting.seeks:
        turn.check_coordinator()
        if turn.now < waiting.deadline_ms and _seeks(turn, waiting):
            return None
    if old and not commit.outcome.unfound:
        commits.run_callbacks(turn)
    if old and not commit.offsets and commits.flying_async(turn):
        return None
    return CallReturned(problem=commit.outcome.problem)


def _closed(turn: Turn, waiting: Waiting) -> CallReturned | None:
    """Return the result of a close; None while it waits. The last callbacks run even if the commits failed."""
    if turn.client is Client.CONSUMER:
        if not _committed_on_close(turn, waiting) or (commits.last_async(turn) and turn.now < waiting.deadline_ms):
            return None
        commits.last_callbacks(turn)
        return CallReturned()
    commits.attempted(turn)
    commit = next((each for each in turn.reader.commits if each.number == waiting.commit), None)
    late, met = turn.now >= waiting.deadline_ms, turn.reader.coordinator.problem
    if waiting.seeks and met is not None:
        commits.last_callbacks(turn)
        return CallReturned(problem=Problem(ProblemKind.KAFKA, met.error))
    still = waiting.seeks and not late and _seeks(turn, waiting)
    if commit is not None and commit.outcome is not None and not still:
        if not commit.outcome.unfound:
            commits.run_callbacks(turn, throw=False)
        if commit.offsets or not commits.flying_async(turn):
            commits.give_up(turn, commit.number)
            commit = None
    elif waiting.seeks and not still:
        commits.run_callbacks(turn, throw=False)
    pending = commit is not None or (not late and _seeks(turn, waiting)) or commits.open_async(turn)
    if turn.client is Client.CLASSIC and turn.reader.coordinator.node is not None:  # K-LEAVE-04
        pending |= turn.reader.membership.asks
        pending |= any(isinstance(each, SentCommit | SentLookup) for each in turn.reader.sent.values())
    if pending and not late:
        return None
    commits.last_callbacks(turn)
    return CallReturned()


def _committed_on_close(turn: Turn, waiting: Waiting) -> bool:
    """Return whether the commit in the new consumer's close has ended, with any result. After it, the coordinator is
    not looked up any longer (N-CLOSE-01)."""
    if waiting.commit is not None:
        try:
            over = _commit_over(turn, waiting) is not None
        except Thrown:
            over = True
        if not over and turn.now < waiting.deadline_ms:
            return False
        commits.give_up(turn, waiting.commit)
        turn.reader = turn.reader._replace(waiting=replace(waiting, commit=None))
    commits.give_up_unsent(turn)
    commits.send_at_once(turn)
    return True


def _seeks(turn: Turn, waiting: Waiting) -> bool:
    """Return whether the call looks up the coordinator only for asynchronous commits (K-LEAVE-04, K-OFF-21)."""
    if turn.client is not Client.CLASSIC or turn.reader.coordinator.node is not None:
        return False
    own = any(each.number == waiting.commit and each.outcome is None for each in turn.reader.commits)
    unsent = waiting.kind is CallKind.CLOSE and not own and commits.unsent_async(turn)
    return (waiting.seeks or unsent) and not turn.coordinator_known()


def coordinator_moved(turn: Turn) -> None:
    """Handle a response that says the coordinator has moved. A classic consumer that waits for other asynchronous
    commits looks it up before it sees that they failed with the connection (K-OFF-21)."""
    waiting = turn.reader.waiting
    if waiting is None or waiting.commit is None or turn.reader.fenced or not commits.flying_async(turn):
        return
    empty = any(each.number == waiting.commit and not each.offsets for each in turn.reader.commits)
    if empty and turn.client is Client.CLASSIC:
        commits.run_callbacks(turn)
        turn.reader = turn.reader._replace(waiting=replace(waiting, seeks=True))
