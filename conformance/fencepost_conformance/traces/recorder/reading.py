"""The recorded part of what a consumer reads: the offsets that a Fetch asks for, and how far its answer reaches.

Records are not kept. Most fetches of an idle consumer are repetitions, above all incremental ones that name no
partition. Such a Fetch is recorded only if its answer contains something, and then just before that answer (``late``).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

#: Base offset, length, leader epoch, magic, checksum, attributes, offset of the last record less that of the first.
_BATCH: Final = struct.Struct(">qiibIhi")
_LENGTH_AT: Final = 12  # bytes before what the length counts
_NEWEST_MAGIC: Final = 2
#: APIs whose answers name topics by id and by name; for other such APIs the trace has both.
WITH_NAMES: Final = frozenset(
    {"metadata", "describe_topic_partitions", "consumer_group_describe", "create_topics", "delete_topics"}
)


def asked(fetch: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the partitions of a Fetch, each with its fetch offset. ``names``: topics by their ids."""
    topics = [
        {
            **_name(topic, names),
            "partitions": [{"partition": row.partition, "fetch_offset": row.fetch_offset} for row in topic.partitions],
        }
        for topic in fetch.topics
    ]
    gone = [
        {**_name(topic, names), "partitions": list(topic.partitions)}
        for topic in getattr(fetch, "forgotten_topics_data", ())
    ]
    return {
        "session_id": getattr(fetch, "session_id", 0),
        "session_epoch": getattr(fetch, "session_epoch", -1),
        "topics": topics,
        "forgotten_topics_data": gone,
    }


def answered(answer: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return for each partition of an answer ``first_offset`` and ``next_offset``: of its first record, and behind its
    last; both None if there are no records."""
    topics = []
    for topic in answer.responses:
        rows = []
        for row in topic.partitions:
            first, behind = reach(row.records or b"")
            rows.append(
                {
                    "partition_index": row.partition_index,
                    "error_code": int(row.error_code.value),
                    "high_watermark": row.high_watermark,
                    "first_offset": first,
                    "next_offset": behind,
                }
            )
        topics.append({**_name(topic, names), "partitions": rows})
    code = getattr(answer, "error_code", None)
    return {
        "error_code": 0 if code is None else int(code.value),
        "session_id": getattr(answer, "session_id", 0),
        "topics": topics,
    }


def reach(records: bytes) -> tuple[int | None, int | None]:
    """Return the first offset of these batches, and the one behind their last record; the last batch may be cut off."""
    first = behind = None
    at = 0
    while at + _BATCH.size <= len(records):
        base, length, _, magic, _, _, last = _BATCH.unpack_from(records, at)
        if length <= 0 or at + _LENGTH_AT + length > len(records):
            break
        first = base if first is None else first
        behind = base + (last if magic >= _NEWEST_MAGIC else 0) + 1
        at += _LENGTH_AT + length
    return first, behind


def says_something(answer: dict[str, Any]) -> bool:
    """Whether an answer contains an error or a record."""
    rows = (row for topic in answer["topics"] for row in topic["partitions"])
    return bool(answer["error_code"]) or any(row["error_code"] or row["next_offset"] is not None for row in rows)


def names_of(api: str, answer: Any) -> dict[str, str]:
    """Return the names of topics in an answer, by id; empty for versions and APIs that do not have both.

    Args:
        api: kio's name of the API, one of ``WITH_NAMES``.
        answer: kio's entity.
    """
    if api == "consumer_group_describe":
        rows = [
            row
            for group in answer.groups
            for member in group.members
            for part in (member.assignment, member.target_assignment)
            for row in part.topic_partitions
        ]
        return {str(row.topic_id): str(row.topic_name) for row in rows if row.topic_id is not None and row.topic_name}
    rows = answer.responses if api == "delete_topics" else answer.topics
    return {
        str(row.topic_id): str(row.name)
        for row in rows or ()
        if getattr(row, "topic_id", None) is not None and row.name is not None
    }


class Quiet:
    """Which fetches of a connection repeat the previous one."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: Any = None

    def is_one(self, body: dict[str, Any]) -> bool:
        """Whether this Fetch names no partition, or exactly those of the last one."""
        if not body["topics"] and not body["forgotten_topics_data"]:
            return True
        same = body["topics"] == self._last and not body["forgotten_topics_data"]
        self._last = body["topics"]
        return same


def _name(topic: Any, names: Mapping[str, str]) -> dict[str, str]:
    """Return a topic's name, or since version 13 its id, and its name if that is known."""
    if hasattr(topic, "topic_id"):
        topic_id = str(topic.topic_id or "")
        return {"topic_id": topic_id, "name": names.get(topic_id, "")}
    return {"name": topic.topic}
