"""The one pass over the records: each goes to the life of its group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fencepost.codec import Codec, CodecError, Opaque
from fencepost.codec.errors import UnknownType
from fencepost.protocol.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from fencepost.protocol.logged import is_packed, unpacked
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record

from ...traces.offsets_log.rows import LogRow
from . import classic, consumer
from .events import UNKNOWN_MS, Event, GroupHistory, History, Kind, LogFacts, Move, Place
from .life import CLASSIC, CONSUMER, OFFSETS_ONLY, Life

_OFFSET: Final = b"\x00\x01"
DEAD: Final = "Dead"


class Telling:
    """The groups of a log, while its records are read. ``only``: the one group to tell; None for all, of which no
    events are kept unless ``keep_events``."""

    def __init__(self, only: str | None = None, *, keep_events: bool = False) -> None:
        self._codec = Codec()
        self._only = None if only is None else only.encode()
        self._keeps = keep_events or only is not None
        self._lives: dict[str, Life] = {}
        self._logs: dict[int, LogFacts] = {}
        self._places: dict[tuple[int, bytes], tuple[Life, Place]] = {}
        self._open: dict[tuple[int, int], set[str]] = {}  #: groups of an open transaction, by partition and producer
        self.names: dict[str, str] = {}

    def take(self, row: LogRow) -> None:
        """Take the next record."""
        facts = self._logs.get(row.partition)
        if facts is None:
            facts = self._logs[row.partition] = LogFacts(row.partition)
        if not self._placed(facts, row):
            return
        key, value = row.key, row.value
        if self._only is not None and not row.control and not _of_group(key, self._only):
            if _is_unread(key, self._codec):
                _count(
                    facts,
                    f"records of unknown type {int.from_bytes(key[:2], 'big', signed=True)}"
                    if key
                    else "records without a key",
                )
            return
        if key is not None and key[:2] == _OFFSET and value is not None and row.producer is None and is_packed(value):
            known = self._places.get((row.partition, key))
            if known is not None:
                self._commit(*known, unpacked(value), row)
                return
        try:
            if row.control:
                record: Record | Opaque | None = self._codec.decode_marker(key, value, row.producer)
            else:
                record = self._codec.decode(key, value, row.producer)
        except UnknownType as wrong:
            _count(facts, f"records of unknown type {wrong.number}")
            return
        except CodecError as wrong:
            _count(facts, f"records that cannot be decoded ({wrong})")
            return
        if isinstance(record, Opaque):
            _count(facts, f"records of type {record.name}, which belong to share or streams groups")
        elif record is not None:
            self._record(record, row, facts)

    def _placed(self, facts: LogFacts, row: LogRow) -> bool:
        """Note where and when the record is in its log; return whether it is in order."""
        if row.offset <= facts.last:
            facts.unordered += 1
            return False
        if facts.first < 0:
            facts.first = row.offset
        elif row.offset > facts.last + 1:
            facts.gaps += 1
            facts.missing += row.offset - facts.last - 1
            facts.last_gap = row.offset
        facts.last = row.offset
        facts.records += 1
        at_ms = row.at_ms
        if at_ms != UNKNOWN_MS:
            if facts.begin_ms == UNKNOWN_MS:
                facts.begin_ms = facts.end_ms = at_ms
            if at_ms < facts.end_ms:
                facts.backwards += 1
                facts.furthest_ms = max(facts.furthest_ms, facts.end_ms - at_ms)
            else:
                facts.end_ms = at_ms
        return True

    def _record(self, record: Record, row: LogRow, facts: LogFacts) -> None:
        key = record.key
        if isinstance(key, ControlKey):
            self._marker(key, row)
            return
        life = self._life(key.group, row)
        life.touch(row.offset, row.at_ms)
        if isinstance(key, OffsetCommitKey):
            self._offset(life, key, record, row)
            return
        adjacent = row.offset == life.last + 1
        gapped = life.last < facts.last_gap
        life.last = row.offset
        quiet = False
        if life.removed:
            quiet = self._resolve(life, record, row) if adjacent else False
            if not quiet:
                _delete(life, row)
        elif not adjacent:
            consumer.settle(life, row.at_ms, row.offset)
        self._apply(life, record, row.at_ms, row.offset, gapped=gapped, quiet=quiet)

    def _resolve(self, life: Life, record: Record, row: LogRow) -> bool:
        """Return whether the group was not removed but converted, as this record after its removal shows."""
        if record.value is None:
            return False
        if isinstance(record.value, GroupMetadataValue):
            if life.removed == CONSUMER:
                members = [each.member_id for each in record.value.members]
                consumer.converts_to_classic(life, members, row.at_ms, row.offset)
            return life.removed == "" and life.protocol == CLASSIC
        if life.removed == CLASSIC:
            consumer.converts_to_consumer(life, row.at_ms, row.offset)
            return True
        return False

    def _apply(self, life: Life, record: Record, at_ms: int, offset: int, *, gapped: bool, quiet: bool) -> None:
        key, value = record.key, record.value
        match key, value:
            case GroupMetadataKey(), None:
                if life.protocol != OFFSETS_ONLY:
                    life.removed = life.protocol
                else:  # perhaps a classic group in its first rebalance, of which there is no record, is converted
                    life.converted = True
            case GroupMetadataKey(), GroupMetadataValue():
                if life.protocol == CONSUMER:
                    life.breach(
                        at_ms, offset, "F-REPLAY-01", "a classic group replaces a consumer group that was not removed"
                    )
                    consumer.clear(life, at_ms)
                classic.take(life, value, at_ms, offset, gapped=gapped, quiet=quiet)
            case ConsumerGroupMetadataKey(), None:
                life.removed = life.protocol
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                self._not_classic(life, at_ms, offset)
                consumer.group_epoch(life, value, at_ms, offset)
            case ConsumerGroupMemberMetadataKey(), (ConsumerGroupMemberMetadataValue() | None):
                if value is not None:
                    self._not_classic(life, at_ms, offset)
                consumer.member(life, key.member_id, value, at_ms, offset)
            case ConsumerGroupTargetAssignmentMemberKey(), (ConsumerGroupTargetAssignmentMemberValue() | None):
                consumer.target_member(life, key.member_id, value)
            case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
                consumer.target_epoch(life, value.assignment_epoch, at_ms, offset)
            case ConsumerGroupCurrentMemberAssignmentKey(), (ConsumerGroupCurrentMemberAssignmentValue() | None):
                consumer.current(life, key.member_id, value, at_ms, offset)
            case ConsumerGroupRegularExpressionKey(), (ConsumerGroupRegularExpressionValue() | None):
                consumer.regex(life, key.regular_expression, None if value is None else value.topics)
            case ConsumerGroupPartitionMetadataKey(), ConsumerGroupPartitionMetadataValue():
                for topic in value.topics:
                    self.names[consumer.topic_text(topic.topic_id)] = topic.topic_name
            case _:
                pass

    @staticmethod
    def _not_classic(life: Life, at_ms: int, offset: int) -> None:
        """Tell a record of a consumer group while a classic group with members is there (F-REPLAY-06)."""
        if life.protocol == CLASSIC and life.members:
            said = "a record of a consumer group while the classic group with members was not removed"
            life.breach(at_ms, offset, "F-REPLAY-06", said)
        if life.protocol == CLASSIC:
            consumer.clear(life, at_ms)

    # offsets

    def _offset(self, life: Life, key: OffsetCommitKey, record: Record, row: LogRow) -> None:
        place, value = Place(key.topic, key.partition), record.value
        if not isinstance(value, OffsetCommitValue):
            if life.commits.delete(place):
                life.tell(Event(row.at_ms, row.offset, Kind.OFFSETS_DELETED, moves=(Move(place, None, None),)))
            return
        if row.producer is not None:
            self._name(value, key.topic)
            producer = row.producer.producer_id
            life.commits.begin(producer, place, value.offset, row.offset, row.at_ms)
            self._open.setdefault((row.partition, producer), set()).add(life.group)
            return
        if row.key is not None:
            self._places[row.partition, row.key] = life, place
        self._committed(life, place, value, row)

    def _commit(self, life: Life, place: Place, value: OffsetCommitValue, row: LogRow) -> None:
        life.touch(row.offset, row.at_ms)
        self._committed(life, place, value, row)

    def _committed(self, life: Life, place: Place, value: OffsetCommitValue, row: LogRow) -> None:
        self._name(value, place.topic)
        event = life.commits.commit(place, value.offset, row.offset, row.at_ms)
        if event is not None:
            life.tell(event)

    def _name(self, value: OffsetCommitValue, topic: str) -> None:
        if value.topic_id != ZERO_ID:
            self.names[consumer.topic_text(value.topic_id)] = topic

    def _marker(self, key: ControlKey, row: LogRow) -> None:
        if row.producer is None:
            return
        producer = row.producer.producer_id
        for group in sorted(self._open.pop((row.partition, producer), ())):
            life = self._lives[group]
            for event in life.commits.end(producer, row.offset, row.at_ms, committed=key.committed):
                life.tell(event)

    # the result

    def _life(self, group: str, row: LogRow) -> Life:
        life = self._lives.get(group)
        if life is None:
            life = self._lives[group] = Life(group, row.partition, self._keeps)
        return life

    def done(self) -> History:
        """Return the history of all groups, worst first."""
        groups = []
        for life in self._lives.values():
            facts = self._logs[life.partition]
            if life.removed:
                _delete(life, LogRow(life.partition, life.last, life.last_ms, None, None))
            consumer.settle(life, life.last_ms, life.last)
            if life.protocol == CONSUMER:
                life.state = consumer.state_of(life)
            groups.append(life.done(facts.last_gap))
        return History(tuple(sorted(groups, key=badness)), tuple(sorted(self._logs.values(), key=_number)), self.names)


def tell(rows: Iterable[LogRow], only: str | None = None, *, keep_events: bool = False) -> History:
    """Return the history of the groups in these records, which are in the order of each partition's log.

    Memory depends on the number of groups, members and partitions, not on the number of records. ``only``: one group.
    ``keep_events``: keep the last events of all groups, not only those of ``only``."""
    telling = Telling(only, keep_events=keep_events)
    for row in rows:
        telling.take(row)
    return telling.done()


def badness(group: GroupHistory) -> tuple[int, int, int, int, str]:
    """Return the sort key of a group: broken rules, rebalances, time in rebalance, commits that went back."""
    return -group.breaches, -group.rebalances, -group.rebalance_ms, -group.back, group.group


def _number(facts: LogFacts) -> int:
    return facts.partition


def _delete(life: Life, row: LogRow) -> None:
    consumer.settle(life, row.at_ms, row.offset)
    life.tell(Event(row.at_ms, row.offset, Kind.DELETED, life.epoch))
    consumer.clear(life, row.at_ms)
    life.protocol, life.state = OFFSETS_ONLY, DEAD


def _count(facts: LogFacts, reason: str) -> None:
    facts.unknown[reason] = facts.unknown.get(reason, 0) + 1


def _of_group(key: bytes | None, group: bytes) -> bool:
    """Return whether the key of a record begins with this group's name, as the keys of all types do (F-REC-00)."""
    return key is not None and key[2:4] == len(group).to_bytes(2, "big") and key[4 : 4 + len(group)] == group


def _is_unread(key: bytes | None, codec: Codec) -> bool:
    return key is None or codec.name_of(int.from_bytes(key[:2], "big", signed=True)) is None
