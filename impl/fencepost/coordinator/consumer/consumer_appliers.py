"""Records of consumer groups are written and applied (11.5): the same for the live coordinator and one that loads.

Each function changes the given draft. ``create`` says which records create a missing group; a tombstone never does
(F-REPLAY-06). A record that contradicts the group raises ``InternalError``, which fails a load (F-REPLAY-13).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fencepost.protocol.consumer_messages import LEAVE_EPOCH, TopicPartitions
from fencepost.protocol.consumer_records import (
    AssignedPartitions,
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
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel.errors import InternalError
from ..kernel.replay_context import Replay
from ..kernel.rules import Rules
from ..kernel.state import Group
from ..kernel.step import Step
from .draft import ConsumerDraft
from .group import NOTHING, ConsumerGroup, ConsumerGroupMember, Holding, Resolution, Share, held, new_group
from .records import NO_TIMESTAMP

#: The keys of the records of consumer groups.
KEYS: Final[tuple[type, ...]] = (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
_STATES = {state.value: state for state in MemberState}


@varies
def write_records(step: Step, records: Sequence[Record]) -> None:
    """Append records and apply them (F-RT-04). If this raises ``InternalError``, nothing is changed."""
    step.write(records)


@varies
def give_way(step: Step, group_id: str, successor: Group) -> None:
    """A group of another kind replaces the consumer group. The records that say so are not applied, since the new group
    is needed at once (X-DOWN-30)."""
    step.change_map(group_id, successor)


def apply(replay: Replay, record: Record) -> None:
    """Apply one record of a consumer group (F-REPLAY-01, F-REPLAY-06). The first record creates the group
    (F-REPLAY-14); everything in the records survives a fail-over (F-SURV-04). Raises ``InternalError`` for a group of
    another kind that is in use."""
    name = record.key.group
    draft = replay.drafts.get(name)
    if not isinstance(draft, ConsumerDraft):
        draft = _draft(replay, name, create=record.value is not None)
    if draft is not None and not _applied(replay, draft, record):
        replay.put(name, None)


def _draft(replay: Replay, name: str, *, create: bool) -> ConsumerDraft | None:
    group = replay.group(name)
    if group is None and not create:
        return None
    if not isinstance(group, ConsumerGroup):
        if group is not None and not group.gives_way:
            raise InternalError
        group = new_group(replay.rules, name, replay.new_incarnation())
        replay.put(name, group)
    draft = replay.drafts[name] = ConsumerDraft(group, replay.rules)
    return draft


def _applied(replay: Replay, draft: ConsumerDraft, record: Record) -> bool:
    """Apply one record of the group; False if it removes the group."""
    match record.key, record.value:
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue() as value:
            draft.epoch = value.epoch  # F-REPLAY-11
            draft.metadata_hash = 0 if replay.rules.has_partition_metadata else value.metadata_hash  # M-META-07
        case ConsumerGroupMetadataKey(), None:
            if draft.members or draft.target or draft.assignment_epoch != LEAVE_EPOCH:
                raise InternalError  # F-REPLAY-11
            return False
        case ConsumerGroupPartitionMetadataKey(), value:
            topics = value.topics if isinstance(value, ConsumerGroupPartitionMetadataValue) else None
            draft.partition_metadata = topics  # F-REPLAY-12
        case ConsumerGroupMemberMetadataKey(member_id=member_id), value:
            # F-REPLAY-07
            _member(draft, member_id, value if isinstance(value, ConsumerGroupMemberMetadataValue) else None)
        case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue() as value:
            draft.assignment_epoch = value.assignment_epoch  # F-REPLAY-10
            has_time = replay.rules.has_assignment_interval
            draft.assignment_timestamp = value.assignment_timestamp if has_time else NO_TIMESTAMP  # G-DATA-32
        case ConsumerGroupTargetAssignmentMetadataKey(), None:
            if draft.target:
                raise InternalError  # F-REPLAY-10
            draft.assignment_epoch = LEAVE_EPOCH
            draft.assignment_timestamp = NO_TIMESTAMP
        case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id), value:
            target = value if isinstance(value, ConsumerGroupTargetAssignmentMemberValue) else None
            draft.set_target(member_id, None if target is None else _share(target.topic_partitions))  # F-REPLAY-09
        case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id), value:
            current = value if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue) else None
            _current(replay, draft, member_id, current)  # F-REPLAY-08
        case ConsumerGroupRegularExpressionKey(regular_expression=regex), value:
            resolution = None
            if isinstance(value, ConsumerGroupRegularExpressionValue):
                resolution = Resolution(frozenset(value.topics), value.version, value.timestamp)
            draft.resolve(regex, resolution)
        case _:
            raise TypeError(f"{record.key} is not the key of a consumer group record")
    return True


def _member(draft: ConsumerDraft, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
    """F-REPLAY-07."""
    old = draft.members.get(member_id)
    if value is not None:
        draft.put(
            (old or ConsumerGroupMember(member_id))._replace(
                instance_id=value.instance_id,
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                rebalance_timeout=value.rebalance_timeout_ms,
                topic_names=frozenset(value.subscribed_topic_names),
                regex=value.subscribed_topic_regex or "",
                assignor=value.server_assignor,
                classic=value.classic_member_metadata,
            )
        )
    elif old is not None:
        if old.epoch != LEAVE_EPOCH or member_id in draft.target:
            raise InternalError
        draft.remove(old)


def _current(
    replay: Replay, draft: ConsumerDraft, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> None:
    """F-REPLAY-08; the holders of partitions follow from it (M-PE-05), also for unknown topics (F-REPLAY-15)."""
    old = draft.members.get(member_id)
    if value is not None:
        draft.put(
            (old or ConsumerGroupMember(member_id))._replace(
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=_STATES.get(value.state, MemberState.UNKNOWN),  # M-MS-04
                assigned=_holding(replay.rules, value.assigned_partitions, value.member_epoch),
                revoking=_holding(replay.rules, value.partitions_pending_revocation, value.member_epoch),
            )
        )
    elif old is not None:
        draft.put(old._replace(epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NOTHING, revoking=NOTHING))


def _holding(rules: Rules, rows: tuple[AssignedPartitions, ...], epoch: int) -> Holding:
    """The partitions of a member, with their assignment epochs; where a record has none, the member's own epoch is used
    (M-PE-06, F-REC-08)."""
    if not rules.has_assignment_epochs:
        return held(((row.topic_id, row.partitions) for row in rows), 0)
    found = {}
    for row in rows:
        epochs = row.assignment_epochs
        if epochs is None or len(epochs) != len(row.partitions):
            found[row.topic_id] = dict.fromkeys(row.partitions, max(epoch, 0))
        else:
            found[row.topic_id] = dict(zip(row.partitions, epochs, strict=True))
    return found


def _share(rows: tuple[TopicPartitions, ...]) -> Share:
    return {row.topic_id: row.partitions for row in rows}
