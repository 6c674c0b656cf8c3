"""The hard state of groups: what records contain, and so what every coordinator that loads the log must know.

Everything else is soft, and lost with the coordinator (F-REC-21, F-SURV-02, F-SURV-04). Soft state of a classic group:
a rebalance in progress with its members, generation and chosen protocol, all protocols of a member but the selected
one, parked requests, pending members, the members that must still sync, the flag of newcomers. Of a consumer group: the
topic refresh deadline, the subscription type (computed again with the next member that changes, M-TGT-05), a regex
resolution in progress. Of both: the elapsed time of timers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from typing import Any, Final, NamedTuple

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record
from fencepost.protocol.view import GroupState, GroupView

#: fields of a consumer group's view
SOFT: Final = frozenset({"refresh_deadline", "subscription_type"})
_HARD: Final = tuple(field.name for field in fields(ConsumerGroupView) if field.name not in SOFT)
AT_REST: Final = (GroupState.EMPTY, GroupState.STABLE)


class Groups(NamedTuple):
    """The groups of a coordinator by id."""

    classic: Mapping[str, GroupView]
    consumer: Mapping[str, ConsumerGroupView]


class ClassicState(NamedTuple):
    """A classic group as a record has it (F-REC-12). ``members``: the stored fields of each, by member id."""

    state: GroupState
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: tuple[tuple[Any, ...], ...]


def shown(view: GroupView) -> ClassicState:
    """Return the hard state of a group at rest."""
    rows = [
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            next((each.metadata for each in member.protocols if each.name == view.protocol_name), b""),
            member.assignment,
        )
        for member in view.members
    ]
    state = (view.state, view.generation_id, view.protocol_type or None, view.protocol_name, view.leader)
    return ClassicState(*state, tuple(sorted(rows)))


def logged(value: GroupMetadataValue) -> ClassicState:
    """F-REPLAY-01."""
    rows = [
        (
            row.member_id,
            row.group_instance_id,
            row.client_id,
            row.client_host,
            row.session_timeout if row.rebalance_timeout == -1 else row.rebalance_timeout,
            row.session_timeout,
            b"" if value.protocol is None else row.subscription,
            row.assignment,
        )
        for row in value.members
    ]
    state = GroupState.STABLE if rows else GroupState.EMPTY  # F-SURV-03
    kind = value.protocol_type or None
    return ClassicState(state, value.generation, kind, value.protocol, value.leader, tuple(sorted(rows)))


def lost(
    live: Groups, loaded: Groups, log: Sequence[Record], unwritten: AbstractSet[str] = frozenset()
) -> list[tuple[str, str]]:
    """Return where the loaded groups differ from the live ones: group and field. A classic group that rebalances must
    be as its last record has it. ``unwritten``: classic groups at rest although their last record could not be
    appended, such as one that became Empty (C-JOIN-47)."""
    values = {each.key.group: each.group_metadata for each in log if isinstance(each.key, GroupMetadataKey)}
    found = []
    names = live.classic.keys() | live.consumer.keys() | loaded.classic.keys() | loaded.consumer.keys()
    for name in sorted(names):
        if name in live.consumer and name in loaded.consumer:
            found += [(name, field) for field in _HARD if _differ(live.consumer[name], loaded.consumer[name], field)]
        elif name in live.classic and name in loaded.classic:
            value, view, again = values.get(name), live.classic[name], shown(loaded.classic[name])
            if value is None or again != logged(value):
                found.append((name, "record"))
            elif view.state in AT_REST and name not in unwritten:
                found += [
                    (name, field)
                    for field, one, other in zip(ClassicState._fields, shown(view), again, strict=True)
                    if one != other
                ]
        else:
            found.append((name, f"{_kind(live, name)} group, loaded {_kind(loaded, name)}"))
    return found


def _differ(one: ConsumerGroupView, other: ConsumerGroupView, field: str) -> bool:
    return bool(getattr(one, field) != getattr(other, field))


def _kind(groups: Groups, name: str) -> str:
    return "classic" if name in groups.classic else "consumer" if name in groups.consumer else "no"
