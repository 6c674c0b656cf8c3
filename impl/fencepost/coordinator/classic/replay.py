"""Applying records of classic groups (11.5). Each record contains the whole group.

The live coordinator applies only tombstones (C-SYNC-31).
"""

from __future__ import annotations

from fencepost.protocol.messages import Protocol
from fencepost.protocol.records import GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.view import GroupState

from ..kernel.persistent import frozen
from ..kernel.replay import Replay
from .group import ClassicGroup, ClassicMember, subscriptions_of
from .records import NO_TIMESTAMP


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
