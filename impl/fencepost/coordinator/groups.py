"""The properties that all kinds of groups have: whether a group is empty, and its subscribed topics.

The kernel knows groups only by the interface ``Group``. The offsets of topics that a group subscribes to are not
deleted and do not expire (O-DEL-07, O-EXP-10).
"""

from __future__ import annotations

from collections.abc import Container
from typing import TypeAlias

from fencepost.protocol.embedded import PROTOCOL_TYPE, SchemaError, subscribed_topics
from fencepost.protocol.view import GroupState

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


def is_empty(group: Group) -> bool:
    """Whether a group has no members; ids that were only handed out do not count (O-EXP-21)."""
    group = known(group)
    return not group.members if isinstance(group, ConsumerGroup) else group.state is GroupState.EMPTY


class _Everything:
    """Contains every topic."""

    def __contains__(self, name: object) -> bool:
        return True


EVERYTHING: Container[str] = _Everything()
NOTHING: Container[str] = frozenset()


def topics_of(group: Group) -> Container[str]:
    """The topics that a group subscribes to; none if it is empty (O-DEL-08). A classic group of consumers whose
    subscriptions cannot be read counts as subscribed to all, another classic group to none (O-DEL-07)."""
    group = known(group)
    if isinstance(group, ConsumerGroup):
        return group.by_topic.counts
    topics = known_topics(group)
    if topics is not None:
        return topics
    return EVERYTHING if group.protocol_type == PROTOCOL_TYPE else NOTHING


def known_topics(group: ClassicGroup) -> frozenset[str] | None:
    """The topics that the members of a classic group subscribed to when its generation began, None if they cannot be
    read (G-DATA-10)."""
    if group.subscriptions is None:
        return None
    try:
        return frozenset(topic for each in group.subscriptions for topic in subscribed_topics(each))
    except SchemaError:
        return None
