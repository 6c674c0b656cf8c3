"""Requests as kio's entities, to be sent to a broker."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from kio.index import load_request_schema

from fencepost.protocol.messages import LeaveGroupRequest, RequestBody

from ..trace.lines import API_OF_TYPE, EVENT_APIS


def api_key(body: RequestBody) -> int:
    return EVENT_APIS[API_OF_TYPE[type(body)]][0]


def to_entity(body: RequestBody, version: int) -> Any:
    """The request as kio's entity of that version; what the version does not carry is left out."""
    schema = load_request_schema(api_key(body), version)
    if isinstance(body, LeaveGroupRequest) and version <= 2:  # G-WIRE-23
        return _made(schema, {"group_id": body.group_id, "member_id": body.members[0].member_id})
    return _entity(schema, body)


@cache
def _hints(schema: type) -> dict[str, Any]:
    return get_type_hints(schema)


def _entity(schema: Any, value: Any) -> Any:
    known = {}
    for field in fields(schema):
        for name in (field.name, f"{field.name}_ms"):
            if hasattr(value, name):
                known[field.name] = getattr(value, name)
    return _made(schema, known)


def _made(schema: Any, known: dict[str, Any]) -> Any:
    hints = _hints(schema)
    given = {name: _convert(hints[name], value) for name, value in known.items()}
    for field in fields(schema):
        if field.name not in given and field.default is MISSING and field.default_factory is MISSING:
            given[field.name] = (
                False  # a field that the project's message has no use for: include_authorized_operations
            )
    return schema(**given)


def _convert(hint: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        inner = get_args(hint)[0]
        return tuple(_entity(inner, row) if is_dataclass(row) else row for row in value)
    if isinstance(value, int) and not isinstance(value, bool) and _is_span(hint):
        return timedelta(milliseconds=value)
    return value


def _is_span(hint: Any) -> bool:
    """kio's time spans are subtypes of ``timedelta``."""
    origin = get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, timedelta)
