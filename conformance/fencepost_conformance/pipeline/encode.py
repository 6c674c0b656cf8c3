"""Requests as kio's entities, to be sent to a broker."""

from __future__ import annotations

from typing import Any

from kio.index import load_request_schema

from fencepost.protocol.messages import LeaveGroupRequest, RequestBody
from fencepost.server.wire.fill import fill

from ..trace.lines import API_OF_TYPE, EVENT_APIS


def api_key(body: RequestBody) -> int:
    return EVENT_APIS[API_OF_TYPE[type(body)]][0]


def to_entity(body: RequestBody, version: int) -> Any:
    """The request as kio's entity of that version; what the version does not carry is left out, and what the message
    does not have is as Kafka has it by default."""
    schema = load_request_schema(api_key(body), version)
    if isinstance(body, LeaveGroupRequest) and version <= 2:  # G-WIRE-23
        return fill(schema, {"group_id": body.group_id, "member_id": body.members[0].member_id})
    return fill(schema, body)
