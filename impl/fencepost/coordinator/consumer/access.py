"""A step and its consumer groups: find a group, write its records, replace it with a group of another kind."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel.state import Group
from ..kernel.step import Step
from .group import ConsumerGroup


def find(step: Step, group_id: str) -> ConsumerGroup | None:
    """The consumer group of this name."""
    group = step.memory.groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) else None


@varies
def write(step: Step, records: Sequence[Record]) -> None:
    """Append records and apply them (F-RT-04). If this raises ``InternalError``, nothing is changed."""
    step.write(records)


@varies
def give_way(step: Step, group_id: str, successor: Group) -> None:
    """A group of another kind replaces the consumer group. The records that say so are not applied, since the new group
    is needed at once (X-DOWN-30)."""
    step.change_map(group_id, successor)
