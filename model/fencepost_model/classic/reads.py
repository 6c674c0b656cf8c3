"""Read operations run on the group map as of the high watermark (F-RT-11, C-ADM-08)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    RequestBody,
    ResponseBody,
)

from .admin import describe, listed
from .state import Group

if TYPE_CHECKING:
    from .coordinator import CoordinatorState


def is_read(body: RequestBody) -> bool:
    return isinstance(body, DescribeGroupsRequest | ListGroupsRequest)


def read(state: CoordinatorState, request: Request) -> tuple[int, ResponseBody]:
    """The answer to a read, at once: reads wait for nothing."""
    groups = _committed(state)
    body = request.body
    if isinstance(body, ListGroupsRequest):
        shown = {group_id: group for group_id, group in groups.items() if group_id not in request.denied}
        listing = tuple(row for row in listed(shown, body) for _ in range(_times(state, row.group_id)))
        return request.id, ListGroupsResponse(ErrorCode.NONE, listing)
    if isinstance(body, DescribeGroupsRequest):
        rows = (
            DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id, "")  # C-ADM-01
            if group_id in request.denied
            else describe(group_id, groups.get(group_id), request.version)
            for group_id in body.groups
        )
        return request.id, DescribeGroupsResponse(tuple(rows))
    raise TypeError(f"not a read: {type(body).__name__}")


def _times(state: CoordinatorState, group_id: str) -> int:
    """How often ListGroups shows a group (C-ADM-05): once for the map, if it is in there as of the high watermark, and
    once for each place of the log, not behind the high watermark, at which its deletion was tried. A deletion that
    failed so makes it appear twice; one that is under way makes it appear for the map entry that it removed.
    """
    tried = sum(name == group_id for _, name in state.relisted)
    changed = any(shadow.group_id == group_id for shadow in state.shadows)
    return max(tried + (not changed), 1)


def _committed(state: CoordinatorState) -> dict[str, Group]:
    """The group objects of the map at the high watermark; what is inside them is read as it is now."""
    groups = {slot.group_id: slot.group for slot in state.slots}
    for shadow in reversed(state.shadows):
        groups[shadow.group_id] = shadow.old
    return {group_id: group for group_id, group in groups.items() if group is not None}
