"""DescribeGroups (5.4): the *map* of groups as of the high watermark (F-RT-11), the current content of each group
(C-ADM-08)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import (
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from fencepost.protocol.view import GroupState

from ..kernel import reads
from ..kernel.replies import described_error
from ..kernel.state import Group
from ..kernel.step import Step
from .group import ClassicGroup

#: From this version on a missing group is an error with a message (C-ADM-02).
GROUP_ID_NOT_FOUND_SINCE = 6


def describe(step: Step, request: Request, body: DescribeGroupsRequest) -> None:
    """Answer with the state and the members of each requested group (C-ADM-01…04, C-ADM-12, C-ADM-13).

    Groups that the caller may not see come first, as in Kafka's handler.
    """
    rejected = [described_error(name) for name in body.groups if name in request.denied]
    rows = [
        _described(request.version, name, reads.committed_group(step, name))
        for name in body.groups
        if name not in request.denied
    ]
    step.reply(request.id, DescribeGroupsResponse((*rejected, *rows)))


def _described(version: int, name: str, group: Group | None) -> DescribedGroup:
    if not isinstance(group, ClassicGroup):
        if version < GROUP_ID_NOT_FOUND_SINCE:
            return DescribedGroup(ErrorCode.NONE, group_id=name, group_state=GroupState.DEAD.value)
        message = f"Group {name} not found." if group is None else f"Group {name} is not a classic group."
        return DescribedGroup(
            ErrorCode.GROUP_ID_NOT_FOUND, group_id=name, group_state=GroupState.DEAD.value, error_message=message
        )
    stable = group.state is GroupState.STABLE
    members = tuple(
        DescribedMember(
            member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=(member.metadata(group.protocol_name) or b"") if stable else b"",
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    )
    data = (group.protocol_name or "") if stable else ""
    return DescribedGroup(
        ErrorCode.NONE,
        group_id=name,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=data,
        members=members,
    )
