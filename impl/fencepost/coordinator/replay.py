"""What the log says (11.5): the same groups for the same records, whoever reads them."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.messages import Protocol
from fencepost.protocol.records import GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.view import GroupState

from .records import NO_TIMESTAMP
from .state import ClassicGroup, CoordinatorState, Group, Member


def replay(state: CoordinatorState, records: Iterable[Record]) -> CoordinatorState:
    """Apply records to the groups of a state, as loading does (F-REPLAY-01). They count as replicated."""
    groups = dict(state.groups)
    end = state.end
    incarnations = state.incarnations
    for record in records:
        incarnations += 1
        apply(groups, record, incarnations)
        end += 1
    return state._replace(groups=groups, end=end, committed=end, base=end, incarnations=incarnations)


def apply(groups: dict[str, Group], record: Record, incarnation: int) -> None:
    """F-REPLAY-01, for one record."""
    name = record.key.group
    value = record.group_metadata
    if value is None:
        groups.pop(name, None)
    else:
        groups[name] = _group(name, value, incarnation)


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
        members=members,
        static_members={row.group_instance_id: row.member_id for row in value.members if row.group_instance_id},
        support={value.protocol: len(members)} if members and value.protocol is not None else {},
    )


def _member(entry: GroupMetadataMember, protocol: str | None) -> Member:
    """Only the selected protocol is on the log (C-TMR-13, F-LOAD-06)."""
    return Member(
        entry.member_id,
        entry.group_instance_id,
        entry.client_id,
        entry.client_host,
        entry.session_timeout if entry.rebalance_timeout == -1 else entry.rebalance_timeout,
        entry.session_timeout,
        () if protocol is None else (Protocol(protocol, entry.subscription),),
        entry.assignment,
    )
