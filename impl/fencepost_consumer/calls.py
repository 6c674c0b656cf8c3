"""The application's calls: one pass of a poll, commits, and calls that wait (8.8, 8.12)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import PollPart
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer import background, commits, committed, handing
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
from fencepost_consumer.state import CallKind, Cause, Mode, Purpose, Reader, Waiting
from fencepost_consumer.subscribing import assigned
from fencepost_consumer.turn import Turn
from fencepost_consumer.working_copy import Thrown


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
    if not turn.poll(part):
        return
    records, advanced = handing.collect(turn)
    turn.fetch_on(bool(records) or advanced)
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
    if offsets:
        turn.throw_failed_lookup()
    commits.start(turn, Cause.ASYNC, offsets, event.callback)
    turn.emit(CallReturned())


def commit_sync(turn: Turn, event: CommitSync) -> None:
    """Commit and wait for the response, with retries after retriable errors (K-OFF-18)."""
    offsets = _offsets(turn, event.offsets)
    commits.run_callbacks(turn)
    if offsets:
        turn.throw_failed_lookup(waits=True)
    number = commits.start(turn, Cause.SYNC, offsets)
    if not offsets and not turn.in_background and not commits.flying_async(turn):
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
    if turn.loops_in_calls:
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
    # what is returned without a wait is not ended by a wakeup
    over = turn.look_for_position(partition, None) if offset is None else CallReturned(offset)
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
        if turn.failed_lookup is None:  # else the commit has failed
            number = commits.start(turn, Cause.CLOSE, turn.reader.consumed)
    if number is None:  # else the commit keeps looking for a coordinator
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
    if turn.loops_in_calls:  # each call counts failed look-ups from 0 (K-FIND-01)
        turn.reader = turn.reader._replace(coordinator=replace(turn.reader.coordinator, failed_attempts=0))
    turn.reader = turn.reader._replace(waiting=Waiting(kind, turn.now + timeout, commit, partition))


def maybe_complete_call(turn: Turn) -> None:
    """At the end of a step, let the waiting call return if it can."""
    waiting = turn.reader.waiting
    if waiting is None:
        return
    closes = waiting.kind in (CallKind.CLOSE, CallKind.CLOSE_COMMIT)
    try:
        if turn.throws_wakeup(waiting.kind):
            turn.wake()
        over = _over(turn, waiting)
        if over is None and turn.now >= waiting.deadline_ms:
            raise Thrown(Problem(ProblemKind.TIMEOUT))
    except Thrown as thrown:
        over = CallReturned(problem=None if closes else thrown.problem)
    if over is None:
        known = turn.reader.coordinator.node is not None
        looked = waiting.looked or known
        seeks = turn.seeks_coordinator(waiting)
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
            return turn.commit_result(waiting)
        case CallKind.COMMITTED:
            if turn.loops_in_calls:
                turn.check_coordinator()
                if not waiting.looked and not (turn.coordinator_known() if in_time else known):
                    return None  # even if the offsets were found
            if in_time:
                committed.maybe_send_lookup(turn, Purpose.CALL)
            lookup = committed.take_finished(turn, Purpose.CALL)
            if lookup is None:
                return None
            found = lookup.found or {}
            for each, offset in found.items():  # K-POS-08
                turn.saw_epoch(each, None if offset is None else offset.leader_epoch)
            value = tuple((each, found.get(each)) for each in lookup.partitions)
            return CallReturned(None if lookup.problem else value, lookup.problem)
        case CallKind.POSITION:
            assert waiting.partition is not None
            return turn.look_for_position(waiting.partition, waiting)
        case CallKind.CLOSE_COMMIT:
            return CallReturned() if close_has_committed(turn, waiting) else None
        case CallKind.CLOSE:
            return turn.close_result(waiting)


def close_has_committed(turn: Turn, waiting: Waiting) -> bool:
    """Return whether the commit in the new consumer's close has ended, with any result. After it, the coordinator is
    not looked up any longer (N-CLOSE-01)."""
    if waiting.commit is not None:
        try:
            over = turn.commit_result(waiting) is not None
        except Thrown:
            over = True
        if not over and turn.now < waiting.deadline_ms:
            return False
        commits.give_up(turn, waiting.commit)
        turn.reader = turn.reader._replace(waiting=replace(waiting, commit=None))
    commits.give_up_unsent(turn)
    commits.send_at_once(turn)
    return True
