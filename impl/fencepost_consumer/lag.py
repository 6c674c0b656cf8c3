"""The lag: the distance from a position to the end of its log (K-POS-09).

The call does not wait: it uses data of the last fetch. If there is none, the leader is asked once, and its response is
for the next call. Meanwhile metadata of the topic is requested too (K-POS-08). In releases before 4.4, a request
without a known leader waits for one (V-134).
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer.broker import ListOffsetsRequest, ListOffsetsResponse
from fencepost_consumer.events import CallReturned
from fencepost_consumer.partition import Partition
from fencepost_consumer.state import SentEnd
from fencepost_consumer.subscribing import assigned
from fencepost_consumer.turn import Turn


def ask(turn: Turn, partition: TopicPartition) -> None:
    """Return the lag, or None if the log's end is unknown; then ask the leader for it (K-POS-09).

    Raises ``Refused`` unless the partition is assigned."""
    state = assigned(turn, partition)
    end = _log_end(turn, state)
    if end is None and not state.end_asked:
        _ask_end(turn, partition)
    lag = None if end is None or state.position is None else end - state.position.offset
    turn.emit(CallReturned(lag))


def _log_end(turn: Turn, state: Partition) -> int | None:
    """Return the end of the log for this isolation level, if known."""
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
    elif turn.left_alone(node):  # the request fails immediately, and that ends it
        turn.reader = turn.reader._replace(transient_topics=frozenset())
        if not ends_with_failure(turn):
            _end_asked(turn, partition, asked=True)
    else:
        _end_asked(turn, partition, asked=True)
        _watch_for_end(turn, partition)
        _send_end(turn, node, partition)


def ends_with_failure(turn: Turn) -> bool:
    """Return whether a failed request for the log's end is over, so that the next call asks again (K-POS-09)."""
    return turn.rules.failed_lag_ends or not turn.in_background


def _send_end(turn: Turn, node: int, partition: TopicPartition) -> None:
    body = ListOffsetsRequest(((partition, -1),), read_committed=turn.reader.settings.read_committed)
    turn.send_to(node, body, SentEnd(node, partition))


def _watch_for_end(turn: Turn, partition: TopicPartition) -> None:
    if turn.watches_topics_of_lag:
        topics = turn.reader.transient_topics | {partition.topic}
        turn.reader = turn.reader._replace(transient_topics=topics)


def ask_again(turn: Turn) -> None:
    """Send requests for log ends that waited for a leader (V-134)."""
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
    """Store the log's end for the next call. With the first response, the reader stops watching the topics of such
    requests (K-POS-08)."""
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
