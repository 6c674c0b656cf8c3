"""A consumer group: the content of its records, and the counts of its subscriptions that follow from them.

The first half of this module has the values. The second half counts the subscriptions by topic and by regex as they
will be once a member, or a resolved regex, has changed (G-DATA-22).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.consumer_messages import LEAVE_EPOCH
from fencepost.protocol.consumer_records import ClassicMemberMetadata, TopicMetadata
from fencepost.protocol.consumer_view import ConsumerGroupState, MemberState, SubscriptionType

from ..kernel.persistent import edit, frozen, with_entry, without
from ..kernel.rules import Rules
from ..kernel.step import Step

#: Partitions by topic id.
Share: TypeAlias = Mapping[bytes, tuple[int, ...]]
#: Partitions by topic id, each with the epoch at which it was assigned (M-PE-06). Releases without such epochs hold 0
#: for all, so that comparing two of them compares the sets (V-53, V-54).
Holding: TypeAlias = Mapping[bytes, Mapping[int, int]]

NOTHING: Final[Mapping[bytes, Mapping[int, int]]] = {}
NO_SHARE: Final[Mapping[bytes, tuple[int, ...]]] = {}


class ConsumerGroupMember(NamedTuple):
    """One member of a consumer group (G-DATA-29). An unset regex is ``""``; ``previous_epoch`` and ``epoch`` as in
    M-FENCE-*."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    topic_names: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    epoch: int = 0
    previous_epoch: int = LEAVE_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Holding = NOTHING
    revoking: Holding = NOTHING

    def renames(self, before: ConsumerGroupMember) -> bool:
        """Whether it subscribes to other names than before. Sets that are the same object are not compared, which would
        take long with many names."""
        return self.topic_names is not before.topic_names and self.topic_names != before.topic_names

    def reconciled_to(self, epoch: int) -> bool:
        """Whether the member has all of its target at this epoch (M-ST-03)."""
        return self.state is MemberState.STABLE and self.epoch == epoch


class Resolution(NamedTuple):
    """The result of a regex (G-DATA-31): topic names, version of the image, time in ms."""

    topics: frozenset[str]
    version: int
    timestamp: int


class ByTopic(NamedTuple):
    """``counts``: for each topic the number of members that name it, and of resolved regexes that match it.

    The other fields are sums over all topics, which tell whether all topics are alike without a look at each.
    """

    counts: Mapping[str, tuple[int, int]] = {}
    named: int = 0
    named_squared: int = 0
    matched: int = 0
    matched_squared: int = 0

    def all_named_by(self, members: int) -> bool:
        """Whether each topic is named by this many members: the squared distances from that number add up to 0."""
        return self.named_squared - 2 * members * self.named + members * members * len(self.counts) == 0

    def all_matched_once(self) -> bool:
        """Whether one regex matches each topic, and no member names any."""
        return self.named_squared == 0 and self.matched_squared - 2 * self.matched + len(self.counts) == 0


class Refresh(NamedTuple):
    """When to look at the topics again (M-META-01): a time in ms, and the group epoch when it was set."""

    deadline: int
    epoch: int


class ConsumerGroup(NamedTuple):
    """A consumer group (G-DATA-20…33). ``incarnation`` tells apart two groups of the same name.

    Values derived from the members are counted as members join and leave, so that no request has to iterate over them:
    ``by_topic``, ``by_regex`` the members that use a regex, ``votes`` those that want an assignor, ``classic_members``
    those of the classic protocol, ``support`` how many of their lists contain a protocol, and ``stable`` how many are
    STABLE at an epoch. ``subscription_type`` is from the last change of a member (M-TGT-05).

    ``refresh`` and ``changed_topics`` are soft: they are in no record, and a failed append does not undo them
    (F-RT-08). ``changed_topics`` only serves the cause of a rebalance.
    """

    group_id: str
    incarnation: int
    epoch: int
    assignment_epoch: int
    metadata_hash: int = 0
    assignment_timestamp: int = 0
    members: Mapping[str, ConsumerGroupMember] = {}
    static_members: Mapping[str, str] = {}
    target: Mapping[str, Share] = {}
    partition_epochs: Mapping[bytes, Mapping[int, int]] = {}
    resolved: Mapping[str, Resolution] = {}
    by_topic: ByTopic = ByTopic()
    by_regex: Mapping[str, int] = {}
    subscription_type: SubscriptionType = SubscriptionType.HOMOGENEOUS
    partition_metadata: tuple[TopicMetadata, ...] | None = None  #: of 4.0's record, if one is in the log (G-DATA-33)
    refresh: Refresh | None = None
    changed_topics: frozenset[str] = frozenset()  #: since the epoch began, according to the images
    votes: Mapping[str, int] = {}
    classic_members: int = 0
    support: Mapping[str, int] = {}
    stable: Mapping[int, int] = {}

    @property
    def state(self) -> ConsumerGroupState:
        """The state that the group shows: it waits for a target, for members that reconcile, or for nothing
        (M-ST-01…06)."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if self.stable.get(self.assignment_epoch, 0) == len(self.members):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def current_epoch(self) -> int:
        """The group epoch."""
        return self.epoch

    def parked(self) -> tuple[int, ...]:
        """Empty: every request is answered when its records are in the log."""
        return ()

    def with_answered(self, number: int) -> ConsumerGroup:
        """The group itself: no request waits in a consumer group."""
        return self

    def entries(self) -> Mapping[str, object]:
        """The members; Kafka keeps each of them as of the high watermark (F-RT-11, C-ADM-05)."""
        return self.members

    @property
    def gives_way(self) -> bool:
        """Never: a group that replaces it writes its tombstones first."""
        return False

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """The topics that the member subscribes to now: its own, and those of the stored resolution of its regex."""
        resolution = self.resolved.get(member.regex) if member.regex else None
        return member.topic_names if resolution is None else member.topic_names | resolution.topics


def find_consumer_group(step: Step, group_id: str) -> ConsumerGroup | None:
    """The consumer group of this name."""
    group = step.memory.groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) else None


def new_group(rules: Rules, group_id: str, incarnation: int, epoch: int = 0) -> ConsumerGroup:
    """An empty group (G-DATA-20). ``epoch``: the epoch of the group that it replaces, where its count starts
    (M-VAL-22)."""
    first = max(epoch, rules.first_epoch)
    return ConsumerGroup(group_id, incarnation, first, first)


def held(assigned: Iterable[tuple[bytes, Iterable[int]]], epoch: int) -> dict[bytes, dict[int, int]]:
    """A holding in which every partition has this assignment epoch."""
    return {topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in assigned}


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


def with_member(group: ConsumerGroup, old: ConsumerGroupMember, new: ConsumerGroupMember) -> Subscriptions:
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


def without_members(group: ConsumerGroup, members: Iterable[ConsumerGroupMember]) -> Subscriptions:
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


def subscription_type_of(by_regex: Mapping[str, int], by_topic: ByTopic, members: int) -> SubscriptionType:
    """Whether all members subscribe to the same topics (M-TGT-05)."""
    if not by_regex:
        same = by_topic.all_named_by(members)
    elif len(by_regex) == 1 and next(iter(by_regex.values())) == members:
        same = by_topic.all_matched_once()
    else:
        same = False
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS
