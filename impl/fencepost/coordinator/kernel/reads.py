"""Groups as reads see them: as of the high watermark (F-RT-11, C-ADM-08).

The versions in between are the ``before`` of the changes that are not replicated yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from fencepost.quirks import varies

from .persistent import edit
from .state import Entry, Group
from .step import Step

Row = TypeVar("Row")


def committed(step: Step) -> Mapping[str, Group]:
    """The groups by their id."""
    if not step.memory.changes:
        return step.memory.groups
    groups = edit(step.memory.groups)
    for change in reversed(step.memory.changes):
        if change.before is None:
            groups.pop(change.group_id, None)
        else:
            groups[change.group_id] = change.before
    return groups


def committed_group(step: Step, name: str) -> Group | None:
    """The group of this name, None if there is none."""
    for change in step.memory.changes:
        if change.group_id == name:
            return change.before
    return step.memory.groups.get(name)


@varies
def visible_rows(step: Step, rows: Mapping[Entry, Row]) -> tuple[Row, ...]:
    """The rows that a read of a whole map returns: each entry once (C-ADM-05). ``rows``: the row of each entry."""
    return tuple(rows.values())
