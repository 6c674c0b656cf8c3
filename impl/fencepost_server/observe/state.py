"""The current state for the status page: groups with their members, assignments and lag."""

from __future__ import annotations

import asyncio

from fencepost.protocol.consumer_messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from fencepost.protocol.offset_messages import (
    NEWEST_BY_NAME,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from fencepost_server.node import Node
from fencepost_server.observe.rows import GroupRow, MembersRow, OffsetRow, assigned, offset_row

#: the number of groups to show with their members
MOST_GROUPS = 200


async def groups(node: Node) -> list[GroupRow]:
    """Return the first ``MOST_GROUPS`` groups by name, each with its members, assignments and lag."""
    listed = await node.groups.request(ListGroupsRequest())
    if not isinstance(listed, ListGroupsResponse):
        return []
    shown = sorted(listed.groups, key=lambda row: row.group_id)[:MOST_GROUPS]
    names = tuple(row.group_id for row in shown)
    if not names:
        return []
    lags = await _lags(node, names)
    members = await _members(node, names)
    return [
        {
            "group": row.group_id,
            "type": row.group_type,
            "state": row.group_state,
            "protocol": row.protocol_type,
            **members.get(row.group_id, {"members": []}),
            "offsets": lags.get(row.group_id, []),
            "lag": sum(each["lag"] for each in lags.get(row.group_id, [])),
        }
        for row in shown
    ]


async def numbers(node: Node) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of members of each group, and the lag of each group that has committed offsets."""
    listed = await node.groups.request(ListGroupsRequest())
    names = tuple(row.group_id for row in listed.groups) if isinstance(listed, ListGroupsResponse) else ()
    members, lag = dict.fromkeys(names, 0), dict[str, int]()
    for first in range(0, len(names), MOST_GROUPS):
        some = names[first : first + MOST_GROUPS]
        members |= {name: len(each["members"]) for name, each in (await _members(node, some)).items()}
        lag |= {name: sum(row["lag"] for row in rows) for name, rows in (await _lags(node, some)).items()}
        await asyncio.sleep(0)  # requests of clients come first
    return members, lag


async def states(node: Node) -> dict[str, float]:
    """Return the number of groups in each state."""
    listed = await node.groups.request(ListGroupsRequest())
    found: dict[str, float] = {}
    for row in listed.groups if isinstance(listed, ListGroupsResponse) else ():
        found[row.group_state] = found.get(row.group_state, 0) + 1
    return found


async def _lags(node: Node, names: tuple[str, ...]) -> dict[str, list[OffsetRow]]:
    asked = OffsetFetchRequest(tuple(OffsetFetchRequestGroup(name) for name in names))
    answer = await node.groups.request(asked, version=NEWEST_BY_NAME[OffsetFetchRequest])
    found: dict[str, list[OffsetRow]] = {}
    for group in answer.groups if isinstance(answer, OffsetFetchResponse) else ():
        for topic in group.topics:
            for row in topic.partitions:
                log = node.topics.partition(topic.name, row.partition_index)
                end = None if log is None else log.high
                shown = offset_row(topic.name, row.partition_index, row.committed_offset, end)
                found.setdefault(group.group_id, []).append(shown)
    return found


async def _members(node: Node, names: tuple[str, ...]) -> dict[str, MembersRow]:
    found: dict[str, MembersRow] = {}
    classic = await node.groups.request(DescribeGroupsRequest(names))
    for group in classic.groups if isinstance(classic, DescribeGroupsResponse) else ():
        view = node.groups.view(group.group_id)
        if group.error_code is ErrorCode.NONE and view is not None:
            found[group.group_id] = {
                "assignor": group.protocol_data,
                "generation": view.generation_id,
                "leader": view.leader,
                "members": [
                    {
                        "member": row.member_id,
                        "instance": row.group_instance_id,
                        "client": row.client_id,
                        "host": row.client_host,
                        "assignment": assigned(row.member_assignment),
                    }
                    for row in group.members
                ],
            }
    consumer = await node.groups.request(ConsumerGroupDescribeRequest(names))
    for described in consumer.groups if isinstance(consumer, ConsumerGroupDescribeResponse) else ():
        if described.error_code is ErrorCode.NONE:
            found[described.group_id] = {
                "assignor": described.assignor_name,
                "epoch": described.group_epoch,
                "members": [
                    {
                        "member": one.member_id,
                        "instance": one.instance_id,
                        "client": one.client_id,
                        "host": one.client_host,
                        "epoch": one.member_epoch,
                        "assignment": {part.topic_name: list(part.partitions) for part in one.assignment},
                        "target": {part.topic_name: list(part.partitions) for part in one.target_assignment},
                    }
                    for one in described.members
                ],
            }
    return found
