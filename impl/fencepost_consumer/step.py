"""The step function of a reader: the part of a consumer that reads and commits.

``step(reader, event)`` returns the reader after the event, and the commands that the event caused, in order. Like the
step functions of members it has no clock, no randomness and no memory. The reader runs beside a member of either
protocol (``membership``); the host passes each one's messages to the other. Without a member it reads manually assigned
partitions.

``calls`` has the order of work in a poll; ``positions`` and ``committed`` look up positions; records pass through
``fetching`` and ``handing``; ``commits`` has the commits.
"""

from __future__ import annotations

from typing import Final, get_args

from fencepost.member.events import (
    Close,
    CoordinatorFound,
    CoordinatorLost,
    LookupFailed,
    Poll,
    PollPart,
    Subscribe,
    SubscribePattern,
    SubscribeRegex,
    Unsubscribe,
)
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.misuse import expect
from fencepost.protocol.offset_messages import OffsetCommitResponse, OffsetFetchResponse
from fencepost_consumer import (
    background,
    calls,
    commits,
    committed,
    coordinating,
    fetching,
    lag,
    positions,
    subscribing,
)
from fencepost_consumer.broker import FetchResponse, ListOffsetsResponse, OffsetForLeaderEpochResponse
from fencepost_consumer.clients import turn_of
from fencepost_consumer.events import (
    Arrived,
    AskCommitted,
    AskLag,
    AskPosition,
    Assign,
    AssignmentAdopted,
    CallReturned,
    CommitAsync,
    CommitOnClose,
    CommitSync,
    CommitWanted,
    LeadersChanged,
    MembershipChanged,
    NeverArrived,
    Pause,
    PollReturned,
    ReaderCommand,
    ReaderEvent,
    ReaderTimer,
    ReaderTimerFired,
    Refused,
    Resume,
    RunCallbacks,
    Seek,
    SeekToEnd,
    Wakeup,
)
from fencepost_consumer.state import (
    Mode,
    Purpose,
    Reader,
    Sent,
    SentCommit,
    SentEnd,
    SentFetch,
    SentLookup,
    SentReset,
    SentValidation,
)
from fencepost_consumer.turn import Turn
from fencepost_consumer.working_copy import Thrown

_EVENTS: Final = frozenset(get_args(ReaderEvent))
#: Parts of a poll after which no fetches are sent, since later parts may still return records
_BEFORE_FETCHES: Final = (PollPart.BEGIN, PollPart.BACKGROUND)
#: The application's calls. Only one may be in progress, and none follows ``Close``.
CALLS: Final = (
    Subscribe,
    SubscribePattern,
    SubscribeRegex,
    Unsubscribe,
    Assign,
    Pause,
    Resume,
    Seek,
    SeekToEnd,
    RunCallbacks,
    Poll,
    CommitSync,
    CommitAsync,
    AskCommitted,
    AskPosition,
    AskLag,
    CommitOnClose,
    Close,
)


def step(reader: Reader, event: ReaderEvent, jitter: float = 1.0) -> tuple[Reader, tuple[ReaderCommand, ...]]:
    """Handle one event. ``jitter``: the factor, 0.8 to 1.2, of a back-off that this step may start (K-HB-05).

    Raises ``Refused`` for a call that Kafka's consumer rejects immediately (K-SUB-01), and ``IllegalEvent`` for an
    event that cannot happen now: a call on a closed consumer or while another one waits, a timer that is not due.
    """
    expect(Reader, reader, "reader", "start with Reader(settings), then pass what the previous step returned")
    if type(event) not in _EVENTS:
        raise IllegalEvent(f"{type(event).__name__} is not a reader event; use those in fencepost_consumer.events")
    _take(reader, event)
    turn = turn_of(reader, event.at_ms, jitter)
    if reader.commit_due_ms is None:
        commits.restart_interval(turn)
    try:
        _handle(turn, event)
    except Thrown as thrown:
        turn.emit(_thrown(event, thrown))
    turn.continue_background()
    fetches = not (isinstance(event, Poll) and event.part in _BEFORE_FETCHES)
    if fetches:
        background.send_fetches(turn)
    commits.advance_commits(turn)
    coordinating.keep(turn)
    calls.maybe_complete_call(turn)
    if fetches:
        background.send_fetches(turn)
    coordinating.keep(turn)
    _arm(turn, event)
    return turn.reader, tuple(turn.commands)


def _take(reader: Reader, event: ReaderEvent) -> None:
    if isinstance(event, CALLS):
        if reader.closed:
            raise IllegalEvent(f"{type(event).__name__}: the consumer is closed")
        if reader.waiting is not None:
            raise IllegalEvent(
                f"{type(event).__name__}: another call has not returned yet ({reader.waiting.kind.value})"
            )
    elif isinstance(event, ReaderTimerFired) and reader.deadlines.get(event.timer, event.at_ms + 1) > event.at_ms:
        raise IllegalEvent(f"the {event.timer.value} timer is not due at {event.at_ms} ms")


def _thrown(event: ReaderEvent, thrown: Thrown) -> PollReturned | CallReturned:
    if isinstance(event, Poll | RunCallbacks):
        return PollReturned(problem=thrown.problem)
    return CallReturned(problem=thrown.problem)


def _handle(turn: Turn, event: ReaderEvent) -> None:
    match event:
        case Poll(part=part):
            calls.poll(turn, part)
        case RunCallbacks():
            turn.wake()  # K-POLL-06
            commits.run_callbacks(turn)
        case CommitOnClose(timeout_ms=timeout):
            calls.commit_on_close(turn, turn.reader.settings.request_timeout_ms if timeout is None else timeout)
        case Arrived(request_id=request_id, body=body):
            _answered(turn, request_id, body)
        case NeverArrived(request_id=request_id):
            _answered(turn, request_id, None)
        case MembershipChanged():
            subscribing.apply_membership(turn, event)
        case AssignmentAdopted(replaced=replaced, adopted=adopted):
            if adopted:
                commits.restart_interval(turn)
            if replaced:
                subscribing.adopted(turn)
            background.lasts(turn)
        case CommitWanted(commit_id=commit_id, partitions=wanted, closing=closing):
            commits.wanted(turn, commit_id, wanted, closing=closing)
        case CoordinatorFound(node=node):
            coordinating.found(turn, node)
        case CoordinatorLost(moved=moved):
            if moved:
                turn.coordinator_moved()
            coordinating.lost(turn, disconnected=not moved or not turn.keeps_former_connection)
        case LookupFailed(error=error):
            coordinating.failed(turn, error)
        case LeadersChanged():
            _leaders_changed(turn, event)
        case ReaderTimerFired():
            pass  # the end of each step handles what is due
        case Wakeup():
            turn.reader = turn.reader._replace(wakeup=True)
        case _:
            _called(turn, event)


def _called(turn: Turn, event: ReaderEvent) -> None:
    match event:
        case Subscribe(topics=topics):
            if not topics:
                raise Refused(
                    "Subscribe needs at least one topic; use Unsubscribe to drop all", "IllegalArgumentException"
                )
            subscribing.choose(turn, Mode.TOPICS, topics)
        case SubscribePattern():
            subscribing.choose(turn, Mode.PATTERN)
        case SubscribeRegex():
            if not turn.kip_848:  # K-SUB-01
                raise Refused(
                    "a classic group cannot subscribe to a regex; use SubscribePattern", "IllegalArgumentException"
                )
            subscribing.choose(turn, Mode.REGEX)
        case Unsubscribe():
            subscribing.unsubscribe(turn)
        case Assign(partitions=partitions):
            subscribing.assign(turn, partitions)
        case Pause(partitions=partitions):
            subscribing.pause(turn, partitions, paused=True)
        case Resume(partitions=partitions):
            subscribing.pause(turn, partitions, paused=False)
        case Seek():
            subscribing.seek(turn, event)
        case SeekToEnd(partitions=partitions, to=to):
            subscribing.seek_to_end(turn, partitions, to)
        case CommitSync():
            calls.commit_sync(turn, event)
        case CommitAsync():
            calls.commit_async(turn, event)
        case AskCommitted(partitions=partitions, timeout_ms=timeout):
            calls.ask_committed(turn, partitions, timeout)
        case AskPosition(partition=partition, timeout_ms=timeout):
            calls.ask_position(turn, partition, timeout)
        case AskLag(partition=partition):
            lag.ask(turn, partition)
        case Close(timeout_ms=timeout):
            calls.close(turn, turn.reader.settings.request_timeout_ms if timeout is None else timeout)


def _answered(turn: Turn, request_id: int, body: object) -> None:
    sent = turn.landed(request_id)
    if sent is None:
        return
    match sent, body:
        case SentCommit(), OffsetCommitResponse() | None:
            _of_coordinator(turn, commits.answered(turn, request_id, sent, body), body)
        case SentLookup(), OffsetFetchResponse() | None:
            _of_coordinator(turn, committed.answered(turn, request_id, sent, body), body)
        case SentReset(), ListOffsetsResponse() | None:
            positions.reset_answered(turn, sent, body)
            background.landed(turn, request_id)
        case SentValidation(), OffsetForLeaderEpochResponse() | None:
            positions.validation_answered(turn, sent, body)
        case SentFetch(), FetchResponse() | None:
            fetching.answered(turn, sent, body)
        case SentEnd(), ListOffsetsResponse() | None:
            lag.answered(turn, sent, body)
        case _:
            raise IllegalEvent(f"{type(body).__name__} does not answer {_asked(sent)}")


def _asked(sent: Sent) -> str:
    return type(sent).__name__.removeprefix("Sent").lower()


def _of_coordinator(turn: Turn, elsewhere: bool, body: object) -> None:
    """Forget the coordinator if no response arrived, or if the node is not the coordinator (K-OFF-11, K-ERR-13)."""
    if elsewhere and not turn.reader.fenced:
        turn.commit_attempted()  # before the others fail; a fenced consumer learns of it at the end of the step
    if elsewhere:
        turn.coordinator_moved()
    if elsewhere or body is None:
        coordinating.lost(turn, disconnected=body is None)


def _leaders_changed(turn: Turn, event: LeadersChanged) -> None:
    """Store new metadata. Ignore a leader whose epoch is older than one already seen. Drop leaders and epochs of
    partitions that are not in the metadata; keep epochs of subscribed topics (K-POS-08). Positions are compared with it
    at their next update (K-POS-07)."""
    reader = turn.reader
    topics = {partition.topic for partition, _ in event.leaders} | reader.topics
    if reader.mode is Mode.MANUAL:
        topics |= reader.watched_topics
    epochs = {each: epoch for each, epoch in reader.last_epochs.items() if each.topic in topics}
    leaders = {}
    for partition, leader in event.leaders:
        last = epochs.get(partition)
        if leader.epoch is None or last is None or leader.epoch >= last:
            leaders[partition] = leader
            if leader.epoch is not None:
                epochs[partition] = leader.epoch
        elif partition in reader.leaders:
            leaders[partition] = reader.leaders[partition]
    turn.reader = reader._replace(
        leaders=leaders,
        last_epochs=epochs,
        topic_ids=dict(event.topic_ids),
        metadata_version=reader.metadata_version + 1,
        metadata_requested=False,
    )
    lag.ask_again(turn)
    if not reader.mode.automatic:  # a member's metadata may cover more topics: those of its group
        turn.watch()


def _arm(turn: Turn, event: ReaderEvent) -> None:
    """Emit commands for timers that are new or gone. A fired timer is set again only for another time."""
    before = dict(turn.reader.deadlines)
    if isinstance(event, ReaderTimerFired):
        before.pop(event.timer, None)
    after: dict[ReaderTimer, int] = {}
    waiting = turn.reader.waiting
    if waiting is not None:
        after[ReaderTimer.CALL] = waiting.deadline_ms
    retries = [at for at in _retries(turn) if at is not None and at > turn.now]
    if retries:
        after[ReaderTimer.RETRY] = min(retries)
    turn.arm(before, after)
    turn.reader = turn.reader._replace(deadlines=after)


def _retries(turn: Turn) -> list[int | None]:
    """Return the times at which waiting work may continue without a poll."""
    reader = turn.reader
    idle = [each for each in reader.commits if each.outcome is None and each.request_id is None]
    times = [at for each in idle for at in (each.retry_at, each.deadline_ms)]
    lookups = [each for key, each in reader.lookups.items() if key is not Purpose.POSITIONS]
    if reader.waiting is not None and reader.waiting.partition is not None:
        times += [each.retry_at for each in reader.partitions.values()]
        lookups += [each for purpose, each in reader.lookups.items() if purpose is Purpose.POSITIONS]
    times += [each.retry_at for each in lookups]
    looks = turn.looks_up_coordinator_unasked and reader.coordinator.node is None
    looks |= reader.waiting is not None and reader.waiting.seeks
    if idle or lookups or looks:
        times.append(reader.coordinator.retry_at)
    return times
