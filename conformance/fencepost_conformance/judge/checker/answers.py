"""Answers in a form in which they can be compared: only the fields of the API version, and lists in a fixed order.

The coordinator's answers are full; on the wire, a version drops the fields that it does not have (G-WIRE-01…04). Null
and empty protocol names mean the same (G-WIRE-20). The members list has the order of a hash map (G-DATA-04).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fencepost.protocol.messages import (
    JoinGroupMember,
    JoinGroupResponse,
    ResponseBody,
    SyncGroupResponse,
)

#: The first version of each API that carries a field (G-WIRE-01…04).
JOIN_INSTANCE_ID: Final = 5
JOIN_PROTOCOL_TYPE: Final = 7
JOIN_SKIP_ASSIGNMENT: Final = 9
SYNC_PROTOCOL: Final = 5


def _join(version: int, body: JoinGroupResponse) -> JoinGroupResponse:
    members = body.members
    if members:
        if version < JOIN_INSTANCE_ID:
            members = tuple(JoinGroupMember(row.member_id, metadata=row.metadata) for row in members)
        members = tuple(sorted(members, key=lambda row: row.member_id))
    return replace(
        body,
        protocol_type=body.protocol_type if version >= JOIN_PROTOCOL_TYPE else None,
        protocol_name=body.protocol_name or "",
        skip_assignment=body.skip_assignment and version >= JOIN_SKIP_ASSIGNMENT,
        members=members,
    )


def seen(version: int, body: ResponseBody) -> ResponseBody:
    """The answer as a client that uses this version sees it, normalized."""
    if isinstance(body, JoinGroupResponse):
        return _join(version, body)
    if isinstance(body, SyncGroupResponse):
        if version >= SYNC_PROTOCOL:
            return body
        return replace(body, protocol_type=None, protocol_name=None)
    return body
