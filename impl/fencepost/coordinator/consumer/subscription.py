"""Who subscribes to what: counts by topic and by regex, and whether all members subscribe to the same (G-DATA-22)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fencepost.protocol.consumer_records import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupRegularExpressionValue,
)
from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.records import Record

from .group import ConsumerGroup, ConsumerMember, Resolution


class Subscriptions(NamedTuple):
    """As in ``ConsumerGroup``: members by name and regexes by match for each topic; users of each regex."""

    by_topic: Mapping[str, tuple[int, int]]
    by_regex: Mapping[str, int]


def count_names(counts: dict[str, tuple[int, int]], topics: Iterable[str], change: int) -> None:
    for topic in topics:
        named, matched = counts.get(topic, (0, 0))
        _put(counts, topic, (named + change, matched))


def count_regex(counts: dict[str, tuple[int, int]], topics: Iterable[str], change: int) -> None:
    for topic in topics:
        named, matched = counts.get(topic, (0, 0))
        _put(counts, topic, (named, matched + change))


def count_user(counts: dict[str, int], regex: str, change: int) -> None:
    users = counts.get(regex, 0) + change
    if users > 0:
        counts[regex] = users
    else:
        counts.pop(regex, None)


def _put(counts: dict[str, tuple[int, int]], topic: str, count: tuple[int, int]) -> None:
    if count == (0, 0):
        counts.pop(topic, None)
    else:
        counts[topic] = count


def with_member(group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> Subscriptions:
    """The counts of the group if ``new`` stood for ``old`` (M-HB-04). A member that just came is its own old version,
    without a subscription; a static one that came back is a copy of the one that it replaces."""
    by_topic, by_regex = group.by_topic, group.by_regex
    if old.topic_names != new.topic_names:
        names = dict(by_topic)
        count_names(names, old.topic_names, -1)
        count_names(names, new.topic_names, 1)
        by_topic = names
    if old.regex != new.regex:
        by_regex = dict(by_regex)
        if old.regex:
            count_user(by_regex, old.regex, -1)
        if new.regex:
            count_user(by_regex, new.regex, 1)
        if old.regex and old.regex not in by_regex and old.regex in group.resolved:
            topics = dict(by_topic)
            count_regex(topics, group.resolved[old.regex].topics, -1)
            by_topic = topics
    return Subscriptions(by_topic, by_regex)


def without_members(group: ConsumerGroup, members: Iterable[ConsumerMember]) -> Subscriptions:
    """The counts of the group without these members, and without regexes that then nobody uses (M-LEAVE-03)."""
    by_topic, by_regex = dict(group.by_topic), dict(group.by_regex)
    for member in members:
        count_names(by_topic, member.topic_names, -1)
        if member.regex:
            count_user(by_regex, member.regex, -1)
            if member.regex not in by_regex and member.regex in group.resolved:
                count_regex(by_topic, group.resolved[member.regex].topics, -1)
    return Subscriptions(by_topic, by_regex)


def with_resolutions(group: ConsumerGroup, resolutions: Mapping[str, Resolution]) -> Mapping[str, tuple[int, int]]:
    """The counts by topic if these regexes were resolved so (M-RX-05)."""
    by_topic = dict(group.by_topic)
    for regex, resolution in resolutions.items():
        old = group.resolved.get(regex)
        if old is not None:
            count_regex(by_topic, old.topics, -1)
        count_regex(by_topic, resolution.topics, 1)
    return by_topic


def type_of(by_regex: Mapping[str, int], by_topic: Mapping[str, tuple[int, int]], members: int) -> SubscriptionType:
    """M-TGT-05."""
    if not by_regex:
        same = all(named == members for named, _ in by_topic.values())
    elif len(by_regex) == 1 and next(iter(by_regex.values())) == members:
        same = all(count == (0, 1) for count in by_topic.values())
    else:
        same = False
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS


def told_topics(records: Iterable[Record]) -> frozenset[str]:
    """Every topic that these records say is subscribed to, for however short a time."""
    told: set[str] = set()
    for record in records:
        match record.value:
            case ConsumerGroupMemberMetadataValue(subscribed_topic_names=names):
                told.update(names)
            case ConsumerGroupRegularExpressionValue(topics=topics):
                told.update(topics)
    return frozenset(told)
