"""The records that a poll returns: from the buffer, in the order of arrival (K-FETCH-02)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer.broker import Record
from fencepost_consumer.events import Problem, ProblemKind, Records
from fencepost_consumer.partition import Position
from fencepost_consumer.settings import Reset
from fencepost_consumer.state import Buffered
from fencepost_consumer.turn import Turn
from fencepost_consumer.working_copy import Thrown

_E = ErrorCode
#: Fetch errors that newer metadata may fix.
_STALE: Final = frozenset(
    {
        _E.NOT_LEADER_OR_FOLLOWER,
        _E.REPLICA_NOT_AVAILABLE,
        _E.KAFKA_STORAGE_ERROR,
        _E.FENCED_LEADER_EPOCH,
        _E.OFFSET_NOT_AVAILABLE,
        _E.UNKNOWN_TOPIC_OR_PARTITION,
        _E.UNKNOWN_TOPIC_ID,
        _E.INCONSISTENT_TOPIC_ID,
    }
)
_PASSING: Final = frozenset({_E.UNKNOWN_LEADER_EPOCH, _E.UNKNOWN_SERVER_ERROR})


class _Collected:
    """The records collected so far by one poll."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.records: dict[TopicPartition, list[Record]] = {}
        self.advanced = False

    @property
    def empty(self) -> bool:
        return not self.records and not self.advanced


def collect(turn: Turn) -> tuple[Records, bool]:
    """Return at most ``max.poll.records`` buffered records, and whether a position moved. The rest stays (K-POLL-03).

    Records of paused partitions stay behind the others; kafka-python drops them (K-PY-04). An error is thrown if the
    poll has nothing to return, else by the next poll (K-FETCH-04)."""
    got = _Collected(turn.reader.settings.max_poll_records)
    aside: list[Buffered] = []
    try:
        while got.left > 0 and turn.reader.buffer:
            head, *rest = turn.reader.buffer
            if not head.looked_at:
                _first_look(turn, head, got)
            elif _keeps(turn, head.partition):
                aside.append(replace(head, in_line=False))
                turn.reader = turn.reader._replace(buffer=tuple(rest))
            else:
                _hand_out(turn, head, got)
    except Thrown as thrown:
        if got.empty or not waits(turn, thrown.problem):
            raise
    finally:
        turn.reader = turn.reader._replace(buffer=(*turn.reader.buffer, *aside))
    return tuple((each, tuple(records)) for each, records in got.records.items()), got.advanced


def waits(turn: Turn, problem: Problem) -> bool:
    """Return whether the next poll throws the problem, so that this one can return its records (K-FETCH-04)."""
    return turn.rules.records_before_problem or problem.kind is not ProblemKind.ILLEGAL_STATE


def _keeps(turn: Turn, partition: TopicPartition) -> bool:
    """Return whether a paused partition's records stay in the buffer."""
    state = turn.reader.partitions.get(partition)
    return state is not None and state.paused and not turn.drops_unfetchable


def _first_look(turn: Turn, head: Buffered, got: _Collected) -> None:
    """Check the first entry of the buffer: make it readable, or drop it. If the check throws while there are records,
    the entry stays and throws again."""
    rest = turn.reader.buffer[1:]
    good = None
    try:
        good = _look(turn, head)
    except Thrown:
        if got.empty and not head.fetched.records:
            turn.reader = turn.reader._replace(buffer=rest)
        raise
    finally:
        if head.fetched.error_code is not _E.NONE:
            turn.to_the_end(head.partition)
    turn.reader = turn.reader._replace(buffer=rest if good is None else (good, *rest))


def _look(turn: Turn, head: Buffered) -> Buffered | None:
    """Check a response. It counts only if it is for the current position (K-POS-06, K-FETCH-03)."""
    partition, fetched = head.partition, head.fetched
    state = turn.reader.partitions.get(partition)
    if state is None or state.valid is None:
        return None
    if fetched.error_code is not _E.NONE:
        _failed(turn, head)
        return None
    if state.valid.offset != head.offset:
        return None  # K-FETCH-03
    turn.change(
        partition,
        replace(
            state,
            high_watermark=_known(fetched.high_watermark, state.high_watermark),
            last_stable_offset=_known(fetched.last_stable_offset, state.last_stable_offset),
            end_asked=state.end_asked and max(fetched.high_watermark, fetched.last_stable_offset) < 0,
            log_start_offset=_known(fetched.log_start_offset, state.log_start_offset),
        ),
    )
    if fetched.preferred_replica is not None:
        _prefer(turn, partition, fetched.preferred_replica)
    records = tuple(each for each in fetched.records if each.offset >= head.offset)
    after = records[-1].offset + 1 if records else head.offset
    next_offset = after if fetched.next_offset is None else max(after, fetched.next_offset)
    return replace(head, records=records, next_offset=next_offset, looked_at=True)


def _prefer(turn: Turn, partition: TopicPartition, replica: int) -> None:
    """Fetch from this replica until its time ends (K-FETCH-05)."""
    until = turn.now + turn.reader.settings.metadata_max_age_ms
    state = turn.reader.partitions[partition]
    turn.change(partition, replace(state, preferred=replica, preferred_until=until))


def _known(reported: int, before: int | None) -> int | None:
    return reported if reported >= 0 else before


def _failed(turn: Turn, head: Buffered) -> None:
    """Handle the error of a fetch (K-FETCH-03)."""
    partition, error = head.partition, head.fetched.error_code
    state = turn.reader.partitions[partition]
    if error in _STALE:
        turn.want_metadata()
        turn.change(partition, replace(state, preferred=None))
    elif error is _E.OFFSET_OUT_OF_RANGE:
        _out_of_range(turn, head)
    elif error is _E.TOPIC_AUTHORIZATION_FAILED:
        raise Thrown(Problem(ProblemKind.API, error, (partition,)))
    elif error not in _PASSING:
        kind = ProblemKind.KAFKA if error is _E.CORRUPT_MESSAGE else ProblemKind.ILLEGAL_STATE
        raise Thrown(Problem(kind, error, (partition,)))


def _out_of_range(turn: Turn, head: Buffered) -> None:
    """Handle an offset that is out of range. A follower may lag behind, so the leader is asked next (K-POS-04)."""
    state, policy = turn.reader.partitions[head.partition], turn.reader.settings.reset
    if state.preferred is not None:
        turn.change(head.partition, replace(state, preferred=None))
    elif state.position is not None and state.position.offset == head.offset:
        if policy.reset is Reset.NONE:
            raise Thrown(Problem(ProblemKind.OUT_OF_RANGE, _E.OFFSET_OUT_OF_RANGE, (head.partition,)))
        turn.change(head.partition, state.await_reset(policy))  # K-POS-04


def _hand_out(turn: Turn, head: Buffered, got: _Collected) -> None:
    """Return as many records as there is room for, and move the position with them (K-FETCH-02, INV-CL-03). Drop
    records that are no longer for the position (K-POS-06)."""
    rest = turn.reader.buffer[1:]
    state = turn.reader.partitions.get(head.partition)
    position = None if state is None or not turn.reader.fetchable(head.partition) else state.valid
    if state is None or position is None or position.offset != head.offset:
        _drained(turn, head, rest)
        return  # K-POS-06
    taken, left = head.records[: got.left], head.records[got.left :]
    # without a further record, the position also passes what follows the last record
    over = not left and len(taken) < got.left
    offset = head.next_offset if over else taken[-1].offset + 1
    if offset > position.offset:
        last = head.fetched.records[-1:] if over else taken[-1:]  # a fully read response ends with its last batch
        epoch = last[0].leader_epoch if last else position.epoch
        moved = Position(offset, epoch, position.leader)
        turn.change(head.partition, replace(state, position=moved))  # K-FETCH-02
        got.advanced = True
    if taken:
        got.records.setdefault(head.partition, []).extend(taken)
        got.left -= len(taken)
    head = replace(head, read=head.read or bool(taken))
    if over:
        _drained(turn, head, rest)
    else:
        turn.reader = turn.reader._replace(buffer=(replace(head, offset=offset, records=left, in_line=True), *rest))


def _drained(turn: Turn, head: Buffered, rest: tuple[Buffered, ...]) -> None:
    """Remove a response that is fully read. Its partition moves to the end of the fetch order if it had records."""
    if head.read:
        turn.to_the_end(head.partition)
    turn.reader = turn.reader._replace(buffer=rest)
