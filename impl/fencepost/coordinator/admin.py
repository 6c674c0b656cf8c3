"""ListGroups and DeleteGroups (5.4), which apply to groups of every kind.

A list shows the *map* of groups as of the high watermark (F-RT-11), and the current content of each group (C-ADM-08).
"""

from __future__ import annotations

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from fencepost.quirks import varies

from .classic import records
from .consumer.consumer_appliers import write_records
from .consumer.group import ConsumerGroup
from .consumer.records import removed_group
from .groups import known
from .kernel import operations, reads
from .kernel.replies import deletion_response
from .kernel.state import Group
from .kernel.step import Step
from .offsets import deletion, expiry


def list_groups(step: Step, request: Request, body: ListGroupsRequest) -> None:
    """List the groups of the coordinator as of the high watermark, filtered as requested (C-ADM-05). ``denied`` has the
    groups that the caller may not describe."""
    states = {state.lower().strip() for state in body.states_filter}
    types = {kind.lower() for kind in body.types_filter}
    rows = {
        (name, ""): ListedGroup(name, protocol_type=protocol_type, group_state=state, group_type=kind)
        for name, group in reads.committed(step).items()
        for protocol_type, state, kind in (_listed(group),)
        if (not states or state.lower() in states) and (not types or kind in types) and name not in request.denied
    }
    step.reply(request.id, ListGroupsResponse(ErrorCode.NONE, reads.visible_rows(step, rows)))


def _listed(group: Group) -> tuple[str, str, str]:
    """Protocol type, state and kind of a group."""
    group = known(group)
    if isinstance(group, ConsumerGroup):
        return PROTOCOL_TYPE, group.state.value, "consumer"
    return group.protocol_type or "", group.state.value, "classic"


@varies
def delete(step: Step, request: Request, body: DeleteGroupsRequest) -> None:
    """Delete the groups at once (C-ADM-09)."""
    delete_empty(step, request, body)


def delete_empty(step: Step, request: Request, body: DeleteGroupsRequest) -> None:
    """Delete groups that are empty, with one result for each name (C-ADM-09). Tombstones are the only records of a
    classic group that the live coordinator applies (C-SYNC-31)."""
    denied = request.denied
    results = {
        name: ErrorCode.GROUP_AUTHORIZATION_FAILED if name in denied else _delete(step, name)
        for name in dict.fromkeys(body.groups_names)
    }
    reply = deletion_response(request, results)
    if results.keys() <= denied:
        step.reply(request.id, reply)
    else:
        operations.done(step, request, reply=reply)


def _delete(step: Step, name: str) -> ErrorCode:
    group = step.memory.groups.get(name)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if not expiry.is_empty(group):
        return ErrorCode.NON_EMPTY_GROUP
    deletion.delete_all(step, name)
    remove(step, group)
    return ErrorCode.NONE


def remove(step: Step, group: Group) -> None:
    """Remove an empty group by its tombstones (F-ORD-09, F-ORD-13), even if no record backs it (C-ADM-10)."""
    if isinstance(group, ConsumerGroup):
        write_records(step, removed_group(group))  # F-ORD-09
        return
    step.change_map(group.group_id, None)
    step.log.records.append(records.tombstone(group.group_id))  # F-ORD-13


def expire(step: Step) -> None:
    """Run the offset expiry: remove old offsets, and empty groups without any (O-EXP-20)."""
    expiry.run(step, remove)
