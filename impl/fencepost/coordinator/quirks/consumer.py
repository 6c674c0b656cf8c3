"""Deviations of Kafka in consumer groups: target assignments, and the topics of a group.

4.0 writes a record of each topic with its id and its number of partitions. Later releases keep a hash (V-34).

In Kafka a downgraded group still gets the changes of its topics, although it is no longer a consumer group, until
records of the next group of that name end this (X-DOWN-30). ``Remains.lingering`` has these topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fencepost.protocol.consumer_records import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    TopicMetadata,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from fencepost.quirks import Next, quirk

from .. import reversion
from ..consumer import consumer_appliers, group_epoch, records, target
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerGroupMember, Share
from ..kernel.persistent import with_entry, without
from ..kernel.state import Group
from ..kernel.step import Step
from ..kernel.topics import TopicImage
from .kernel import drop_from_memory

# The record of the topics in 4.0


@quirk("old_partition_metadata", of=group_epoch.look_at_topics)
def compares_partitions(
    _: Next[group_epoch.TopicsLook], step: Step, group: ConsumerGroup, names: Iterable[str]
) -> group_epoch.TopicsLook:
    """4.0 compares the topics themselves, without their racks, and writes them before the epoch (V-34, V-35)."""
    rows = partitions_of(step.topics, names)
    if rows == (group.partition_metadata or ()):
        return group_epoch.TopicsLook(0, False, [])
    return group_epoch.TopicsLook(0, True, [records.partition_metadata(group.group_id, rows)])


@quirk("old_partition_metadata", of=target.partitions_known)
def knows_its_last_look(
    _: Next[Mapping[bytes, int]], step: Step, group: ConsumerGroup, written: Sequence[Record]
) -> Mapping[bytes, int]:
    """An assignor of 4.0 sees the topics as the group last looked at them, in this request or before. A look whose
    records were not appended is forgotten, but its deadline is not. Until that passes, every request that needs a
    target may find a topic that the group does not know, and fail (V-136, F-RT-08, M-META-02)."""
    looks = [record.value for record in written if isinstance(record.value, ConsumerGroupPartitionMetadataValue)]
    rows = looks[-1].topics if looks else group.partition_metadata or ()
    return {row.topic_id: row.num_partitions for row in rows}


def partitions_of(topics: TopicImage, names: Iterable[str]) -> tuple[TopicMetadata, ...]:
    """The record of 4.0 for those of these topics that exist (G-DATA-23)."""
    known = topics.by_name
    return tuple(
        TopicMetadata(known[name].topic_id, name, known[name].partitions) for name in sorted(names) if name in known
    )


# Lingering topics


@quirk("fault_downgrade_leaves_topics", of=consumer_appliers.give_way)
def topics_stay(call_next: Next[None], step: Step, group_id: str, successor: Group) -> None:
    """Kafka removes a group from the index of topics and subscribers by the records of its members. In a downgrade none
    are applied, and its name stays in the index (X-DOWN-30)."""
    _linger(step, group_id)
    call_next(step, group_id, successor)


@quirk("fault_downgrade_leaves_topics", of=drop_from_memory)
def topics_stay_without_group(call_next: Next[None], step: Step, group_id: str) -> None:
    """Nor are any applied where a group is removed from memory only (X-DOWN-30, C-JOIN-15)."""
    _linger(step, group_id)
    call_next(step, group_id)


def _linger(step: Step, group_id: str) -> None:
    """The topics of the consumer group, which is about to be removed, stay in the index."""
    topics = _topics(step.memory.groups.get(group_id))
    _set_lingering(step, group_id, step.remains.lingering.get(group_id, frozenset()) | topics)


@quirk("fault_downgrade_leaves_topics", of=consumer_appliers.write_records)
def keeps_lingering_topics(call_next: Next[None], step: Step, records: Sequence[Record]) -> None:
    """A topic lingers until members of the next group of that name subscribe to it and unsubscribe, or have it when
    that group is removed (X-DOWN-30)."""
    names = [name for name in dict.fromkeys(record.key.group for record in records) if name in step.remains.lingering]
    before = {name: _topics(step.memory.groups.get(name)) for name in names}
    call_next(step, records)
    for name in names:
        subscribed = _subscribed_topics(record for record in records if record.key.group == name)
        _set_lingering(step, name, step.remains.lingering[name] - subscribed - before[name])


@quirk("fault_downgrade_leaves_topics", of=group_epoch.watched)
def watches_lingering(_: Next[Iterable[str]], step: Step, group: ConsumerGroup) -> Iterable[str]:
    """The next group of that name reacts to topics that it does not subscribe to, without any effect (X-DOWN-30,
    M-META-03)."""
    left = step.remains.lingering.get(group.group_id)
    topics = group.by_topic.counts
    return topics if left is None else {*topics, *left}


@quirk("fault_downgrade_leaves_topics", of=reversion.append_failed)
def lingers_as_before(call_next: Next[None], step: Step, error: ErrorCode) -> None:
    """The lingering topics are restored together with the records of the step (X-DOWN-30, F-RT-08)."""
    step.remains = step.remains._replace(lingering=step.state.remains_base.lingering)
    call_next(step, error)


def _set_lingering(step: Step, group_id: str, topics: frozenset[str]) -> None:
    known = step.remains.lingering
    now = with_entry(known, group_id, topics) if topics else without(known, group_id)
    step.remains = step.remains._replace(lingering=now)


def _topics(group: Group | None) -> frozenset[str]:
    return frozenset(group.by_topic.counts) if isinstance(group, ConsumerGroup) else frozenset()


def _subscribed_topics(records: Iterable[Record]) -> frozenset[str]:
    """Every topic with a subscription in these records, for however short a time."""
    subscribed: set[str] = set()
    for record in records:
        match record.value:
            case ConsumerGroupMemberMetadataValue(subscribed_topic_names=names):
                subscribed.update(names)
            case ConsumerGroupRegularExpressionValue(topics=topics):
                subscribed.update(topics)
    return frozenset(subscribed)


# Targets


@quirk("fault_new_instance_has_no_target", of=target.stored)
def new_instance_has_no_target(_: Next[Share], step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> Share:
    """Kafka only looks for the member that has the instance id: a member that joins again with an instance id that is
    not in use gets nothing until the next new target (M-HB-07, LIV-16)."""
    instance_id = member.instance_id
    owner = member.member_id if instance_id is None else group.static_members.get(instance_id)
    return NO_SHARE if owner is None else group.target.get(owner, NO_SHARE)


@quirk("old_replacement_rewrites_target", of=target.taken_over)
def takes_over_also_nothing(
    _: Next[Mapping[str, Share]], step: Step, group: ConsumerGroup, predecessor: str, member_id: str
) -> Mapping[str, Share]:
    """Before 4.4 a member that replaces another gets the target of its predecessor even if there is none: then its own
    target, if it already has a place, counts as removed (V-127, M-STATIC-15)."""
    return {**group.target, member_id: group.target.get(predecessor, NO_SHARE)}


@quirk("old_replacement_rewrites_target", of=target.target_in_log)
def forgets_own_records(
    _: Next[Share | None], step: Step, group: ConsumerGroup, before: Mapping[str, Share], member_id: str
) -> Share | None:
    """Before 4.4 a new target is compared with the group as it was before the request: the target of the replacing
    member is written twice, though it is the same (V-127)."""
    return group.target.get(member_id)


@quirk("fault_tied_vote_bumps", of=target.is_other_assignor_preferred)
def ties_are_drawn_anew(_: Next[bool], step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Kafka reads the current winner of the election from one map, and the next one from another, newly made map. In a
    tie they may have the names in different orders, so heartbeats without news begin epochs for ever (M-HB-15,
    LIV-17)."""
    name, before = group.group_id, target.preferred_assignors(step, group.votes)
    stood = before[0] if len(before) == 1 else step.choices.standing(name, before)
    return stood != target.elected(step, name, target.preferred_assignors(step, target.votes_with(group, member)))
