"""Removal of offsets: by an operator, with their group, with their topic, or because they are too old (rule book, 6.5,
6.6, 5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import OffsetCommitKey
from fencepost.protocol.records import Record

from ..classic.state import Group
from ..classic.subscription import CONSUMER
from ..consumer.state import ConsumerGroup
from ..machines import EMPTY, STABLE
from .checks import AnyGroup, subscribes
from .rows import Row
from .state import Offsets, Place, Stored

if TYPE_CHECKING:
    from ..variant import Variant

_NONE = -1


def tombstone(place: Place) -> Record:
    """Return the record that removes the offset at a place."""
    return Record(OffsetCommitKey(place.group, place.topic, place.partition), None)


def delete(
    group: AnyGroup, topics: frozenset[str] | None, offsets: Offsets, asked: Iterable[tuple[Row, Place]]
) -> tuple[tuple[Row, ...], tuple[Record, ...]]:
    """Return the answer's rows and the records of a deletion (O-DEL-05, O-DEL-06). ``topics``: see
    ``checks.subscribes``."""
    rows: list[Row] = []
    records: list[Record] = []
    for row, place in asked:
        if subscribes(group, topics, place.topic):
            rows.append(row._replace(error=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
            continue
        rows.append(row)
        if offsets.get(place) is not None or offsets.is_pending(place):
            records.append(tombstone(place))
    return tuple(rows), tuple(records)


def with_group(offsets: Offsets, group_id: str) -> list[Record]:
    """Return a tombstone for each place of the group that has an offset, committed or pending (C-ADM-09)."""
    places = [place for place, _ in offsets.of_group(group_id)]
    return [tombstone(place) for place in dict.fromkeys([*places, *offsets.pending_in(group_id)])]


def with_topics(variant: Variant, offsets: Offsets, gone: Iterable[Topic]) -> list[Record]:
    """Return a tombstone for each entry, committed or pending, of a deleted topic (O-EXP-23)."""
    topics = {topic.name: topic for topic in gone}
    entries = [*offsets.committed, *[(place, entry) for place, _, entry in offsets.pending]]
    belongs = variant.offsets.belongs_to_topic
    return [
        tombstone(place)
        for place, entry in entries
        if place.topic in topics and belongs(topics[place.topic], place, entry)
    ]


def belongs_to_topic(topic: Topic, place: Place, entry: Stored) -> bool:
    """Return whether the offset is one of the topic, and not of another with that name (O-EXP-23)."""
    return entry.topic_id in (ZERO_ID, topic.topic_id)


class Expired(NamedTuple):
    """The result for one group. ``records``: tombstones of expired offsets. ``deletes_group``: nothing keeps the group
    any more."""

    records: tuple[Record, ...]
    deletes_group: bool


def expire(
    group_id: str,
    group: AnyGroup,
    topics: frozenset[str] | None,
    offsets: Offsets,
    *,
    now: int,
    retention: int,
) -> Expired:
    """Expire the offsets of one group (O-EXP-01...20)."""
    held = offsets.of_group(group_id)
    if held and not _may_expire(group, topics):
        return Expired((), False)
    old = [
        place
        for place, entry in held
        if not subscribes(group, topics, place.topic)  # O-EXP-10
        and not offsets.is_pending(place)  # O-EXP-11
        and _too_old(group, entry, now, retention)
    ]
    rest = len(old) < len(held) or offsets.pending_in(group_id)
    return Expired(tuple([tombstone(place) for place in old]), not rest and is_empty(group))


def is_empty(group: AnyGroup) -> bool:
    """Return whether the group is empty, by its state."""
    return not group.members if isinstance(group, ConsumerGroup) else group.state == EMPTY


def _may_expire(group: AnyGroup, topics: frozenset[str] | None) -> bool:
    """Return whether offsets of the group may expire at all (O-EXP-02...06)."""
    if isinstance(group, ConsumerGroup) or group.protocol_type is None or group.state == EMPTY:
        return True
    return group.protocol_type == CONSUMER and group.state == STABLE and topics is not None


def _too_old(group: AnyGroup, entry: Stored, now: int, retention: int) -> bool:
    if entry.expire_timestamp != _NONE:
        return now >= entry.expire_timestamp  # O-EXP-01
    base = entry.commit_timestamp
    if isinstance(group, Group) and group.protocol_type is not None and group.state == EMPTY:
        base = group.timestamp if group.timestamp != _NONE else base  # O-EXP-02
    return now - base >= retention
