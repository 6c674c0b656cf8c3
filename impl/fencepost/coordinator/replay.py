"""What the log says (11.5): the same groups for the same records, whoever reads them.

Records of consumer groups are applied to the live coordinator too, by the same functions; those of classic groups only
on loading, with the exception of tombstones (C-SYNC-31).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fencepost.protocol.messages import Protocol
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record, RecordKey
from fencepost.protocol.settings import Profile
from fencepost.protocol.view import GroupState

from .consumer import replay as consumer
from .consumer.draft import ConsumerDraft
from .consumer.state import new_group
from .errors import InternalError
from .records import NO_TIMESTAMP
from .state import ClassicGroup, CoordinatorState, Group, Member


class Replay:
    """Groups while records are applied to them, in log order."""

    def __init__(self, groups: Mapping[str, Group], profile: Profile, incarnations: int) -> None:
        self._groups = dict(groups)
        self._drafts: dict[str, ConsumerDraft] = {}
        self._profile = profile
        self.incarnations = incarnations

    def apply(self, record: Record) -> None:
        """F-REPLAY-01, F-REPLAY-06. Raises ``InternalError`` where Kafka's load fails (F-REPLAY-13)."""
        name = record.key.group
        if isinstance(record.key, GroupMetadataKey):
            self._drafts.pop(name, None)
            value = record.group_metadata
            if value is None:
                self._groups.pop(name, None)
            else:
                self._groups[name] = _group(name, value, self._incarnation())
        else:
            draft = self._drafts.get(name) or self._draft(name, create=record.value is not None)
            if draft is not None and not consumer.apply(draft, record, self._profile):
                del self._drafts[name]
                del self._groups[name]

    def _draft(self, name: str, *, create: bool) -> ConsumerDraft | None:
        group = self._groups.get(name)
        if group is None and not create:
            return None
        if isinstance(group, ClassicGroup):
            if not _simple(group):
                raise InternalError
            group = None
        if group is None:
            group = self._groups[name] = new_group(name, self._incarnation(), self._profile)
        draft = self._drafts[name] = ConsumerDraft(group, self._profile)
        return draft

    def _incarnation(self) -> int:
        self.incarnations += 1
        return self.incarnations

    def groups(self) -> dict[str, Group]:
        """What the records have come to; ends the replay."""
        self._groups.update((name, draft.freeze()) for name, draft in self._drafts.items())
        return self._groups


def replay(state: CoordinatorState, records: Iterable[Record]) -> CoordinatorState:
    """Apply records to the groups of a state, as loading does. They count as replicated.

    Raises ``InternalError`` for records that no coordinator writes."""
    work = Replay(state.groups, state.profile, state.incarnations)
    log = tuple(records)
    end = state.end + len(log)
    for record in to_apply(log, state.profile):
        work.apply(record)
    return state._replace(groups=work.groups(), end=end, committed=end, base=end, incarnations=work.incarnations)


def to_apply(log: Sequence[Record], profile: Profile) -> Sequence[Record]:
    """What of a log to apply: of each key the last record alone, in log order.

    A log that is compacted while it is read shows early records as they were and has lost later ones. The last of each
    key it always shows, and they are the state; to apply the others too, as Kafka does, is to go through states that
    never were, and may end at one that is impossible (F-REPLAY-18)."""
    if profile.fault_superseded_records_loaded:
        return log
    last: dict[RecordKey, int] = {record.key: place for place, record in enumerate(log)}
    return log if len(last) == len(log) else [log[place] for place in sorted(last.values())]


def _simple(group: ClassicGroup) -> bool:
    """G-VOC-01."""
    return group.protocol_type is None and not group.members and not group.pending_join


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
