"""Groups and offsets loaded from the records of a log (rule book, 11.5, 11.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fencepost.protocol.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from fencepost.protocol.messages import Protocol
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import GroupMetadataKey, Record, RecordKey

from ..consumer.refusal import CannotHappen
from ..consumer.replay import replay
from ..consumer.state import ConsumerGroup, Partition, new_group
from ..consumer.state import Member as ConsumerMember
from ..machines import EMPTY, STABLE
from ..offsets.state import Offsets
from ..offsets.state import replay as replay_offset
from .choice import Chooser
from .state import Group, Member, by_id
from .subscription import CONSUMER, outcomes

if TYPE_CHECKING:
    from ..variant import Variant


#: The rule of a record's effect in a load, by its key.
_RULES: Final[dict[type[RecordKey], str]] = {
    OffsetCommitKey: "F-REPLAY-04",
    GroupMetadataKey: "F-REPLAY-01",
    ConsumerGroupMemberMetadataKey: "F-REPLAY-07",
    ConsumerGroupCurrentMemberAssignmentKey: "F-REPLAY-08",
    ConsumerGroupTargetAssignmentMemberKey: "F-REPLAY-09",
    ConsumerGroupTargetAssignmentMetadataKey: "F-REPLAY-10",
    ConsumerGroupMetadataKey: "F-REPLAY-11",
    ConsumerGroupPartitionMetadataKey: "F-REPLAY-12",
}


def fails_load(variant: Variant, record: Record) -> bool:
    """Return whether the record makes the load fail: it holds a subscription whose topics cannot be read
    (F-LOAD-02)."""
    value = record.group_metadata
    return (
        variant.classic.throws_on_bad_length
        and value is not None
        and value.protocol_type == CONSUMER
        and "throws" in outcomes(member.subscription for member in value.members)
    )


def load_group(record: Record) -> Group | None:
    """Return the group of one GroupMetadata record, or None for a tombstone (F-REPLAY-01, C-ST-07, F-SURV-02, 03).

    The record replaces any earlier object. Members keep only the selected protocol (C-TMR-13). No record carries parked
    requests, pending ids or syncs, so there are none (F-REC-21).
    """
    value = record.group_metadata
    if value is None:
        return None
    members = [
        Member(
            member_id=row.member_id,
            instance=row.group_instance_id,
            client_id=row.client_id,
            client_host=row.client_host,
            rebalance_timeout=row.session_timeout if row.rebalance_timeout == -1 else row.rebalance_timeout,
            session_timeout=row.session_timeout,
            protocols=(Protocol(value.protocol or "", row.subscription),),
            assignment=row.assignment,
        )
        for row in value.members
    ]
    return Group(
        state=STABLE if members else EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader=value.leader,
        members=by_id(members),
        timestamp=value.current_state_timestamp,
    )


def load_record(variant: Variant, group: Group | ConsumerGroup | None, record: Record) -> Group | ConsumerGroup | None:
    """Return the group of either kind after one more record of its log (F-REPLAY-01, 06, 16). Raises CannotHappen."""
    if isinstance(record.key, GroupMetadataKey):
        return load_group(record)
    if isinstance(group, Group):
        if group.protocol_type is not None or group.members or group.pending_join:
            raise CannotHappen("a record of a consumer group over a classic one")
        group = new_group(variant.consumer.first_epoch)
    return replay(variant, group, record)


def load_groups(
    variant: Variant, records: Iterable[Record], now: int = 0
) -> dict[str, Group | ConsumerGroup | None] | None:
    """Return the groups of a log by id, or None if it cannot be loaded (F-LOAD-02, F-REPLAY-13).

    An offset creates a simple group, but only if the log has no record of the group (F-REPLAY-04).
    """
    groups: dict[str, Group | ConsumerGroup | None] = {}
    held: dict[str, dict[Partition, int]] = {}
    records = tuple(records)
    for record in variant.classic.counting_records(records):
        if fails_load(variant, record):
            return None
        if isinstance(record.key, ControlKey):
            continue
        group_id = record.key.group
        before = groups.get(group_id)
        if isinstance(record.key, OffsetCommitKey):
            if record.value is not None and before is None and not variant.offsets.group_waits_for_records:
                groups[group_id] = Group(timestamp=now)
            continue
        try:
            groups[group_id] = after = load_record(variant, before, record)
            if isinstance(after, ConsumerGroup):
                epochs = held.setdefault(group_id, {}) if isinstance(before, ConsumerGroup) else {}
                held[group_id] = _follow(epochs, before, after, record)
        except CannotHappen:
            return None
    for group_id in _with_offsets(variant, records) if variant.offsets.group_waits_for_records else ():
        if groups.get(group_id) is None:
            groups[group_id] = Group(timestamp=now)
    return groups


def load_offsets(variant: Variant, records: Iterable[Record]) -> Offsets:
    """Return the offsets of a log (F-REPLAY-02, 03, 05)."""
    offsets = Offsets()
    for at, record in enumerate(records):
        value = record.value
        if not variant.offsets.stores_topic_ids and isinstance(value, OffsetCommitValue):
            offsets = replay_offset(offsets, replace(record, value=replace(value, topic_id=ZERO_ID)), at)
        else:
            offsets = replay_offset(offsets, record, at)
    return offsets


def _with_offsets(variant: Variant, records: Iterable[Record]) -> list[str]:
    offsets = load_offsets(variant, records)
    places = [*[place for place, _ in offsets.committed], *[place for place, _, _ in offsets.pending]]
    return list(dict.fromkeys(place.group for place in places))


def newest_records(log: tuple[Record, ...]) -> Iterable[Record]:
    """Return the records that count. One that a later one of its key follows does not (F-REPLAY-18): it may be from
    before the log was compacted, and records between the two may be gone."""
    seen = set()
    kept = []
    for record in reversed(log):
        if isinstance(record.key, OffsetCommitKey | ControlKey):
            kept.append(record)  # transactions decide which of them counts
        elif record.key not in seen:
            seen.add(record.key)
            kept.append(record)
    return reversed(kept)


def deciding_rules(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the rules about records that decide what a load of this log makes of it."""
    log = tuple(records)
    superseded = ["F-REPLAY-18"] if len([*newest_records(log)]) < len(log) else []
    return (*superseded, *sorted({_RULES[type(record.key)] for record in log if type(record.key) in _RULES}))


def load_order(groups: Mapping[str, object], chooser: Chooser) -> list[str]:
    """Return the order in which groups are loaded: those that exist first. It has no other effect."""
    return sorted(groups, key=lambda group_id: groups[group_id] is None)


def _follow(
    epochs: dict[Partition, int], before: Group | ConsumerGroup | None, after: ConsumerGroup, record: Record
) -> dict[Partition, int]:
    """Return the partition epochs of a loading coordinator after one more record (M-PE-02).

    Only here two members can hold a partition at once, as one of them is known from an old record. The stored epoch may
    be the higher one.
    """
    key = record.key
    if not isinstance(key, ConsumerGroupCurrentMemberAssignmentKey | ConsumerGroupMemberMetadataKey):
        return epochs
    old = before.member(key.member_id) if isinstance(before, ConsumerGroup) else None
    for partition, epoch in _held(old).items():
        if epochs.get(partition) == epoch:
            del epochs[partition]
    for partition, epoch in _held(after.member(key.member_id)).items():
        if epochs.get(partition, epoch - 1) >= epoch:
            raise CannotHappen("another holds the partition, at this epoch or a later one")
        epochs[partition] = epoch
    return epochs


def _held(member: ConsumerMember | None) -> dict[Partition, int]:
    if member is None:
        return {}
    return {(topic, number): member.epoch for topic, number, _ in (*member.assigned, *member.revoking)}
