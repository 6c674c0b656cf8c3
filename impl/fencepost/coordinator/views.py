"""Groups and offsets as they can be seen from outside."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView, ResolvedRegex
from fencepost.protocol.logged import Partition, StoredOffset
from fencepost.protocol.misuse import expect
from fencepost.protocol.offset_view import OffsetsView, OffsetView
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.view import GroupView, MemberView

from .classic.group import ClassicGroup, ClassicMember
from .consumer.group import ConsumerGroup, ConsumerGroupMember
from .consumer.records import holding_rows, share_rows
from .kernel.rules import Rules
from .kernel.state import CoordinatorState
from .kernel.stored_offsets import GroupOffsets, OffsetStore


def view(state: CoordinatorState, group_id: str) -> GroupView | None:
    """The classic group in the newest state, replicated or not; None if it does not exist."""
    _expect(state)
    group = state.groups.get(group_id)
    return _view(group) if isinstance(group, ClassicGroup) else None


def views(state: CoordinatorState) -> dict[str, GroupView]:
    """Every classic group by its id."""
    _expect(state)
    return {name: _view(group) for name, group in state.groups.items() if isinstance(group, ClassicGroup)}


def consumer_view(state: CoordinatorState, group_id: str) -> ConsumerGroupView | None:
    """The consumer group in the newest state, replicated or not; None if it does not exist."""
    _expect(state)
    group = state.groups.get(group_id)
    return _consumer_group(state, group) if isinstance(group, ConsumerGroup) else None


def consumer_views(state: CoordinatorState) -> dict[str, ConsumerGroupView]:
    """Every consumer group by its id."""
    _expect(state)
    return {
        name: _consumer_group(state, group) for name, group in state.groups.items() if isinstance(group, ConsumerGroup)
    }


def group_view(state: CoordinatorState, group_id: str) -> GroupView | ConsumerGroupView | None:
    """The group in the newest state, replicated or not, whatever its kind; None if it does not exist."""
    return view(state, group_id) or consumer_view(state, group_id)


def committed_offset(state: CoordinatorState, group_id: str, partition: TopicPartition) -> OffsetView | None:
    """The committed offset of one partition in the newest state, replicated or not; None if there is none."""
    _expect(state)
    return _committed_offset(state.offsets, group_id, (partition.topic, partition.partition))


def offsets_view(state: CoordinatorState, group_id: str | None = None) -> OffsetsView:
    """All offsets in the newest state, replicated or not, or those of one group."""
    _expect(state)
    return _offsets(state.offsets, group_id)


def _expect(state: CoordinatorState) -> None:
    expect(CoordinatorState, state, "state", "pass what initial_state, step or replay returned")


def _view(group: ClassicGroup) -> GroupView:
    return GroupView(
        group_id=group.group_id,
        state=group.state,
        previous_state=group.previous_state,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader,
        members=tuple(_member(group.members[member_id]) for member_id in sorted(group.members)),
        static_members=tuple(sorted(group.static_members.items())),
        pending_join=frozenset(group.pending_join),
        pending_sync=frozenset(group.pending_sync),
        new_member_added=group.new_member_added,
    )


def _member(member: ClassicMember) -> MemberView:
    return MemberView(
        member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout,
        session_timeout_ms=member.session_timeout,
        protocols=member.protocols,
        assignment=member.assignment,
        is_new=member.is_new,
        awaiting_join=member.join is not None,
        awaiting_sync=member.sync is not None,
    )


def _consumer_group(state: CoordinatorState, group: ConsumerGroup) -> ConsumerGroupView:
    """The group in the newest state, replicated or not."""
    return ConsumerGroupView(
        group_id=group.group_id,
        state=group.state,
        group_epoch=group.epoch,
        metadata_hash=group.metadata_hash,
        assignment_epoch=group.assignment_epoch,
        assignment_timestamp=group.assignment_timestamp,
        subscription_type=group.subscription_type,
        members=tuple(_consumer_member(state, group.members[member_id]) for member_id in sorted(group.members)),
        static_members=tuple(sorted(group.static_members.items())),
        target=tuple((member_id, share_rows(group.target[member_id])) for member_id in sorted(group.target)),
        partition_epochs=tuple(
            (topic_id, partition, epochs[partition])
            for topic_id, epochs in sorted(group.partition_epochs.items())
            for partition in sorted(epochs)
        ),
        regexes=tuple(
            ResolvedRegex(regex, tuple(sorted(found.topics)), version=found.version, timestamp=found.timestamp)
            for regex, found in sorted(group.resolved.items())
        ),
        refresh_deadline=None if group.refresh is None else (group.refresh.deadline, group.refresh.epoch),
        legacy_metadata=_has_partition_metadata(state.rules, group),
    )


def _has_partition_metadata(rules: Rules, group: ConsumerGroup) -> bool:
    """Whether the log still has 4.0's record of the partitions of the group's topics (G-DATA-33). For 4.0 an empty one
    counts as none (V-34, V-72)."""
    return bool(group.partition_metadata) if rules.has_partition_metadata else group.partition_metadata is not None


def _consumer_member(state: CoordinatorState, member: ConsumerGroupMember) -> ConsumerMemberView:
    return ConsumerMemberView(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
        subscribed_topic_regex=member.regex,
        server_assignor=member.assignor,
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned=holding_rows(state.rules, member.assigned),
        pending_revocation=holding_rows(state.rules, member.revoking),
        classic=member.classic,
    )


def _offsets(store: OffsetStore, group_id: str | None = None) -> OffsetsView:
    """All stored offsets, or those of one group, each kind sorted (G-DATA-40, G-DATA-41)."""
    if group_id is None:
        groups = sorted(store.groups.items())
    else:
        found = store.groups.get(group_id)
        groups = [] if found is None else [(group_id, found)]
    pending = [(name, *row) for name, group in groups for row in sorted(_pending(group), key=itemgetter(0, 1))]
    return OffsetsView(
        committed=tuple(
            _offset(name, partition, group.committed[partition], None)
            for name, group in groups
            for partition in sorted(group.committed)
        ),
        pending=tuple(_offset(name, partition, stored, producer) for name, partition, producer, stored in pending),
        open_transactions=tuple((name, *partition, producer) for name, partition, producer, _ in pending),
    )


def _committed_offset(store: OffsetStore, group_id: str, partition: Partition) -> OffsetView | None:
    """The committed offset of one partition; None if there is none."""
    group = store.groups.get(group_id)
    stored = None if group is None else group.committed.get(partition)
    return None if stored is None else _offset(group_id, partition, stored, None)


def _pending(group: GroupOffsets) -> Iterator[tuple[Partition, int, StoredOffset]]:
    for producer, offsets in group.pending.items():
        for partition, stored in offsets.items():
            yield partition, producer, stored


def _offset(group_id: str, where: Partition, stored: StoredOffset, producer: int | None) -> OffsetView:
    topic, partition = where
    value = stored.value
    return OffsetView(
        group_id,
        topic,
        partition,
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp,
        expire_timestamp=value.expire_timestamp,
        topic_id=value.topic_id,
        record_offset=stored.place,
        producer_id=producer,
    )
