"""A group of the model in the shared vocabulary (``fencepost.protocol.consumer_view``).

``shows`` compares a group with a view from a target without making a new view.
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from fencepost.protocol.consumer_view import (
    ConsumerGroupState,
    ConsumerGroupView,
    ConsumerMemberView,
    MemberState,
)

from .derive import group_state, holders
from .replay import BYTES
from .rows import held_rows, target_rows
from .state import ConsumerGroup, Member

if TYPE_CHECKING:
    from ..variant import Variant

_STATES: Final = {state.value: state for state in ConsumerGroupState}
_MEMBER_STATES: Final = {state: MemberState(byte) for state, byte in BYTES.items()}
_NAMES: Final = tuple(field.name for field in fields(ConsumerGroupView) if field.name != "members")
_fields_of_group: Final = attrgetter(*_NAMES)
_NAMES_OF_MEMBER: Final = tuple(field.name for field in fields(ConsumerMemberView))
_fields_of_member: Final = attrgetter(*_NAMES_OF_MEMBER)


def view(variant: Variant, group_id: str, group: ConsumerGroup) -> ConsumerGroupView:
    """Return the view of the group."""
    values = dict(zip(_NAMES, _group(group_id, group), strict=True))
    rows = (dict(zip(_NAMES_OF_MEMBER, _member(variant, member), strict=True)) for member in group.members)
    return ConsumerGroupView(members=tuple(ConsumerMemberView(**row) for row in rows), **values)


def shows(variant: Variant, seen: ConsumerGroupView, group_id: str, group: ConsumerGroup) -> bool:
    """Return whether ``seen`` is the view of this group."""
    if _fields_of_group(seen) != _group(group_id, group):
        return False
    return [_fields_of_member(row) for row in seen.members] == [_member(variant, member) for member in group.members]


def _group(group_id: str, group: ConsumerGroup) -> tuple[Any, ...]:
    """Return the fields of the view except ``members``, in order."""
    return (
        group_id,
        _STATES[group_state(group)],
        group.epoch,
        group.hash,
        group.assignment_epoch,
        group.timestamp,
        group.type,
        group.statics,
        tuple([(member_id, target_rows(target)) for member_id, target in group.target]),
        tuple([(topic, number, epoch) for (topic, number), epoch in sorted(holders(group.members).items())]),
        group.regexes,
        group.refresh,
        group.legacy,
    )


def _member(variant: Variant, member: Member) -> tuple[Any, ...]:
    epochs = variant.consumer.stores_assignment_epochs
    return (
        member.member_id,
        member.instance,
        member.rack,
        member.client_id,
        member.client_host,
        member.rebalance_timeout,
        member.names,
        member.regex,
        member.assignor,
        member.epoch,
        member.previous,
        _MEMBER_STATES[member.state],
        held_rows(member.assigned, epochs),
        held_rows(member.revoking, epochs),
        member.classic,
    )
