"""Values derived from the members of a consumer group (G-DATA-22, 25, 26, 28, 31)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from fencepost.protocol.consumer_view import ResolvedRegex, SubscriptionType
from fencepost.protocol.events import Topic
from fencepost.protocol.settings import Settings

from ..machines import C_STABLE, G_ASSIGNING, G_EMPTY, G_RECONCILING, G_STABLE
from .state import ConsumerGroup, Image, Member, Partition

if TYPE_CHECKING:
    from ..variant import Variant

_NO_TOPICS: Final[frozenset[str]] = frozenset()


def group_state(group: ConsumerGroup) -> str:
    """Return the group's state: the first of M-ST-01…04 that matches. It is a function of the group, so INV-KIP-08
    cannot fail."""
    if not group.members:
        return G_EMPTY
    if group.epoch > group.assignment_epoch:
        return G_ASSIGNING
    epoch = group.assignment_epoch
    if all(member.state == C_STABLE and member.epoch == epoch for member in group.members):
        return G_STABLE
    return G_RECONCILING  # also with a static member at -2 (M-ST-08)


@lru_cache(maxsize=1 << 10)
def holders(members: tuple[Member, ...]) -> Mapping[Partition, int]:
    """Return the epoch of every held partition (M-PE-01), derived anew each time (INV-KIP-12)."""
    found: dict[Partition, int] = {}
    for member in members:
        for held in (member.assigned, member.revoking):
            for topic, number, _ in held:
                before = found.get((topic, number))
                if before is None or before < member.epoch:  # M-PE-02
                    found[topic, number] = member.epoch
    return found


@lru_cache(maxsize=1 << 8)
def topics_by_name(image: Image) -> Mapping[str, Topic]:
    return {topic.name: topic for topic in image.topics}


@lru_cache(maxsize=1 << 8)
def by_id(image: Image) -> Mapping[bytes, Topic]:
    return {topic.topic_id: topic for topic in image.topics}


def topics_of(member: Member, regexes: Iterable[ResolvedRegex]) -> frozenset[str]:
    """Return the names that a member subscribes to: its own, and those of its regex if that is resolved."""
    names = frozenset(member.names)
    if member.regex:
        for row in regexes:
            if row.regex == member.regex:
                return names.union(row.topics)
    return names


@lru_cache(maxsize=1 << 12)
def subscribed(names: tuple[str, ...], resolved: tuple[str, ...], image: Image) -> frozenset[bytes]:
    """Return S(m): the ids of the existing topics among the names and the topics of the resolution."""
    topics = topics_by_name(image)
    return frozenset(topics[name].topic_id for name in (*names, *resolved) if name in topics)


def subscription(member: Member, group: ConsumerGroup, image: Image) -> frozenset[bytes]:
    """Return S(m) with the resolutions that the group has stored."""
    row = group.resolved(member.regex) if member.regex else None
    return subscribed(member.names, row.topics if row else (), image)


def used_regexes(members: Iterable[Member]) -> dict[str, int]:
    """Return for each regex how many members use it (G-DATA-31)."""
    counts: dict[str, int] = {}
    for member in members:
        if member.regex:
            counts[member.regex] = counts.get(member.regex, 0) + 1
    return counts


def counted(
    members: Iterable[Member], before: Iterable[Member], regexes: Iterable[ResolvedRegex]
) -> tuple[ResolvedRegex, ...]:
    """Return the regexes whose topics count for the group.

    These are all resolved ones (G-DATA-22), except those that just lost their last user. So a regex that the log holds
    and no member uses counts. ``before``: the members before the change.
    """
    used, were = used_regexes(members), used_regexes(before)
    return tuple([row for row in regexes if row.regex in used or row.regex not in were])


def group_topics(members: Iterable[Member], regexes: Iterable[ResolvedRegex]) -> frozenset[str]:
    """Return every name that the group subscribes to, existing or not. ``regexes``: those that count."""
    names = {name for member in members for name in member.names}
    for row in regexes:
        names.update(row.topics)
    return frozenset(names)


@lru_cache(maxsize=1 << 10)
def subscription_type(members: tuple[Member, ...], regexes: tuple[ResolvedRegex, ...]) -> SubscriptionType:
    """Return the subscription type (M-TGT-05, G-DATA-22), counted anew each time (INV-KIP-13). ``regexes``: all
    resolved ones."""
    size = len(members)
    by_name: dict[str, int] = {}
    by_regex: dict[str, int] = {}
    for member in members:
        for name in member.names:
            by_name[name] = by_name.get(name, 0) + 1
    for row in regexes:
        for name in row.topics:
            by_regex[name] = by_regex.get(name, 0) + 1
    used = used_regexes(members)
    if not used:
        same = all(by_name.get(name, 0) == size for name in by_name.keys() | by_regex.keys())
    else:
        same = len(used) == 1 and size in used.values() and not by_name and set(by_regex.values()) <= {1}
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS


def votes(variant: Variant, settings: Settings, members: Iterable[Member]) -> list[str]:
    """Return the assignors with the most votes, by name, or the default if there are no votes (M-TGT-02)."""
    known = settings.group_consumer_assignors
    counts: dict[str, int] = {}
    for member in members:
        if member.assignor in known or (member.assignor is not None and variant.consumer.absent_assignors_count):
            counts[member.assignor] = counts.get(member.assignor, 0) + 1
    if not counts:
        return [known[0]]
    most = max(counts.values())
    return sorted(name for name, count in counts.items() if count == most)


def hashed(names: Iterable[str], image: Image) -> tuple[Topic, ...]:
    """Return the input of the metadata hash (M-META-07): the existing topics among the names, in the order of names."""
    topics = topics_by_name(image)
    return tuple([topics[name] for name in sorted(names) if name in topics])
