"""The API versions that have each request field.

A request object has the fields of every version. A field that the request's version lacks cannot have been sent, so it
must have its default (G-WIRE-01…07, 10…14): ``uncarried`` finds one that does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from .consumer_messages import ConsumerGroupHeartbeatRequest
from .messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    ListGroupsRequest,
    SyncGroupRequest,
)
from .offset_messages import (
    ZERO_ID,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
)

_EVER: Final = 1 << 15
_SHOWN: Final = 60


class Carried(NamedTuple):
    """The first and last version with a field, and the field's value in all other versions."""

    first: int = 0
    last: int = _EVER
    absent: object = None


class Row(NamedTuple):
    """A class of rows in the requests of one API; other APIs may use the same class."""

    api: type
    row: type


#: By request, or by row of a request; a field that is not listed is in every version.
CARRIED: Final[Mapping[type | Row, Mapping[str, Carried]]] = {
    JoinGroupRequest: {
        "rebalance_timeout_ms": Carried(1, absent=-1),
        "group_instance_id": Carried(5),
        "reason": Carried(8),
    },
    SyncGroupRequest: {
        "group_instance_id": Carried(3),
        "protocol_type": Carried(5),
        "protocol_name": Carried(5),
    },
    HeartbeatRequest: {"group_instance_id": Carried(3)},
    Row(LeaveGroupRequest, LeaveGroupMember): {"group_instance_id": Carried(3), "reason": Carried(5)},
    ListGroupsRequest: {"states_filter": Carried(4, absent=()), "types_filter": Carried(5, absent=())},
    ConsumerGroupHeartbeatRequest: {"subscribed_topic_regex": Carried(1)},
    OffsetCommitRequest: {
        "retention_time_ms": Carried(last=4, absent=-1),
        "group_instance_id": Carried(7),
    },
    Row(OffsetCommitRequest, OffsetCommitRequestTopic): {
        "name": Carried(last=9, absent=""),
        "topic_id": Carried(10, absent=ZERO_ID),
    },
    Row(OffsetCommitRequest, OffsetCommitRequestPartition): {"committed_leader_epoch": Carried(6, absent=-1)},
    TxnOffsetCommitRequest: {
        "generation_id": Carried(3, absent=-1),
        "member_id": Carried(3, absent=""),
        "group_instance_id": Carried(3),
    },
    Row(TxnOffsetCommitRequest, OffsetCommitRequestTopic): {
        "name": Carried(last=5, absent=""),
        "topic_id": Carried(6, absent=ZERO_ID),
    },
    Row(TxnOffsetCommitRequest, OffsetCommitRequestPartition): {"committed_leader_epoch": Carried(2, absent=-1)},
    OffsetFetchRequest: {"require_stable": Carried(7, absent=False)},
    Row(OffsetFetchRequest, OffsetFetchRequestGroup): {
        "member_id": Carried(9),
        "member_epoch": Carried(9, absent=-1),
    },
    Row(OffsetFetchRequest, OffsetFetchRequestTopic): {
        "name": Carried(last=9, absent=""),
        "topic_id": Carried(10, absent=ZERO_ID),
    },
    WriteTxnMarkerRequest: {"transaction_version": Carried(2, absent=0)},
}


class Alone(NamedTuple):
    """Up to version ``last`` a request must have exactly one of these rows."""

    field: str
    last: int


#: Requests whose early versions have one row and later ones several (G-WIRE-06, G-WIRE-23).
ALONE: Final[Mapping[type, Alone]] = {
    LeaveGroupRequest: Alone("members", 2),
    OffsetFetchRequest: Alone("groups", 7),
}
#: From this version on OffsetFetch can ask for all offsets of a group: its topics may be null (O-FETCH-08).
ALL_OFFSETS_SINCE: Final = 2


class _Plan(NamedTuple):
    """``empty``: fields that must hold their default, with the default. ``rows``: fields of rows with such fields."""

    empty: tuple[tuple[str, object], ...]
    rows: tuple[tuple[str, _Plan], ...]


def uncarried(body: Any, version: int) -> str | None:
    """Return a message about the part that the version lacks; None if it has everything."""
    kind: Any = type(body)
    plan = _plan(kind, kind, version)
    found = None if plan is None else _first(body, plan, version)
    alone = ALONE.get(kind)
    if found is None and alone is not None and version <= alone.last:
        count = len(getattr(body, alone.field))
        if count != 1:
            found = f".{alone.field} must be one row in version {version} (got {count})"
        elif kind is OffsetFetchRequest and version < ALL_OFFSETS_SINCE and body.groups[0].topics is None:
            found = f".groups[0].topics must not be None before version {ALL_OFFSETS_SINCE}"
    return None if found is None else f"{kind.__name__}{found}"


@cache
def _plan(api: Any, kind: Any, version: int) -> _Plan | None:
    """Return the fields to check in requests of that version, or in their rows; None if there are none."""
    carried = CARRIED.get(kind if kind is api else Row(api, kind), {})
    empty = tuple((name, each.absent) for name, each in carried.items() if not each.first <= version <= each.last)
    rows = []
    hints = get_type_hints(kind)
    for field in fields(kind):
        inner = _row_class(hints[field.name])
        plan = None if inner is None else _plan(api, inner, version)
        if plan is not None:
            rows.append((field.name, plan))
    return _Plan(empty, tuple(rows)) if empty or rows else None


def _row_class(hint: Any) -> Any:
    """Return the class of the rows of a field, None for a field without rows."""
    for part in (hint, *get_args(hint)):
        for each in get_args(part):
            if hasattr(each, "__dataclass_fields__"):
                return each
    return None


def _first(value: Any, plan: _Plan, version: int) -> str | None:
    for name, default in plan.empty:
        given = getattr(value, name)
        if given != default:
            return f".{name} must be {default!r} in version {version}, which does not carry it (got {_shown(given)})"
    for name, inner in plan.rows:
        for place, row in enumerate(getattr(value, name) or ()):
            found = _first(row, inner, version)
            if found is not None:
                return f".{name}[{place}]{found}"
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
