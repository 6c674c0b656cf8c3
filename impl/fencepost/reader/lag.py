"""How far a position is behind its log's end (K-POS-09).

A question does not wait: it is answered from what the last fetch told. If none did, the leader is asked once, and what
it says is for the next question. Meanwhile the topic counts among those whose metadata are asked for (K-POS-08). In
releases before 4.4 a question without a leader waits for one (V-134).
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import varies

from .broker import ListOffsetsRequest, ListOffsetsResponse
from .events import CallReturned
from .partition import Partition
from .settings import Client
from .state import SentEnd
from .subscribing import assigned
from .turn import Turn


def ask(turn: Turn, partition: TopicPartition) -> None:
    """Return the lag, or None while the log's end is not known, for which the leader is asked then (K-POS-09).

    Raises ``Refused`` unless the partition is assigned."""
    state = assigned(turn, partition)
    end = _log_end(turn, state)
    if end is None and not state.end_asked:
        _ask_end(turn, partition)
    lag = None if end is None or state.position is None else end - state.position.offset
    turn.emit(CallReturned(lag))


def _log_end(turn: Turn, state: Partition) -> int | None:
    """The end that counts at this isolation level, if it is known."""
    return state.last_stable_offset if turn.reader.settings.read_committed else state.high_watermark


def _ask_end(turn: Turn, partition: TopicPartition) -> None:
    node = turn.leader(partition).node
    if node is None:
        turn.want_metadata()
        if not ends_with_failure(turn):
            _end_asked(turn, partition, asked=True)
            _watch_for_end(turn, partition)
            turn.reader = turn.reader._replace(ends=(*turn.reader.ends, partition))
        else:
            turn.reader = turn.reader._replace(transient_topics=frozenset())
    elif turn.left_alone(node):  # it is over with the first answer, which is that there is none
        turn.reader = turn.reader._replace(transient_topics=frozenset())
        if not ends_with_failure(turn):
            _end_asked(turn, partition, asked=True)
    else:
        _end_asked(turn, partition, asked=True)
        _watch_for_end(turn, partition)
        _send_end(turn, node, partition)


@varies
def ends_with_failure(turn: Turn) -> bool:
    """Whether a question for the log's end that nobody answers is over, so that the next lag asks again (K-POS-09)."""
    return True


def _send_end(turn: Turn, node: int, partition: TopicPartition) -> None:
    body = ListOffsetsRequest(((partition, -1),), read_committed=turn.reader.settings.read_committed)
    turn.send_to(node, body, SentEnd(node, partition))


def _watch_for_end(turn: Turn, partition: TopicPartition) -> None:
    if turn.client is Client.CONSUMER:
        topics = turn.reader.transient_topics | {partition.topic}
        turn.reader = turn.reader._replace(transient_topics=topics)


def ask_again(turn: Turn) -> None:
    """Ends that wait for a leader are asked for (V-134)."""
    ends = turn.reader.ends
    turn.reader = turn.reader._replace(ends=())
    for each in ends:
        node = turn.leader(each).node if each.topic in turn.reader.watched_topics else None
        if node is None:
            turn.reader = turn.reader._replace(ends=(*turn.reader.ends, each))
        elif not turn.left_alone(node):
            _send_end(turn, node, each)


def _end_asked(turn: Turn, partition: TopicPartition, *, asked: bool, end: int | None = None) -> None:
    state = turn.reader.partitions.get(partition)
    if state is None:
        return
    state = state.asked_end(asked)
    if end is not None:
        state = state.with_end(end, stable=turn.reader.settings.read_committed)
    turn.change(partition, state)


def answered(turn: Turn, sent: SentEnd, body: ListOffsetsResponse | None) -> None:
    """The log's end, for the next question of the lag; with the first answer the topics that were asked about are
    watched no more (K-POS-08)."""
    rows = [each for each in (body.partitions if body else ()) if each.partition == sent.partition]
    end = next((each.offset for each in rows if each.error_code is ErrorCode.NONE and each.offset >= 0), None)
    again = any(each.error_code is not ErrorCode.NONE for each in rows)
    if end is not None or ends_with_failure(turn):
        _end_asked(turn, sent.partition, asked=False, end=end)
    elif again:
        turn.want_metadata()
        turn.reader = turn.reader._replace(ends=(*turn.reader.ends, sent.partition))
        return
    turn.reader = turn.reader._replace(transient_topics=frozenset())
