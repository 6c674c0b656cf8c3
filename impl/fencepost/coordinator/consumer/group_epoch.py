"""The group epoch, and the look at the topics that may bump it (M-META-*, M-HB-03…05).

A group remembers a hash of the topics that it subscribes to. It looks at them again when a request changes the group,
when the image of the topics changes, and at the latest after the refresh interval. Each look that finds a difference
bumps the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel.state import next_epoch
from ..kernel.step import Step
from ..kernel.topics import TopicImage, changed_names, metadata_hash
from . import records
from .group import (
    ConsumerGroup,
    ConsumerGroupMember,
    Refresh,
    find_consumer_group,
    subscription_type_of,
    with_member,
)


class GroupEpoch(NamedTuple):
    """The group epoch after a request, the subscription type for computing a target, and the records."""

    epoch: int
    subscription_type: SubscriptionType
    records: list[Record]


class TopicsLook(NamedTuple):
    """The current topics of the group's subscription.

    ``differ``: they are not as the group knows them. ``before`` are records that precede GroupEpoch; only 4.0, which
    has no hash, writes such records (V-34).
    """

    hash: int
    differ: bool
    before: list[Record]


def bump_group_epoch(
    step: Step, group: ConsumerGroup, old: ConsumerGroupMember, new: ConsumerGroupMember, *, required: bool
) -> GroupEpoch:
    """Bump the epoch of the group if the request requires it (M-HB-03), or if it is time to look at the topics and they
    have changed (M-HB-04, M-HB-05)."""
    look = required or has_metadata_expired(step, group)
    due = step.rules.due_target_sees_subscriptions and group.assignment_epoch < group.epoch  # M-TGT-05, M-TGT-06
    if not look and not due:
        return GroupEpoch(group.epoch, group.subscription_type, [])
    counts = with_member(group, old, new)
    epoch, written = group.epoch, list[Record]()
    if look:
        topics = look_at_topics(step, group, counts.by_topic.counts)
        bumps = required or topics.differ
        epoch = next_epoch(group.epoch) if bumps else group.epoch
        set_refresh_deadline(step, group, epoch)
        written += topics.before
        if bumps:
            written.append(records.group_epoch(group.group_id, epoch, topics.hash))
        if group.partition_metadata is not None and not step.rules.has_partition_metadata:
            written.append(records.partition_metadata(group.group_id, None))  # that of 4.0 (M-META-08)
    came = new.member_id not in group.members and new.instance_id not in group.static_members
    kind = subscription_type_of(counts.by_regex, counts.by_topic, len(group.members) + came)  # M-TGT-05
    return GroupEpoch(epoch, kind, written)


def has_metadata_expired(step: Step, group: ConsumerGroup) -> bool:
    """Whether it is time to look at the topics' metadata again (M-META-01, M-META-02)."""
    refresh = group.refresh
    return refresh is None or step.at_ms >= refresh.deadline or group.epoch < refresh.epoch


@varies
def look_at_topics(step: Step, group: ConsumerGroup, names: Iterable[str]) -> TopicsLook:
    """One hash stands for all topics that the group subscribes to; it changes with any of them (M-META-07)."""
    now = metadata_hash(step.functions.hash64, step.topics, names)
    return TopicsLook(now, now != group.metadata_hash, [])


def set_refresh_deadline(step: Step, group: ConsumerGroup, epoch: int) -> None:
    """The group has looked at its topics (M-HB-04): the next look is due at its deadline, or when this epoch is lost
    (M-META-02)."""
    refresh = Refresh(step.at_ms + step.settings.metadata_refresh_interval_ms, epoch)
    _set_refresh(step, group.group_id, refresh, group.changed_topics if epoch > group.epoch else frozenset())


def _set_refresh(step: Step, group_id: str, refresh: Refresh | None, topics: frozenset[str]) -> None:
    """Set the deadline of M-META-01, and the topics that changed. They are in no record, and a failed append does not
    undo them (F-RT-08): they are set before the records of their step are applied, so the earlier group has them
    too."""
    group = find_consumer_group(step, group_id)
    if group is not None:
        step.memory.exchange(group._replace(refresh=refresh, changed_topics=topics))


def request_metadata_refresh(step: Step, image: TopicImage) -> None:
    """The topics have changed: groups that subscribe to an added, removed or changed topic look again (M-META-03)."""
    names = changed_names(step.topics, image)
    for name, group in list(step.memory.groups.items()):
        if not isinstance(group, ConsumerGroup):
            continue
        changed = names.intersection(watched(step, group))
        if changed:
            _set_refresh(step, name, None, group.changed_topics | changed)


@varies
def watched(step: Step, group: ConsumerGroup) -> Iterable[str]:
    """The topics whose changes the group reacts to (M-META-03)."""
    return group.by_topic.counts
