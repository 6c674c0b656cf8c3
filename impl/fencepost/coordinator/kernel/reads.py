"""Groups as reads see them: as of the high watermark (F-RT-11, C-ADM-08).

The versions between then and now are the ``before`` of the changes that are not replicated yet.
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
    """One of them, None if there is none of this name."""
    for change in step.memory.changes:
        if change.group_id == name:
            return change.before
    return step.memory.groups.get(name)


@varies
def met(step: Step, rows: Mapping[Entry, Row]) -> tuple[Row, ...]:
    """What a read that goes through a map meets: each entry once (C-ADM-05). ``rows``: what it shows of each."""
    return tuple(rows.values())
