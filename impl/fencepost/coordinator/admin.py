"""DescribeGroups, ListGroups, DeleteGroups (5.4).

Describe and list see the *map* of groups as of the high watermark (F-RT-11), and the content of each as it is now
(C-ADM-08).
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from fencepost.protocol.view import GroupState

from . import operations, reads, records
from .consumer.records import removed_group
from .consumer.state import ConsumerGroup
from .replies import deletion_response, described_refusal
from .state import ClassicGroup, DeletionDue, Group
from .subscription import CONSUMER
from .work import Step

#: From this version on a missing group is an error with a message (C-ADM-02).
GROUP_ID_NOT_FOUND_SINCE = 6


def describe(step: Step, request: Request, body: DescribeGroupsRequest) -> None:
    """C-ADM-01…04, C-ADM-12, C-ADM-13; groups that the caller may not see come first, as Kafka's handler has it."""
    seen = reads.committed(step)
    refused = [described_refusal(name) for name in body.groups if name in request.denied]
    rows = [_described(request.version, name, seen.get(name)) for name in body.groups if name not in request.denied]
    step.reply(request.id, DescribeGroupsResponse((*refused, *rows)))


def _described(version: int, name: str, group: Group | None) -> DescribedGroup:
    if not isinstance(group, ClassicGroup):
        if version < GROUP_ID_NOT_FOUND_SINCE:
            return DescribedGroup(ErrorCode.NONE, name, GroupState.DEAD.value)
        message = f"Group {name} not found."
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, name, GroupState.DEAD.value, error_message=message)
    stable = group.state is GroupState.STABLE
    members = tuple(
        DescribedMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            (member.metadata(group.protocol_name) or b"") if stable else b"",
            member.assignment,
        )
        for member in group.members.values()
    )
    data = (group.protocol_name or "") if stable else ""
    return DescribedGroup(ErrorCode.NONE, name, group.state.value, group.protocol_type or "", data, members)


def list_groups(step: Step, request: Request, body: ListGroupsRequest) -> None:
    """C-ADM-05; ``denied`` are the groups that the caller may not describe."""
    states = {state.lower().strip() for state in body.states_filter}
    types = {kind.lower() for kind in body.types_filter}
    rows = [
        ListedGroup(name, _protocol_type(group), group.state.value, kind)
        for name, group in reads.committed(step).items()
        for kind in ("classic" if isinstance(group, ClassicGroup) else "consumer",)
        if (not states or group.state.value.lower() in states)
        and (not types or kind in types)
        and name not in request.denied
        for _ in range(reads.copies(step, (name, "")))
    ]
    step.reply(request.id, ListGroupsResponse(ErrorCode.NONE, tuple(rows)))


def _protocol_type(group: Group) -> str:
    return (group.protocol_type or "") if isinstance(group, ClassicGroup) else CONSUMER


def delete(step: Step, request: Request, body: DeleteGroupsRequest) -> None:
    """C-ADM-09. Kafka asks for share groups first, in an operation of its own that waits for the log (F-RT-16)."""
    asked = any(name not in request.denied for name in body.groups_names)
    if asked and step.committed < step.end and step.profile.fault_deletion_waits_twice:
        operations.done(step, request, callback=DeletionDue())
    else:
        delete_now(step, request, body)


def delete_now(step: Step, request: Request, body: DeleteGroupsRequest) -> None:
    """C-ADM-09; tombstones are the only records of a classic group that the live coordinator applies (C-SYNC-31)."""
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
    group = step.groups.get(name)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if isinstance(group, ConsumerGroup):
        if group.members:
            return ErrorCode.NON_EMPTY_GROUP
        step.write(removed_group(group))  # F-ORD-09
        return ErrorCode.NONE
    if group.state is not GroupState.EMPTY:
        return ErrorCode.NON_EMPTY_GROUP
    step.change_map(name, None)
    step.records.append(records.tombstone(name))  # F-ORD-13, also of a group that no record backs (C-ADM-10)
    return ErrorCode.NONE
