"""A node as it was before its server ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fencepost.codec.errors import CodecError
from fencepost.codec.layout import NEWEST
from fencepost.codec.markers import read_marker_key
from fencepost.codec.reading import Reader
from fencepost.store import Kept, StoreError

from .data.batches import HEADER_BYTES, Batch, CorruptBatch, OldBatch, batches
from .data.search import varint
from .node import GROUP_CONFIG_KIND, TOPIC_KIND, Node
from .settings import group_config
from .transactions.coordinator import IDS_KIND, KIND


def restore(node: Node, kept: Kept) -> None:
    """Topics, batches, transactions and settings of groups. Raises ``StoreError`` for what cannot be read."""
    try:
        for name, text in kept.values.get(TOPIC_KIND, {}).items():
            _topic(node, name, json.loads(text), kept)
        node.transactions.restore(kept.values.get(KIND, {}), kept.values.get(IDS_KIND, {}).get(""))
        for group_id, text in kept.values.get(GROUP_CONFIG_KIND, {}).items():
            config: dict[str, str] = json.loads(text)
            node.groups.configure(group_id, group_config(node.settings, config))
            node.group_configs[group_id] = config
    except (ValueError, KeyError, TypeError, IndexError, CorruptBatch, OldBatch, CodecError) as reason:
        raise StoreError(f"what was kept cannot be read: {reason}") from None


def _topic(node: Node, name: str, row: Mapping[str, Any], kept: Kept) -> None:
    topic = node.topics.create(name, row["partitions"], row["config"], bytes.fromhex(row["id"]))
    for log in topic.logs:
        for data in kept.batches.get((topic.topic_id, log.index), ()):
            (batch,) = batches(data)
            log.end = batch.base
            log.restore(batch, committed=committed(batch) if batch.control else None)
        start, end = row["ends"].get(str(log.index), (0, 0))
        log.end = max(log.end, end)
        log.delete_before(max(start, log.batches[0].base if log.batches else start))
        log.durable(log.end)
        node.data_bytes += log.size


def committed(batch: Batch) -> bool:
    """Whether a marker ends its transaction with a commit."""
    data, at = batch.data, HEADER_BYTES
    _, at = varint(data, at)
    _, at = varint(data, at + 1)  # behind the attributes
    _, at = varint(data, at)
    length, at = varint(data, at)
    key = read_marker_key(Reader(data[at : at + length], NEWEST))
    if key is None:
        raise CorruptBatch("a control batch that ends no transaction")
    return key.committed
