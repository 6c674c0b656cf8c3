"""The identity check of a request (``CG.validateMember``)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode

from .draft import Draft


def member_error(d: Draft, member_id: str, instance: str | None) -> ErrorCode | None:
    """Return the error if the request may not speak for the member (C-JOIN-38e…g). All requests of members use it. A
    missing instance id is not checked (C-STATIC-19)."""
    if instance is not None:
        mapped = d.static_member_id(instance)
        if mapped is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if mapped != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    if member_id not in d.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return None
