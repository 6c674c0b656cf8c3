"""A group of the model in the shared vocabulary (``fencepost.protocol.view``).

Making a view and comparing it costs as much as a step. ``shows`` compares a group with a view from a target without
making a new view.
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from fencepost.protocol.view import GroupState, GroupView, MemberView

from .state import Group, Member

_STATES: Final = {state.value: state for state in GroupState}
_NAMES_OF_MEMBER: Final = tuple(field.name for field in fields(MemberView))
_fields_of_member: Final = attrgetter(*_NAMES_OF_MEMBER)
_NAMES: Final = tuple(field.name for field in fields(GroupView) if field.name != "members")
_fields_of_group: Final = attrgetter(*_NAMES)


def view(group_id: str, group: Group) -> GroupView:
    """Return the view of the group."""
    values = dict(zip(_NAMES, _group(group_id, group), strict=True))
    rows = (dict(zip(_NAMES_OF_MEMBER, _member(member), strict=True)) for member in group.members)
    return GroupView(members=tuple(MemberView(**row) for row in rows), **values)


def shows(seen: GroupView, group_id: str, group: Group) -> bool:
    """Return whether ``seen`` is the view of this group."""
    if _fields_of_group(seen) != _group(group_id, group):
        return False
    return [_fields_of_member(row) for row in seen.members] == [_member(member) for member in group.members]


def _group(group_id: str, group: Group) -> tuple[Any, ...]:
    """Return the fields of the view except ``members``, in order."""
    return (
        group_id,
        _STATES[group.state],
        _STATES[group.previous],
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        tuple(sorted([(m.instance, m.member_id) for m in group.members if m.instance is not None])),
        group.pending_join,
        group.pending_sync,
        group.new_member_added,
    )


def _member(member: Member) -> tuple[Any, ...]:
    """Return the fields of the member's view, in order: those of the member, with booleans for its parked requests."""
    return (*member[:-2], member.join is not None, member.sync is not None)
