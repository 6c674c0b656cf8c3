"""Loading a node's topics, transactions and settings from the store when a server starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypedDict

from fencepost.codec.errors import CodecError
from fencepost.codec.layout import NEWEST
from fencepost.codec.markers import read_marker_key
from fencepost.codec.reading import RecordReader
from fencepost.protocol.kafka_names import group_config
from fencepost.store import Put, StoreError
from fencepost_server.data.batches import HEADER_BYTES, Batch, CorruptBatch, OldBatch, batches
from fencepost_server.data.search import varint
from fencepost_server.node import GROUP_CONFIG_KIND, PRODUCERS_KIND, TOPIC_KIND, Node, producers_key
from fencepost_server.transactions.coordinator import IDS_KIND, KIND

#: the size of batches to read at a time, in bytes
_PIECE: Final = 1 << 20


async def restore(node: Node) -> None:
    """Load topics, transactions, and settings of groups, and read the producers' state from the batches. Raises
    ``StoreError`` if the data cannot be read."""
    kept = await node.store.kept()
    try:
        for name, text in kept.values.get(TOPIC_KIND, {}).items():
            await _topic(node, name, json.loads(text), kept.values.get(PRODUCERS_KIND, {}))
        await node.store.write(
            [
                Put(PRODUCERS_KIND, producers_key(topic, log.index), None)
                for topic in node.topics.by_name.values()
                for log in topic.logs
                if log.start == log.end and producers_key(topic, log.index) in kept.values.get(PRODUCERS_KIND, {})
            ]
        )  # what is forgotten must not come back at the next start
        node.transactions.restore(kept.values.get(KIND, {}), kept.values.get(IDS_KIND, {}).get(""))
        for group_id, text in kept.values.get(GROUP_CONFIG_KIND, {}).items():
            config: dict[str, str] = json.loads(text)
            node.groups.configure(group_id, group_config(node.settings, config))
            node.group_configs[group_id] = config
    except (ValueError, KeyError, TypeError, IndexError, CorruptBatch, OldBatch, CodecError) as reason:
        raise StoreError(f"the stored data cannot be read: {reason}") from None


class _StoredTopic(TypedDict):
    """``ends``: of partitions whose first records were deleted."""

    id: str
    partitions: int
    config: dict[str, str]
    ends: dict[str, tuple[int, int]]


async def _topic(node: Node, name: str, row: _StoredTopic, states: Mapping[str, str]) -> None:
    topic = node.topics.create(name, row["partitions"], row["config"], bytes.fromhex(row["id"]))
    for log in topic.logs:
        if (state := states.get(producers_key(topic, log.index))) is not None:
            log.begin(json.loads(state))
        while found := await node.store.batches(topic.topic_id, log.index, log.end, _PIECE, within=False):
            for data in found:
                (batch,) = batches(data)
                log.restore(batch, committed=committed(batch) if batch.control else None)
        log.restored(*row["ends"].get(str(log.index), (0, 0)))
        node.data_bytes += log.size


def committed(batch: Batch) -> bool:
    """Return whether a marker commits its transaction. Raises ``CorruptBatch`` if the batch is not a marker."""
    data, at = batch.data, HEADER_BYTES
    _, at = varint(data, at)
    _, at = varint(data, at + 1)  # after the attributes
    _, at = varint(data, at)
    length, at = varint(data, at)
    key = read_marker_key(RecordReader(data[at : at + length], NEWEST))
    if key is None:
        raise CorruptBatch("a control batch is not a transaction marker")
    return key.committed
