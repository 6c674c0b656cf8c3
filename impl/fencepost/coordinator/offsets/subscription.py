"""The topics that a group subscribes to: their offsets are not deleted and do not expire (O-DEL-07, O-EXP-10)."""

from __future__ import annotations

from collections.abc import Container

from fencepost.protocol.embedded import PROTOCOL_TYPE, SchemaError, subscribed_topics

from ..classic.group import ClassicGroup
from ..consumer.group import ConsumerGroup
from ..groups import known
from ..kernel.state import Group


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
