"""A step and its consumer groups: find one, write records of one, put another kind of group in its place."""

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
    """Append records and apply them (F-RT-04). Raises ``InternalError``, and nothing is changed."""
    step.write(records)


@varies
def give_way(step: Step, group_id: str, successor: Group) -> None:
    """A group of another kind takes the place of the consumer group; the records that say so are not applied, for that
    group is needed at once (X-DOWN-30)."""
    step.change_map(group_id, successor)
