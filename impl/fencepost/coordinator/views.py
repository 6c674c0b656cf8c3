"""Groups and offsets as they can be seen from outside."""

from __future__ import annotations

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.misuse import expect
from fencepost.protocol.offset_view import OffsetsView, OffsetView
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.view import GroupView, MemberView

from .classic.group import ClassicGroup, ClassicMember
from .consumer import views as consumer
from .consumer.group import ConsumerGroup
from .kernel.state import CoordinatorState
from .offsets import views as offsets


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
    return consumer.view(state, group) if isinstance(group, ConsumerGroup) else None


def consumer_views(state: CoordinatorState) -> dict[str, ConsumerGroupView]:
    """Every consumer group by its id."""
    _expect(state)
    return {
        name: consumer.view(state, group) for name, group in state.groups.items() if isinstance(group, ConsumerGroup)
    }


def group_view(state: CoordinatorState, group_id: str) -> GroupView | ConsumerGroupView | None:
    """The group in the newest state, replicated or not, whatever its kind; None if it does not exist."""
    return view(state, group_id) or consumer_view(state, group_id)


def committed_offset(state: CoordinatorState, group_id: str, partition: TopicPartition) -> OffsetView | None:
    """The committed offset of one partition in the newest state, replicated or not; None if there is none."""
    _expect(state)
    return offsets.committed(state.offsets, group_id, (partition.topic, partition.partition))


def offsets_view(state: CoordinatorState, group_id: str | None = None) -> OffsetsView:
    """All offsets in the newest state, replicated or not, or those of one group."""
    _expect(state)
    return offsets.view(state.offsets, group_id)


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
