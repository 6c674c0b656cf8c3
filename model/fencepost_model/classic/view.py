"""A group of the model in the shared vocabulary (``fencepost.protocol.view``)."""

from __future__ import annotations

from fencepost.protocol.view import GroupState, GroupView, MemberView

from .state import Group


def view(group_id: str, group: Group) -> GroupView:
    """What can be seen of the group."""
    return GroupView(
        group_id=group_id,
        state=GroupState(group.state),
        previous_state=GroupState(group.previous),
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader,
        members=tuple(
            MemberView(
                member_id=member.member_id,
                group_instance_id=member.instance,
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
            for member in group.members
        ),
        static_members=tuple(sorted((m.instance, m.member_id) for m in group.members if m.instance is not None)),
        pending_join=group.pending_join,
        pending_sync=group.pending_sync,
        new_member_added=group.new_member_added,
    )
