"""What a coordinator makes of a group's records (rule book, 11.5, 11.6)."""

from __future__ import annotations

from fencepost.protocol.messages import Protocol
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Profile

from ..machines import EMPTY, STABLE
from .state import Group, Member, by_id
from .subscription import CONSUMER, outcomes


def fails_load(profile: Profile, record: Record) -> bool:
    """Whether the record makes the load fail (F-LOAD-02): the topics of a subscription in it cannot be read."""
    value = record.group_metadata
    return (
        profile.fault_bad_subscription_is_thrown
        and value is not None
        and value.protocol_type == CONSUMER
        and "throws" in outcomes(member.subscription for member in value.members)
    )


def load_group(record: Record) -> Group | None:
    """The group as one GroupMetadata record gives it (F-REPLAY-01, C-ST-07, F-SURV-02, 03); None after a tombstone.

    The record replaces whatever was there before. Members keep only the selected protocol (C-TMR-13).
    """
    value = record.group_metadata
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
