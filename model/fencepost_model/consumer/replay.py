"""The effect of a record on a group (rule book, 11.5). The live coordinator changes hard state in no other way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
from fencepost.protocol.consumer_view import MemberState, ResolvedRegex
from fencepost.protocol.records import Record

from ..machines import C_STABLE, C_UNKNOWN, C_UNRELEASED, C_UNREVOKED
from .derive import subscription_type
from .refusal import CannotHappen
from .rows import to_held, to_target
from .state import ConsumerGroup, Member, new_group

if TYPE_CHECKING:
    from ..variant import Variant

_STATES: Final = {
    MemberState.STABLE.value: C_STABLE,
    MemberState.UNREVOKED_PARTITIONS.value: C_UNREVOKED,
    MemberState.UNRELEASED_PARTITIONS.value: C_UNRELEASED,
}
BYTES: Final = {state: byte for byte, state in _STATES.items()} | {C_UNKNOWN: MemberState.UNKNOWN.value}


def replay(variant: Variant, group: ConsumerGroup | None, record: Record) -> ConsumerGroup | None:
    """Return the consumer group after one of its records, or None if there is none. Raises CannotHappen
    (F-REPLAY-13)."""
    key, value = record.key, record.value
    if value is None:
        return None if group is None else _tombstone(group, record)  # F-REPLAY-06
    if group is None:
        group = new_group(variant.consumer.first_epoch)
    if isinstance(value, ConsumerGroupMemberMetadataValue) and isinstance(key, ConsumerGroupMemberMetadataKey):
        return _metadata(variant, group, key.member_id, value)
    if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
        assert isinstance(key, ConsumerGroupCurrentMemberAssignmentKey)
        return _current(variant, group, key.member_id, value)
    if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
        assert isinstance(key, ConsumerGroupTargetAssignmentMemberKey)
        targets = dict(group.target)
        targets[key.member_id] = to_target(value.topic_partitions)
        return group._replace(target=tuple(sorted(targets.items())))  # F-REPLAY-09
    if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):  # F-REPLAY-10
        at_ms = value.assignment_timestamp if variant.consumer.spaces_targets else 0
        return group._replace(assignment_epoch=value.assignment_epoch, timestamp=at_ms)
    if isinstance(value, ConsumerGroupMetadataValue):  # F-REPLAY-11
        return group._replace(epoch=value.epoch, hash=value.metadata_hash if variant.consumer.stores_hash else 0)
    if isinstance(value, ConsumerGroupPartitionMetadataValue):  # F-REPLAY-12
        metadata = () if variant.consumer.stores_hash else value.topics
        return group._replace(legacy=bool(metadata) or variant.consumer.stores_hash, metadata=metadata)
    if isinstance(value, ConsumerGroupRegularExpressionValue):
        assert isinstance(key, ConsumerGroupRegularExpressionKey)
        rows = {row.regex: row for row in group.regexes}
        name = key.regular_expression
        rows[name] = ResolvedRegex(name, value.topics, version=value.version, timestamp=value.timestamp)
        return group._replace(regexes=tuple([rows[regex] for regex in sorted(rows)]))
    raise TypeError(f"not a record of a consumer group: {type(value).__name__}")


def _put(group: ConsumerGroup, member: Member) -> tuple[Member, ...]:
    members = {each.member_id: each for each in group.members}
    members[member.member_id] = member
    return tuple([members[member_id] for member_id in sorted(members)])


def _with(group: ConsumerGroup, member: Member) -> ConsumerGroup:
    """Return the group with a changed member. Every such change computes the subscription type again (G-DATA-22), and
    maps the member's instance id to it, even a tombstone of its assignment (F-REPLAY-08)."""
    members, statics = _put(group, member), group.statics
    if member.instance is not None and group.held_by(member.instance) != member.member_id:
        statics = tuple(sorted({**dict(statics), member.instance: member.member_id}.items()))
    return group._replace(members=members, type=subscription_type(members, group.regexes), statics=statics)


def _metadata(
    variant: Variant, group: ConsumerGroup, member_id: str, value: ConsumerGroupMemberMetadataValue
) -> ConsumerGroup:
    """Replay MemberMetadata (F-REPLAY-07). A former instance id is no longer mapped to the member (M-STATIC-13)."""
    old = group.member(member_id) or Member(member_id)
    member = old._replace(
        instance=value.instance_id,
        rack=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout=value.rebalance_timeout_ms,
        names=tuple(sorted(value.subscribed_topic_names)),
        regex=value.subscribed_topic_regex or "",
        assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )
    if old.instance not in (None, member.instance) and variant.consumer.former_instance_is_free:
        group = group._replace(statics=tuple([row for row in group.statics if row != (old.instance, member_id)]))
    return _with(group, member)


def _current(
    variant: Variant, group: ConsumerGroup, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerGroup:
    """Replay CurrentAssignment (F-REPLAY-08, F-REC-08)."""
    with_epochs = variant.consumer.stores_assignment_epochs
    member = (group.member(member_id) or Member(member_id))._replace(
        epoch=value.member_epoch,
        previous=value.previous_member_epoch,
        state=_STATES.get(value.state, C_UNKNOWN),  # M-MS-04
        assigned=to_held(value.assigned_partitions, value.member_epoch, with_epochs),
        revoking=to_held(value.partitions_pending_revocation, value.member_epoch, with_epochs),
    )
    return _with(group, member)


def _tombstone(group: ConsumerGroup, record: Record) -> ConsumerGroup | None:
    key = record.key
    if isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
        member = group.member(key.member_id)
        if member is None:
            return group
        gone = member._replace(epoch=-1, previous=-1, assigned=(), revoking=())  # the state stays
        return _with(group, gone)
    if isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
        return group._replace(target=tuple([row for row in group.target if row[0] != key.member_id]))
    if isinstance(key, ConsumerGroupMemberMetadataKey):
        member = group.member(key.member_id)
        if member is None:
            return group
        if member.epoch != -1 or group.target_of(key.member_id) is not None:
            raise CannotHappen("a member with an assignment is removed")  # F-REPLAY-07
        members = tuple([each for each in group.members if each.member_id != key.member_id])
        return group._replace(
            members=members,
            type=subscription_type(members, group.regexes),
            statics=tuple([row for row in group.statics if row != (member.instance, key.member_id)]),
        )
    if isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
        if group.target:
            raise CannotHappen("the target epoch is removed before the targets")  # F-REPLAY-10
        return group._replace(assignment_epoch=-1, timestamp=0)
    if isinstance(key, ConsumerGroupMetadataKey):
        if group.members or group.target or group.assignment_epoch != -1:
            raise CannotHappen("a group that is in use is removed")  # F-REPLAY-11
        return None
    if isinstance(key, ConsumerGroupPartitionMetadataKey):
        return group._replace(legacy=False, metadata=())
    if isinstance(key, ConsumerGroupRegularExpressionKey):
        return group._replace(regexes=tuple([row for row in group.regexes if row.regex != key.regular_expression]))
    raise TypeError(f"not a record of a consumer group: {type(key).__name__}")
