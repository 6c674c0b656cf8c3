"""Fetch requests and their responses (K-FETCH-01).

Fetching runs ahead of the application. A fetched partition waits in the buffer until polls have returned its records
(``handing``), and is fetched again only then. So the buffer has at most one response for each partition, and the memory
that it uses has a limit.

Two rules keep the partitions even. Each broker has at most one request in flight, and no broker is asked while readable
records of it are still in the buffer: a request for its other partitions alone would serve those more often. The order
of the partitions is that of the next fetch; a partition whose records were returned goes to the end (K-SUB-14).

A response is not looked at when it arrives. The position may move before a poll reaches it, so only the poll can decide
whether the response still counts (``handing``, K-FETCH-03).
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer.broker import FetchFrom, FetchRequest, FetchResponse
from fencepost_consumer.partition import Leader
from fencepost_consumer.state import Buffered, SentFetch
from fencepost_consumer.turn import Turn


def send_fetches(turn: Turn) -> None:
    """Fetch all fetchable partitions that are not buffered (K-FETCH-01, K-POLL-04).

    One request per broker is in flight. A broker whose records are still buffered gets none, so that no partition
    starves another. Nor does a broker that has just failed to respond."""
    reader = turn.reader
    buffered = {each.partition for each in reader.buffer}
    busy = {sent.node for sent in reader.sent.values() if isinstance(sent, SentFetch)}
    busy |= {node for each in buffered if reader.fetchable(each) and (node := _node(turn, each).node) is not None}
    busy |= {node for node in reader.unavailable if turn.left_alone(node)}
    wanted = {each: _node(turn, each) for each in reader.partitions if reader.fetchable(each) and each not in buffered}
    for node, partitions in turn.by_leader(wanted).items():
        if node in busy:
            continue
        asked = []
        for each in partitions:
            position = reader.partitions[each].position
            assert position is not None  # fetchable
            epoch = position.leader.epoch if turn.uses_leader_epochs else None
            asked.append(FetchFrom(each, offset=position.offset, current_leader_epoch=epoch))
        turn.send_to(node, FetchRequest(tuple(asked)), SentFetch(node, {each.partition: each.offset for each in asked}))


def _node(turn: Turn, partition: TopicPartition) -> Leader:
    """Return the node to fetch from: the preferred replica (K-FETCH-05), else the leader of the position. Without
    leader epochs positions have no leader, so it is the current one."""
    state = turn.reader.partitions[partition]
    if not turn.uses_leader_epochs:
        return turn.leader(partition)
    leader = Leader() if state.position is None else state.position.leader
    if leader.node is not None and state.preferred is not None and turn.now < state.preferred_until:
        return Leader(state.preferred)
    return leader


def answered(turn: Turn, sent: SentFetch, body: FetchResponse | None) -> None:
    """Put a fetch response into the buffer; it is checked when a poll reaches it (K-FETCH-01). A partition that was
    taken away and assigned again meanwhile may still be read, unless the client drops its records here. ``body`` None:
    no response arrived."""
    if body is None:
        until = turn.now + turn.reader.settings.reconnect_backoff_ms
        turn.reader = turn.reader._replace(unavailable={**turn.reader.unavailable, sent.node: until})
        for each in sent.offsets.keys() & turn.reader.partitions.keys():  # K-FETCH-05
            turn.change(each, replace(turn.reader.partitions[each], preferred=None))
        turn.want_metadata()
        return
    whatever = not turn.drops_unfetchable
    found = tuple(
        Buffered(each.partition, sent.offsets[each.partition], each)
        for each in body.partitions
        if each.partition in sent.offsets and (whatever or each.partition in turn.reader.partitions)
    )
    turn.reader = turn.reader._replace(buffer=(*turn.reader.buffer, *found))
