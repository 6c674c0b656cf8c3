"""Counts of subscriptions by topic and by regex, and whether all members subscribe to the same topics (G-DATA-22)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fencepost.protocol.consumer_records import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupRegularExpressionValue,
)
from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.records import Record

from ..kernel.persistent import edit, frozen, with_entry, without
from .group import ByTopic, ConsumerGroup, ConsumerMember, Resolution


class Subscriptions(NamedTuple):
    """As in ``ConsumerGroup``: the subscribers of each topic, and how many members use each regex."""

    by_topic: ByTopic
    by_regex: Mapping[str, int]


class TopicTally:
    """A ``ByTopic`` while it is changed."""

    __slots__ = ("_counts", "_matched", "_matched_squared", "_named", "_named_squared")

    def __init__(self, before: ByTopic) -> None:
        counts, self._named, self._named_squared, self._matched, self._matched_squared = before
        self._counts = edit(counts)

    def named(self, topics: Iterable[str], change: int) -> None:
        """Add ``change`` to the number of members that name these topics."""
        for topic in topics:
            named, matched = self._counts.get(topic, (0, 0))
            self._named += change
            self._named_squared += (named + change) ** 2 - named**2
            self._put(topic, (named + change, matched))

    def matched(self, topics: Iterable[str], change: int) -> None:
        """Add ``change`` to the number of resolved regexes that match these topics."""
        for topic in topics:
            named, matched = self._counts.get(topic, (0, 0))
            self._matched += change
            self._matched_squared += (matched + change) ** 2 - matched**2
            self._put(topic, (named, matched + change))

    def _put(self, topic: str, count: tuple[int, int]) -> None:
        if count == (0, 0):
            self._counts.pop(topic, None)
        else:
            self._counts[topic] = count

    def freeze(self) -> ByTopic:
        """The counts after the changes; the tally must not be changed afterwards."""
        return ByTopic(frozen(self._counts), self._named, self._named_squared, self._matched, self._matched_squared)


def counted(counts: Mapping[str, int], name: str, change: int) -> Mapping[str, int]:
    """The counts with ``change`` added for this name; counts of 0 are left out."""
    count = counts.get(name, 0) + change
    return with_entry(counts, name, count) if count > 0 else without(counts, name)


def with_member(group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> Subscriptions:
    """The counts of the group with ``new`` in place of ``old`` (M-HB-04). A member that just joined is its own old
    version, without a subscription; a static one that came back is a copy of the one that it replaces."""
    by_topic, by_regex = group.by_topic, group.by_regex
    if new.renames(old):
        topics = TopicTally(by_topic)
        topics.named(old.topic_names, -1)
        topics.named(new.topic_names, 1)
        by_topic = topics.freeze()
    if old.regex != new.regex:
        if old.regex:
            by_regex = counted(by_regex, old.regex, -1)
        if new.regex:
            by_regex = counted(by_regex, new.regex, 1)
        if old.regex and old.regex not in by_regex and old.regex in group.resolved:
            topics = TopicTally(by_topic)
            topics.matched(group.resolved[old.regex].topics, -1)
            by_topic = topics.freeze()
    return Subscriptions(by_topic, by_regex)


def without_members(group: ConsumerGroup, members: Iterable[ConsumerMember]) -> Subscriptions:
    """The counts of the group without these members, and without regexes that are then unused (M-LEAVE-03)."""
    topics, by_regex = TopicTally(group.by_topic), group.by_regex
    for member in members:
        topics.named(member.topic_names, -1)
        if member.regex:
            by_regex = counted(by_regex, member.regex, -1)
            if member.regex not in by_regex and member.regex in group.resolved:
                topics.matched(group.resolved[member.regex].topics, -1)
    return Subscriptions(topics.freeze(), by_regex)


def with_resolutions(group: ConsumerGroup, resolutions: Mapping[str, Resolution]) -> ByTopic:
    """The counts by topic with these resolutions (M-RX-05)."""
    by_topic = TopicTally(group.by_topic)
    for regex, resolution in resolutions.items():
        old = group.resolved.get(regex)
        if old is not None:
            by_topic.matched(old.topics, -1)
        by_topic.matched(resolution.topics, 1)
    return by_topic.freeze()


def type_of(by_regex: Mapping[str, int], by_topic: ByTopic, members: int) -> SubscriptionType:
    """Whether all members subscribe to the same topics (M-TGT-05)."""
    if not by_regex:
        same = by_topic.all_named_by(members)
    elif len(by_regex) == 1 and next(iter(by_regex.values())) == members:
        same = by_topic.all_matched_once()
    else:
        same = False
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS


def told_topics(records: Iterable[Record]) -> frozenset[str]:
    """Every topic with a subscription in these records, for however short a time."""
    told: set[str] = set()
    for record in records:
        match record.value:
            case ConsumerGroupMemberMetadataValue(subscribed_topic_names=names):
                told.update(names)
            case ConsumerGroupRegularExpressionValue(topics=topics):
                told.update(topics)
    return frozenset(told)
