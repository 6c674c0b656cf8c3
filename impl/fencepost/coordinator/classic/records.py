"""The records of classic groups, written (F-REC-12, F-ORD-01…05, F-ORD-13) and applied (11.5).

Each record contains the whole group. The live coordinator applies only tombstones (C-SYNC-31).
"""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.messages import Protocol
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.view import GroupState

from ..kernel.errors import InternalError
from ..kernel.persistent import frozen
from ..kernel.replay_context import Replay
from .group import ClassicGroup, ClassicMember, GroupDraft, subscriptions_of

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


def apply(replay: Replay, record: Record) -> None:
    """A record of a classic group replaces the group of that name, even a consumer group (F-REPLAY-16); a tombstone
    removes it (F-REPLAY-01). The group is Stable if it has members, otherwise Empty (F-SURV-03)."""
    name, value = record.key.group, record.group_metadata
    replay.put(name, None if value is None else _group(name, value, replay.new_incarnation()))  # F-REPLAY-01


def _group(name: str, value: GroupMetadataValue, incarnation: int) -> ClassicGroup:
    members = {entry.member_id: _member(entry, value.protocol) for entry in value.members}
    return ClassicGroup(
        name,
        incarnation,
        state=GroupState.STABLE if members else GroupState.EMPTY,  # C-ST-07
        timestamp=None if value.current_state_timestamp == NO_TIMESTAMP else value.current_state_timestamp,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader=value.leader,
        members=frozen(members),
        static_members=frozen({row.group_instance_id: row.member_id for row in value.members if row.group_instance_id}),
        support={value.protocol: len(members)} if members and value.protocol is not None else {},
        subscriptions=subscriptions_of(value.protocol_type, value.protocol, members.values()),
    )


def _member(entry: GroupMetadataMember, protocol: str | None) -> ClassicMember:
    """Only the selected protocol is in the log (C-TMR-13, F-LOAD-06)."""
    return ClassicMember(
        entry.member_id,
        entry.group_instance_id,
        entry.client_id,
        entry.client_host,
        entry.session_timeout if entry.rebalance_timeout == -1 else entry.rebalance_timeout,
        entry.session_timeout,
        () if protocol is None else (Protocol(protocol, entry.subscription),),
        entry.assignment,
    )
