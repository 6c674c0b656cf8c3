"""What a coordinator makes of a group's records (rule book, 11.5, 11.6)."""

from __future__ import annotations

from fencepost.protocol.messages import Protocol
from fencepost.protocol.records import Record

from ..machines import EMPTY, STABLE
from .state import Group, Member, by_id


def load_group(record: Record) -> Group | None:
    """The group as one GroupMetadata record gives it (F-REPLAY-01, C-ST-07); None after a tombstone.

    The record replaces whatever was there before. Members keep only the selected protocol (C-TMR-13).
    """
    value = record.value
    if value is None:
        return None
    members = [
        Member(
            member_id=row.member_id,
            instance=row.group_instance_id,
            client_id=row.client_id,
            client_host=row.client_host,
            rebalance_timeout=row.session_timeout if row.rebalance_timeout == -1 else row.rebalance_timeout,
            session_timeout=row.session_timeout,
            protocols=(Protocol(value.protocol or "", row.subscription),),
            assignment=row.assignment,
        )
        for row in value.members
    ]
    return Group(
        state=STABLE if members else EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader=value.leader,
        members=by_id(members),
        timestamp=value.current_state_timestamp,
    )
