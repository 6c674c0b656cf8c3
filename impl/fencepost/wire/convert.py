"""Conversion of kio's entities to the project's messages, and to plain JSON for APIs without a message here.

Field names agree (both are Kafka's, in snake case), so one walk over the fields serves all messages and versions. A
field that a version does not carry keeps Kafka's default (G-WIRE-01…04, 12…14).
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, Final, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from fencepost.protocol import consumer_messages, messages, offset_messages
from fencepost.protocol.errors import ErrorCode

#: types of values that are the same in JSON
_PLAIN: Final = frozenset((int, str, bool, float, NoneType))

#: kio's name of each API that the coordinator's messages cover, with the classes of request and response.
GROUP_APIS: dict[str, tuple[type, type]] = {
    "join_group": (messages.JoinGroupRequest, messages.JoinGroupResponse),
    "sync_group": (messages.SyncGroupRequest, messages.SyncGroupResponse),
    "heartbeat": (messages.HeartbeatRequest, messages.HeartbeatResponse),
    "leave_group": (messages.LeaveGroupRequest, messages.LeaveGroupResponse),
    "describe_groups": (messages.DescribeGroupsRequest, messages.DescribeGroupsResponse),
    "list_groups": (messages.ListGroupsRequest, messages.ListGroupsResponse),
    "delete_groups": (messages.DeleteGroupsRequest, messages.DeleteGroupsResponse),
    "consumer_group_heartbeat": (
        consumer_messages.ConsumerGroupHeartbeatRequest,
        consumer_messages.ConsumerGroupHeartbeatResponse,
    ),
    "consumer_group_describe": (
        consumer_messages.ConsumerGroupDescribeRequest,
        consumer_messages.ConsumerGroupDescribeResponse,
    ),
}

#: The same for the APIs of offsets.
OFFSET_APIS: dict[str, tuple[type, type]] = {
    "offset_commit": (offset_messages.OffsetCommitRequest, offset_messages.OffsetCommitResponse),
    "offset_fetch": (offset_messages.OffsetFetchRequest, offset_messages.OffsetFetchResponse),
    "offset_delete": (offset_messages.OffsetDeleteRequest, offset_messages.OffsetDeleteResponse),
    "txn_offset_commit": (offset_messages.TxnOffsetCommitRequest, offset_messages.TxnOffsetCommitResponse),
}
_APIS: Final = {**GROUP_APIS, **OFFSET_APIS}

_NAMES: Final = {request: api for api, (request, _) in _APIS.items()}

#: The first versions of LeaveGroup with several members, and of OffsetFetch with several groups.
_SEVERAL_MEMBERS: Final = 3
_SEVERAL_GROUPS: Final = 8

#: The zero topic id, which kio reads as None.
_NO_TOPIC: Final = bytes(16)

#: Defaults of fields that have none in the project's message, for versions that do not carry them.
_ABSENT: dict[str, Any] = {
    "rebalance_timeout_ms": -1,  # JoinGroup v0 (G-WIRE-01)
    "group_id": "",
    "group_instance_id": None,
    "protocol_type": None,
    "protocol_name": None,
    "group_state": "",  # ListGroups v0–3 (G-WIRE-13)
    "group_type": "",
}


def milliseconds(span: timedelta) -> int:
    """Return a duration in whole milliseconds."""
    return span // timedelta(milliseconds=1)


def _error(value: Any) -> ErrorCode | int:
    """Return the error code; the plain number if group coordination does not use it, so that a trace can contain it."""
    try:
        return ErrorCode(value.value)
    except ValueError:
        return int(value.value)


def _rows(values: Any) -> Any:
    """Return the rows of an assignment. In ConsumerGroupHeartbeat and ConsumerGroupDescribe they are wrapped in a
    message that has nothing else."""
    return getattr(values, "topic_partitions", values)


def _bytes(value: Any) -> bytes:
    if value is None:
        return _NO_TOPIC
    return value.bytes if isinstance(value, UUID) else bytes(value)


def _converter(hint: Any) -> Callable[[Any], Any]:
    if hint is ErrorCode:
        return _error
    if hint is bytes:
        return _bytes
    if get_origin(hint) is tuple:
        item = _converter(get_args(hint)[0])
        return lambda values: tuple([item(value) for value in _rows(values)])
    if NoneType in get_args(hint):
        (inner,) = [_converter(part) for part in get_args(hint) if part is not NoneType]
        return lambda value: None if value is None else inner(value)
    if is_dataclass(hint) and isinstance(hint, type):
        return lambda entity: _build(hint, entity)
    if hint is str:
        return str
    return lambda value: value


@cache
def plan(target: type, source: type) -> tuple[tuple[str, str | None, Callable[[Any], Any], Any], ...]:
    """Return, for each field of the target: its name, the source's field or None, the conversion, the default."""
    hints = get_type_hints(target)
    there = {field.name for field in fields(source)}
    plan = []
    for field in fields(target):
        name = field.name.removesuffix("_ms")
        convert: Callable[[Any], Any] = milliseconds if name != field.name else _converter(hints[field.name])
        default = _ABSENT.get(field.name) if field.default is MISSING else field.default
        plan.append((field.name, name if name in there else None, convert, default))
    return tuple(plan)


def _build(target: type, entity: Any) -> Any:
    source_type: type = type(entity)
    return target(
        **{
            name: default if source is None else convert(getattr(entity, source))
            for name, source, convert, default in plan(target, source_type)
        }
    )


def api_of(body: messages.RequestBody) -> str:
    """Return kio's name of a request's API."""
    return _NAMES[type(body)]


def to_request_class(api: str, version: int) -> type | None:
    """Return the project's class of an API's requests in a version; None if ``to_request`` does more than copy their
    fields."""
    if api not in _APIS or api == "offset_delete":
        return None
    if version < {"leave_group": _SEVERAL_MEMBERS, "offset_fetch": _SEVERAL_GROUPS}.get(api, 0):
        return None
    return _APIS[api][0]


def response_class(api: str) -> Any:
    """Return the project's class of an API's answers; None if the API is not one of groups or offsets."""
    return _APIS[api][1] if api in _APIS else None


def values_of(body: messages.RequestBody, version: int) -> Any:
    """Return the values from which ``fill`` makes a request in a version. Old versions have a single group, and a
    single member that leaves (G-WIRE-06, G-WIRE-23)."""
    if isinstance(body, offset_messages.OffsetFetchRequest) and version < _SEVERAL_GROUPS:
        (group,) = body.groups
        return {"group_id": group.group_id, "topics": group.topics, "require_stable": body.require_stable}
    if isinstance(body, messages.LeaveGroupRequest) and version < _SEVERAL_MEMBERS:
        return {"group_id": body.group_id, "member_id": body.members[0].member_id}
    if isinstance(body, offset_messages.OffsetDeleteRequest):  # each partition is a row with only a number
        topics = [
            {"name": topic.name, "partitions": [{"partition_index": number} for number in topic.partition_indexes]}
            for topic in body.topics
        ]
        return {"group_id": body.group_id, "topics": topics}
    return body


def to_request(api: str, entity: Any) -> messages.RequestBody:
    """Return the project's message for kio's request entity of any version. ``api``: a key of GROUP_APIS or
    OFFSET_APIS."""
    if api == "leave_group" and not hasattr(entity, "members"):  # v0–2 (G-WIRE-23)
        return messages.LeaveGroupRequest(str(entity.group_id), (messages.LeaveGroupMember(entity.member_id),))
    if api == "offset_fetch" and not hasattr(entity, "groups"):  # v1–7 (G-WIRE-06)
        group: offset_messages.OffsetFetchRequestGroup = _build(offset_messages.OffsetFetchRequestGroup, entity)
        return offset_messages.OffsetFetchRequest((group,), require_stable=getattr(entity, "require_stable", False))
    if api == "offset_delete":  # each partition is a row with only a number
        topics = tuple(
            offset_messages.OffsetDeleteRequestTopic(
                name=str(topic.name), partition_indexes=tuple(row.partition_index for row in topic.partitions)
            )
            for topic in entity.topics
        )
        return offset_messages.OffsetDeleteRequest(str(entity.group_id), topics)
    body: messages.RequestBody = _build(_APIS[api][0], entity)
    return body


def to_response(api: str, entity: Any) -> messages.ResponseBody:
    """Return the project's message for kio's response entity of any version. An error code that ``ErrorCode`` does not
    have stays a number (``trace.convert.odd_codes`` finds it)."""
    if api == "leave_group" and not hasattr(entity, "members"):  # v0–2 (G-WIRE-23)
        return messages.LeaveGroupResponse(cast("ErrorCode", _error(entity.error_code)))
    if api == "offset_fetch" and not hasattr(entity, "groups"):  # v1–7: one group, without its name (G-WIRE-06)
        group: offset_messages.OffsetFetchResponseGroup = _build(offset_messages.OffsetFetchResponseGroup, entity)
        return offset_messages.OffsetFetchResponse((group,))
    body: messages.ResponseBody = _build(_APIS[api][1], entity)
    return body


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    return tuple([field.name for field in fields(kind)]) if is_dataclass(kind) else None


def plain(value: Any) -> Any:
    """Return any message as JSON: bytes in URL-safe base64, durations in milliseconds with ``_ms``, enums as
    numbers."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if (names := _field_names(kind)) is not None:
        row = {}
        for name in names:
            item = getattr(value, name)
            if type(item) in _PLAIN:
                row[name] = item
            else:
                row[f"{name}_ms" if isinstance(item, timedelta) else name] = plain(item)
        return row
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, timedelta):
        return milliseconds(value)
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID | datetime):
        return str(value)
    return value
