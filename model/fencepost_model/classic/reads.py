"""Read operations, which run on the group map as of the high watermark (F-RT-11, C-ADM-08)."""

from __future__ import annotations

from itertools import chain, product
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
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
from fencepost.protocol.settings import Settings

from ..consumer.derive import votes
from ..consumer.describe import describe as describe_consumer
from ..consumer.describe import describe_members
from ..consumer.gate import refused_row
from ..consumer.state import ConsumerGroup
from .admin import describe, listed
from .coordinator_state import CoordinatorState
from .state import Group

if TYPE_CHECKING:
    from ..variant import Variant

AnyGroup: TypeAlias = Group | ConsumerGroup


class Ways(NamedTuple):
    """The coordinator's settings and the variant of its rules."""

    settings: Settings
    variant: Variant


#: The requests that only read, each with the rule of its answer.
READ_RULES: Final[dict[type[RequestBody], str]] = {
    DescribeGroupsRequest: "C-ADM-03",
    ListGroupsRequest: "C-ADM-05",
    ConsumerGroupDescribeRequest: "M-DESC-01",
}


def is_read(body: RequestBody) -> bool:
    return type(body) in READ_RULES


def read(settings: Settings, variant: Variant, state: CoordinatorState, request: Request) -> list[ResponseBody]:
    """Return the possible answers of a read, which waits for nothing. There are several if votes are tied, or if Kafka
    may overlook earlier entries of a map."""
    groups = committed(state)
    body = request.body
    if isinstance(body, ListGroupsRequest):
        shown = {group_id: group for group_id, group in groups.items() if group_id not in request.denied}
        ways_of = [[(row,) * times for times in _times(state, row.group_id)] for row in listed(shown, body)]
        return [ListGroupsResponse(ErrorCode.NONE, tuple(chain(*ways))) for ways in product(*ways_of)]
    if isinstance(body, DescribeGroupsRequest):
        rows = (
            DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id, group_state="")  # C-ADM-01
            if group_id in request.denied
            else describe(group_id, _classic(groups.get(group_id)), request.version)
            for group_id in body.groups
        )
        return [DescribeGroupsResponse(tuple(rows))]
    if isinstance(body, ConsumerGroupDescribeRequest):
        ways = Ways(settings, variant)
        rows_of = [_described(ways, state, request, groups.get(group_id), group_id) for group_id in body.group_ids]
        return [ConsumerGroupDescribeResponse(rows) for rows in product(*rows_of)]
    raise TypeError(f"not a read: {type(body).__name__}")


def _described(
    ways: Ways, state: CoordinatorState, request: Request, group: AnyGroup | None, group_id: str
) -> list[DescribedConsumerGroup]:
    """Return the possible rows for a group, one for each assignor that may win (M-DESC-01).

    A member that a failed append touched may be listed more than once, see ``_copies``.
    """
    row = refused_row(request, group_id)
    if row is not None:
        return [row]
    if not isinstance(group, ConsumerGroup):
        return [DescribedConsumerGroup(ErrorCode.GROUP_ID_NOT_FOUND, group_id=group_id)]
    assignors = votes(ways.variant, ways.settings, group.members)
    rows = describe_members(ways.variant, group, state.consumer.image)
    rearmed = (
        tuple([row for row in rows for _ in range(1, _copies(state, group_id, row.member_id))]) if state.doubled else ()
    )
    found = [
        describe_consumer(group_id, group, shown, assignor, request.denied_topics)
        for shown in ([(*rows, *rearmed), rows] if rearmed else [rows])
        for assignor in assignors
    ]
    if rearmed:  # or the answer fails on the second copy
        found.append(DescribedConsumerGroup(ErrorCode.UNKNOWN_SERVER_ERROR, group_id=group_id))
    return found


def _copies(state: CoordinatorState, group_id: str, member_id: str) -> int:
    """Return how often a member is listed (M-DESC-01, the fault of C-ADM-05).

    It is listed once for the map, if it is there as of the high watermark. It is listed once more for each place of the
    log, at or above the high watermark, at which it was exchanged for another or was to be. Those places count up to
    the first exchange that is in the log, or up to a conversion of the group: a group that is converted back has a new
    map.
    """
    places = {behind for behind, of, member in state.doubled if (of, member) == (group_id, member_id)}
    later = [view for view in state.committed_views if view.group_id == group_id]
    after = [view.old for view in later[1:]]
    after += [slot.group for slot in state.slots if slot.group_id == group_id]
    for view, new in zip(later, after, strict=False):
        if not isinstance(view.old, ConsumerGroup):
            continue
        if not isinstance(new, ConsumerGroup):
            return sum(place < view.behind for place in places) + 1
        if member_id in view.members:
            return max(sum(place < view.behind for place in places), 1)
    return len(places) + 1


def _classic(group: AnyGroup | None) -> Group | None:
    return group if isinstance(group, Group) else None


def _times(state: CoordinatorState, group_id: str) -> list[int]:
    """Return how often ListGroups may list a group (C-ADM-05).

    It is listed once for the map, if it is there as of the high watermark. It is listed once more for each place of the
    log, at or above the high watermark, at which its deletion was tried. So a failed deletion lists the group twice,
    and one in progress lists the map entry that it removed. Kafka may overlook any place where a deletion was tried, as
    the tables of those places can outgrow the map.
    """
    tried = len({gone.behind for gone in state.relisted if gone.group_id == group_id and gone.since <= 0})
    changed = any(view.entry and view.group_id == group_id for view in state.committed_views)
    if not tried:
        return [1]
    return [*range(max(tried + (not changed), 1), (not changed) - 1, -1)]


def committed(state: CoordinatorState) -> dict[str, AnyGroup]:
    """Return the group objects of the map at the high watermark; the contents of classic groups are read as they are
    now."""
    groups = {slot.group_id: slot.group for slot in state.slots}
    for view in reversed(state.committed_views):
        groups[view.group_id] = view.old
    return {group_id: group for group_id, group in groups.items() if group is not None}
