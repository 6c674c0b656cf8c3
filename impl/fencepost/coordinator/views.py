"""A group as it can be seen from outside."""

from __future__ import annotations

from fencepost.protocol.view import GroupView, MemberView

from .state import CoordinatorState, Group, Member


def view(state: CoordinatorState, group_id: str) -> GroupView | None:
    """The group as the newest state has it, replicated or not; None if there is none."""
    group = state.groups.get(group_id)
    return None if group is None else _view(group)


def views(state: CoordinatorState) -> dict[str, GroupView]:
    """Every group by its id."""
    return {name: _view(group) for name, group in state.groups.items()}


def _view(group: Group) -> GroupView:
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
        pending_join=group.pending_join,
        pending_sync=group.pending_sync,
        new_member_added=group.new_member_added,
    )


def _member(member: Member) -> MemberView:
    return MemberView(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout,
        member.session_timeout,
        member.protocols,
        member.assignment,
        member.is_new,
        member.join is not None,
        member.sync is not None,
    )
