"""A group's look at its topics: whether they still are as the group knows them (M-META-*, M-HB-04)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel.step import Step
from ..kernel.topics import TopicImage, changed_names
from . import access, records, topics
from .group import ConsumerGroup, Refresh


class Facts(NamedTuple):
    """The current topics of the group's subscription.

    ``differ``: they are not as the group knows them. ``before`` are records that precede GroupEpoch; only 4.0, which
    has no hash, writes such records (V-34).
    """

    hash: int
    differ: bool
    before: list[Record]


@varies
def look(step: Step, group: ConsumerGroup, names: Iterable[str]) -> Facts:
    """One hash stands for all topics that the group subscribes to; it changes with any of them (M-META-07)."""
    now = topics.metadata_hash(step.functions.hash64, step.topics, names)
    return Facts(now, now != group.metadata_hash, [])


@varies
def superseded(step: Step, group: ConsumerGroup) -> list[Record]:
    """The tombstone of 4.0's record of the group's topics, if that is still in the log (M-META-08)."""
    return [] if group.partition_metadata is None else [records.partition_metadata(group.group_id, None)]


def note(step: Step, group: ConsumerGroup, epoch: int) -> None:
    """The group has looked at its topics (M-HB-04): the next look is due at its deadline, or when this epoch is lost
    (M-META-02)."""
    refresh = Refresh(step.at_ms + step.settings.metadata_refresh_interval_ms, epoch)
    _note(step, group.group_id, refresh, group.changed_topics if epoch > group.epoch else frozenset())


def _note(step: Step, group_id: str, refresh: Refresh | None, topics: frozenset[str]) -> None:
    """Set the deadline of M-META-01, and the topics that changed. They are in no record, and a failed append does not
    undo them (F-RT-08): they are set before the records of their step are applied, so the earlier group has them
    too."""
    group = access.find(step, group_id)
    if group is not None:
        step.memory.exchange(group._replace(refresh=refresh, changed_topics=topics))


def changed(step: Step, image: TopicImage) -> None:
    """The topics have changed: groups that subscribe to an added, removed or changed topic look again (M-META-03)."""
    names = changed_names(step.topics, image)
    for name, group in list(step.memory.groups.items()):
        if not isinstance(group, ConsumerGroup):
            continue
        met = names.intersection(watched(step, group))
        if met:
            _note(step, name, None, group.changed_topics | met)


@varies
def watched(step: Step, group: ConsumerGroup) -> Iterable[str]:
    """The topics whose changes the group reacts to (M-META-03)."""
    return group.by_topic.counts
