"""The kinds of groups. The kernel knows them only by the interface ``Group``."""

from __future__ import annotations

from typing import TypeAlias

from .classic.group import ClassicGroup
from .consumer.group import ConsumerGroup
from .kernel.state import Group

AnyGroup: TypeAlias = ClassicGroup | ConsumerGroup


def known(group: Group) -> AnyGroup:
    """The group, as one of these kinds. Raises ``TypeError`` for another one, which no part of the coordinator
    creates."""
    if isinstance(group, ClassicGroup):
        return group
    if isinstance(group, ConsumerGroup):
        return group
    raise TypeError(f"{type(group).__name__} is not a kind of group")
