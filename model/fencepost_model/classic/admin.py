"""DescribeGroups and ListGroups: reads at the committed offset (rule book, 5.4)."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import DescribedGroup, DescribedMember, ListedGroup, ListGroupsRequest

from ..consumer.derive import group_state
from ..consumer.state import ConsumerGroup
from ..machines import DEAD, STABLE
from .state import Group, Member


def describe(group_id: str, group: Group | None, version: int) -> DescribedGroup:
    """Return the answer of DescribeGroups for one group (C-ADM-02…04, 12)."""
    if group is None:
        if version >= 6:
            return DescribedGroup(
                ErrorCode.GROUP_ID_NOT_FOUND,
                group_id=group_id,
                group_state=DEAD,
                error_message=f"Group {group_id} not found.",
            )
        return DescribedGroup(ErrorCode.NONE, group_id=group_id, group_state=DEAD)
    stable = group.state == STABLE
    return DescribedGroup(
        ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=group.protocol_name or "" if stable else "",
        members=tuple(_row(member, group.protocol_name if stable else None) for member in group.members),
    )


def _row(member: Member, protocol: str | None) -> DescribedMember:
    metadata = b""
    if protocol is not None:
        metadata = next((offer.metadata for offer in member.protocols if offer.name == protocol), b"")
    return DescribedMember(
        member.member_id,
        group_instance_id=member.instance,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=metadata,
        member_assignment=member.assignment,
    )


def listed(groups: Mapping[str, Group | ConsumerGroup], body: ListGroupsRequest) -> tuple[ListedGroup, ...]:
    """Return the rows of ListGroups that pass the filters on state and type (C-ADM-04, 05, 13)."""
    states = {state.strip().lower() for state in body.states_filter}
    types = {kind.lower() for kind in body.types_filter}
    rows = (_listed(group_id, group) for group_id, group in sorted(groups.items()))
    return tuple(
        row
        for row in rows
        if (not states or row.group_state.lower() in states) and (not types or row.group_type in types)
    )


def _listed(group_id: str, group: Group | ConsumerGroup) -> ListedGroup:
    if isinstance(group, ConsumerGroup):
        return ListedGroup(group_id, protocol_type="consumer", group_state=group_state(group), group_type="consumer")
    return ListedGroup(group_id, protocol_type=group.protocol_type or "", group_state=group.state, group_type="classic")
