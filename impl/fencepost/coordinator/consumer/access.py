"""A step and its consumer groups: find one, write records of one.

In Kafka a group that is downgraded goes on being told of its topics, although it is none of this kind any more, until
records of the next group of its name say otherwise (X-DOWN-30); ``Step.lingering`` keeps these topics.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.records import Record

from ..kernel.state import Group
from ..kernel.step import Step
from . import subscription
from .group import ConsumerGroup


def find(step: Step, group_id: str) -> ConsumerGroup | None:
    """The consumer group of this name."""
    group = step.groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) else None


def write(step: Step, records: Sequence[Record]) -> None:
    """Append records and apply them (F-RT-04). Raises ``InternalError``, and nothing is changed."""
    names = [name for name in dict.fromkeys(record.key.group for record in records) if name in step.lingering]
    before = {name: _topics(step.groups.get(name)) for name in names}
    step.write(records)
    for name in names:
        told = subscription.told_topics(record for record in records if record.key.group == name)
        _set_lingering(step, name, step.lingering[name] - told - before[name])


def linger(step: Step, group_id: str) -> None:
    """The consumer group of this name is about to go and no record is applied that says so (X-DOWN-30)."""
    if step.profile.fault_downgrade_leaves_topics:
        topics = _topics(step.groups.get(group_id))
        _set_lingering(step, group_id, step.lingering.get(group_id, frozenset()) | topics)


def _set_lingering(step: Step, group_id: str, topics: frozenset[str]) -> None:
    others = {name: left for name, left in step.lingering.items() if name != group_id}
    step.lingering = {**others, group_id: topics} if topics else others


def _topics(group: Group | None) -> frozenset[str]:
    return frozenset(group.by_topic) if isinstance(group, ConsumerGroup) else frozenset()
