"""Split a request for many groups by partition, and merge the responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, cast

from fencepost.protocol.consumer_messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    RequestBody,
    ResponseBody,
)
from fencepost.protocol.offset_messages import OffsetFetchRequest, OffsetFetchResponse, WriteTxnMarkerRequest
from fencepost.sharding import partition_for

_Row = TypeVar("_Row")
_OF_SEVERAL: Final[frozenset[type]] = frozenset(
    {
        ListGroupsRequest,
        DescribeGroupsRequest,
        ConsumerGroupDescribeRequest,
        DeleteGroupsRequest,
        OffsetFetchRequest,
        WriteTxnMarkerRequest,
    }
)


def split(body: RequestBody, partitions: int) -> dict[int, RequestBody]:
    """Return the request for each partition. A request for one group goes to the group's partition, ListGroups to all.
    Raises ``IllegalEvent`` for WriteTxnMarkers, which names its partitions itself (O-TXN-08)."""
    if isinstance(body, ListGroupsRequest):
        return dict.fromkeys(range(partitions), body)
    if isinstance(body, DescribeGroupsRequest):
        return {place: DescribeGroupsRequest(rows) for place, rows in _by_partition(body.groups, partitions).items()}
    if isinstance(body, ConsumerGroupDescribeRequest):
        found = _by_partition(body.group_ids, partitions)
        return {place: ConsumerGroupDescribeRequest(rows) for place, rows in found.items()}
    if isinstance(body, DeleteGroupsRequest):
        found = _by_partition(body.groups_names, partitions)
        return {place: DeleteGroupsRequest(rows) for place, rows in found.items()}
    if isinstance(body, OffsetFetchRequest):
        groups: dict[int, list[int]] = {}
        for place, group in enumerate(body.groups):
            groups.setdefault(partition_for(group.group_id, partitions), []).append(place)
        return {
            partition: OffsetFetchRequest(
                tuple(body.groups[place] for place in places), require_stable=body.require_stable
            )
            for partition, places in groups.items()
        }
    if isinstance(body, WriteTxnMarkerRequest):
        raise IllegalEvent("a marker belongs to one partition: pass it as OnPartition(partition, request)")
    return {partition_for(body.group_id, partitions): body}


def only(body: RequestBody, partitions: int) -> int | None:
    """Return the partition of a request for one group; None for a request that ``split`` divides."""
    if type(body) in _OF_SEVERAL:
        return None
    return partition_for(cast("HeartbeatRequest", body).group_id, partitions)  # all other bodies have a group_id too


def merge(body: RequestBody, answers: Mapping[int, ResponseBody]) -> ResponseBody:
    """Merge the partitions' responses: rows in the order of the request, each with its own error. ListGroups has no
    groups if a partition is still loading. A partition that another broker leads returns an empty list."""
    found = [answers[partition] for partition in sorted(answers)]
    if isinstance(body, ListGroupsRequest):
        lists = [each for each in found if isinstance(each, ListGroupsResponse)]
        wrong = next((each for each in lists if each.error_code is not ErrorCode.NONE), None)
        return wrong or ListGroupsResponse(ErrorCode.NONE, tuple(row for each in lists for row in each.groups))
    if isinstance(body, DescribeGroupsRequest):
        described = [row for each in found if isinstance(each, DescribeGroupsResponse) for row in each.groups]
        return DescribeGroupsResponse(_in_order(body.groups, described, [row.group_id for row in described]))
    if isinstance(body, ConsumerGroupDescribeRequest):
        rows = [row for each in found if isinstance(each, ConsumerGroupDescribeResponse) for row in each.groups]
        return ConsumerGroupDescribeResponse(_in_order(body.group_ids, rows, [row.group_id for row in rows]))
    if isinstance(body, DeleteGroupsRequest):
        deleted = [row for each in found if isinstance(each, DeleteGroupsResponse) for row in each.results]
        return DeleteGroupsResponse(_in_order(body.groups_names, deleted, [row.group_id for row in deleted]))
    if isinstance(body, OffsetFetchRequest):
        fetched = [row for each in found if isinstance(each, OffsetFetchResponse) for row in each.groups]
        asked = [group.group_id for group in body.groups]
        return OffsetFetchResponse(_in_order(asked, fetched, [row.group_id for row in fetched]))
    return found[0]


def _by_partition(names: Sequence[str], partitions: int) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for name in names:
        found.setdefault(partition_for(name, partitions), []).append(name)
    return {partition: tuple(rows) for partition, rows in found.items()}


def _in_order(asked: Sequence[str], rows: Sequence[_Row], names: Sequence[str]) -> tuple[_Row, ...]:
    """Sort rows by the first place of their group in the request; rows of the same group stay together."""
    place = {name: at for at, name in reversed(list(enumerate(asked)))}
    order = sorted(range(len(rows)), key=lambda at: place.get(names[at], len(asked)))
    return tuple(rows[at] for at in order)
