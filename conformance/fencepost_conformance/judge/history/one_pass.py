"""The one pass over the records: each goes to the life of its group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from struct import Struct
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
from fencepost.protocol.logged import NAMED_SIZE, is_packed
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record

from ...traces.offsets_log.rows import LogRow
from . import classic, consumer
from .events import UNKNOWN_MS, Event, GroupHistory, History, Kind, LogFacts, Move, Place
from .life import CLASSIC, CONSUMER, OFFSETS_ONLY, Life, Listener

_OFFSET: Final = b"\x00\x01"
_INT64: Final = Struct(">q")
#: different reasons why records of a partition were skipped; the rest is counted together
_REASONS: Final = 100
DEAD: Final = "Dead"


class PartitionPass:
    """The groups of one partition, while its records are read.

    Args:
        only: the groups to read; None for all.
        keep_events: keep the last events of each group.
        admits: whether there is room for a further group; ``left_out`` counts the records of groups without room.
        listener: gets each event, and the number of committed offsets.
    """

    def __init__(
        self,
        partition: int,
        only: Collection[str] | None = None,
        *,
        keep_events: bool = False,
        admits: Callable[[], bool] | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._codec = Codec()
        self._only = None if only is None else frozenset(each.encode() for each in only)
        self._keeps = keep_events
        self._admits = admits
        self._listener = listener
        self.left_out = 0
        self._lives: dict[str, Life] = {}
        self._facts = LogFacts(partition)
        self._places: dict[bytes, tuple[Life, Place]] = {}
        self._open: dict[int, set[str]] = {}  #: groups of an open transaction, by producer
        self._ids: dict[bytes, str] = {}  #: names of topics by their ids
        self._names: dict[str, str] = {}

    def take(self, row: LogRow) -> None:
        """Take the next record."""
        facts = self._facts
        if not self._placed(facts, row):
            return
        key, value = row.key, row.value
        if self._only is not None and not row.control and _group_of(key) not in self._only:
            if _is_unread(key, self._codec):
                _count(
                    facts,
                    f"records of unknown type {int.from_bytes(key[:2], 'big', signed=True)}"
                    if key
                    else "records without a key",
                )
            return
        if key is not None and key[:2] == _OFFSET and value is not None and row.producer is None and is_packed(value):
            known = self._places.get(key)
            if known is not None:
                self._commit(*known, value, row)
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
        if life is None:
            self.left_out += 1
            return
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
                    self._name(topic.topic_id, topic.topic_name)
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
            if row.key is not None:
                self._places.pop(row.key, None)
            if life.commits.delete(place):
                life.add_event(Event(row.at_ms, row.offset, Kind.OFFSETS_DELETED, moves=(Move(place, None, None),)))
            return
        if row.producer is not None:
            self._name(value.topic_id, key.topic)
            producer = row.producer.producer_id
            life.commits.begin(producer, place, value.offset, row.offset, row.at_ms)
            self._open.setdefault(producer, set()).add(life.group)
            return
        if row.key is not None:
            self._places[row.key] = life, place
        self._committed(life, place, value, row)

    def _commit(self, life: Life, place: Place, value: bytes, row: LogRow) -> None:
        """Take a plain commit to a known partition: nearly all records of a log are such. ``value``: ``is_packed``."""
        at_ms = row.at_ms
        life.touch(row.offset, at_ms)
        if len(value) == NAMED_SIZE:
            topic_id = value[-16:]
            if self._ids.get(topic_id) != place.topic:
                self._name(topic_id, place.topic)
        (offset,) = _INT64.unpack_from(value, 2)
        event = life.commits.commit(place, offset, row.offset, at_ms)
        if self._listener is not None:
            self._listener.commits(life, 1)
        if event is not None:
            life.add_event(event)

    def _committed(self, life: Life, place: Place, value: OffsetCommitValue, row: LogRow) -> None:
        self._name(value.topic_id, place.topic)
        event = life.commits.commit(place, value.offset, row.offset, row.at_ms)
        if self._listener is not None:
            self._listener.commits(life, 1)
        if event is not None:
            life.add_event(event)

    def _name(self, topic_id: bytes, topic: str) -> None:
        if topic_id != ZERO_ID and self._ids.get(topic_id) != topic:
            self._ids[topic_id] = topic
            self._names[consumer.topic_text(topic_id)] = topic

    def _marker(self, key: ControlKey, row: LogRow) -> None:
        if row.producer is None:
            return
        producer = row.producer.producer_id
        for group in sorted(self._open.pop(producer, ())):
            life, before = self._lives[group], self._lives[group].commits.total
            for event in life.commits.end(producer, row.offset, row.at_ms, committed=key.committed):
                life.add_event(event)
            if self._listener is not None and life.commits.total > before:
                self._listener.commits(life, life.commits.total - before)

    # the groups

    def _life(self, group: str, row: LogRow) -> Life | None:
        """Return the life of a group; None if no further group is admitted."""
        life = self._lives.get(group)
        if life is None:
            if self._admits is not None and not self._admits():
                return None
            life = self._lives[group] = Life(group, row.partition, self._keeps, self._listener)
        return life

    @property
    def lives(self) -> Mapping[str, Life]:
        """The groups so far."""
        return self._lives

    @property
    def facts(self) -> LogFacts:
        """The state of the partition so far."""
        return self._facts

    @property
    def names(self) -> Mapping[str, str]:
        """The names of topics by their ids, as Kafka prints them."""
        return self._names

    def prune(self) -> None:
        """Forget the groups of which nothing is left, and deleted offsets."""
        for life in self._lives.values():
            life.commits.prune()
        gone = {
            name
            for name, life in self._lives.items()
            if not life.commits.committed and not life.commits.pending and not life.members
            if life.state == DEAD or life.protocol == OFFSETS_ONLY
        }
        if gone:
            self._lives = {name: life for name, life in self._lives.items() if name not in gone}
            self._places = {place: found for place, found in self._places.items() if found[0].group not in gone}
            self._open = {place: left for place, names in self._open.items() if (left := names - gone)}

    def settle(self) -> None:
        """Take the records so far as complete: no record that follows immediately says more about the last ones."""
        for life in self._lives.values():
            if life.removed:
                _delete(life, LogRow(life.partition, life.last, life.last_ms, None, None))
            consumer.settle(life, life.last_ms, life.last)
            if life.protocol == CONSUMER:
                life.state = consumer.state_of(life)

    def done(self) -> History:
        """Return the history of the groups, worst first."""
        self.settle()
        groups = [life.done(self._facts.last_gap) for life in self._lives.values()]
        return History(tuple(sorted(groups, key=badness)), (self._facts,), self._names)


def history_of(rows: Iterable[LogRow], only: str | None = None, *, keep_events: bool = False) -> History:
    """Return the history of the groups in these records, which are in the order of each partition's log.

    Memory depends on the number of groups, members and partitions, not on the number of records. ``only``: one group.
    ``keep_events``: keep the last events of all groups, not only those of ``only``."""
    names, keeps = None if only is None else {only}, keep_events or only is not None
    partitions: dict[int, PartitionPass] = {}
    for row in rows:
        partition_pass = partitions.get(row.partition)
        if partition_pass is None:
            partition_pass = partitions[row.partition] = PartitionPass(row.partition, names, keep_events=keeps)
        partition_pass.take(row)
    return merged(each.done() for each in partitions.values())


def merged(parts: Iterable[History]) -> History:
    """Return the histories of different partitions as one."""
    found = sorted(parts, key=lambda part: part.logs[0].partition)
    names: dict[str, str] = {}
    for part in found:
        names.update(part.names)
    groups = sorted((group for part in found for group in part.groups), key=badness)
    return History(tuple(groups), tuple(log for part in found for log in part.logs), names)


def badness(group: GroupHistory) -> tuple[int, int, int, int, str, int]:
    """Return the sort key of a group: broken rules, rebalances, time in rebalance, commits that went back."""
    return -group.breaches, -group.rebalances, -group.rebalance_ms, -group.back, group.group, group.partition


def _delete(life: Life, row: LogRow) -> None:
    consumer.settle(life, row.at_ms, row.offset)
    life.add_event(Event(row.at_ms, row.offset, Kind.DELETED, life.epoch))
    consumer.clear(life, row.at_ms)
    life.protocol, life.state = OFFSETS_ONLY, DEAD


def _count(facts: LogFacts, reason: str) -> None:
    if reason not in facts.unknown and len(facts.unknown) >= _REASONS:
        reason = "records for other reasons"
    facts.unknown[reason] = facts.unknown.get(reason, 0) + 1


def _group_of(key: bytes | None) -> bytes:
    """Return the name of a group with which the key of a record begins, as the keys of all types do (F-REC-00)."""
    return b"" if key is None else key[4 : 4 + int.from_bytes(key[2:4], "big")]


def _is_unread(key: bytes | None, codec: Codec) -> bool:
    return key is None or codec.name_of(int.from_bytes(key[:2], "big", signed=True)) is None
