"""The records that a classic group writes (F-REC-12, F-ORD-01…05, F-ORD-13)."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record

from ..kernel.errors import InternalError
from .group import GroupDraft

#: The value of a missing timestamp in the log (F-REC-12).
NO_TIMESTAMP = -1


def created_record(group: GroupDraft, generation: int) -> Record:
    """The record of a new group without members, at the generation before its first (F-ORD-01).

    It has no protocol type, whatever the first member sent (C-JOIN-16).
    """
    return Record(
        GroupMetadataKey(group.group_id),
        GroupMetadataValue(
            "", generation=generation, protocol=None, leader=None, current_state_timestamp=_timestamp(group)
        ),
    )


def group_record(group: GroupDraft, assignments: Mapping[str, bytes]) -> Record:
    """The record of the whole group with these assignments; members without one get zero bytes (F-ORD-03…05).

    Raises ``InternalError`` if a member does not have the protocol of the group (C-JOIN-72).
    """
    members = []
    for member in group.members.values():
        subscription = member.metadata(group.protocol_name)
        if subscription is None:
            raise InternalError
        members.append(
            GroupMetadataMember(
                member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout,
                session_timeout=member.session_timeout,
                subscription=subscription,
                assignment=assignments.get(member.member_id, b""),
            )
        )
    return Record(
        GroupMetadataKey(group.group_id),
        GroupMetadataValue(
            group.protocol_type or "",
            generation=group.generation,
            protocol=group.protocol_name,
            leader=group.leader,
            current_state_timestamp=_timestamp(group),
            members=tuple(members),
        ),
    )


def tombstone(group_id: str) -> Record:
    """The record that removes the group (F-ORD-13)."""
    return Record(GroupMetadataKey(group_id), None)


def _timestamp(group: GroupDraft) -> int:
    return NO_TIMESTAMP if group.timestamp is None else group.timestamp
