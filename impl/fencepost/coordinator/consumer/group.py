"""A consumer group: the content of its records, derived counts, and when to look at the topics again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.consumer_messages import LEAVE_EPOCH
from fencepost.protocol.consumer_records import ClassicMemberMetadata, TopicMetadata
from fencepost.protocol.consumer_view import ConsumerGroupState, MemberState, SubscriptionType
from fencepost.quirks import HasQuirks, varies

#: Partitions by topic id.
Share: TypeAlias = Mapping[bytes, tuple[int, ...]]
#: Partitions by topic id, each with the epoch at which it was assigned (M-PE-06). Releases without such epochs hold 0
#: for all, so that comparing two of them compares the sets (V-53, V-54).
Holding: TypeAlias = Mapping[bytes, Mapping[int, int]]

NOTHING: Final[Mapping[bytes, Mapping[int, int]]] = {}
NO_SHARE: Final[Mapping[bytes, tuple[int, ...]]] = {}


class ConsumerMember(NamedTuple):
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

    def renames(self, before: ConsumerMember) -> bool:
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
    members: Mapping[str, ConsumerMember] = {}
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

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the member that holds the partition (M-PE-01); -1 if no member does."""
        return self.partition_epochs.get(topic_id, {}).get(partition, -1)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics that the member subscribes to now: its own, and those of the stored resolution of its regex."""
        resolution = self.resolved.get(member.regex) if member.regex else None
        return member.topic_names if resolution is None else member.topic_names | resolution.topics

    def refresh_due(self, now: int) -> bool:
        """Whether it is time to look at the topics' metadata again (M-META-01, M-META-02)."""
        return self.refresh is None or now >= self.refresh.deadline or self.epoch < self.refresh.epoch


def new_group(work: HasQuirks, group_id: str, incarnation: int, epoch: int = 0) -> ConsumerGroup:
    """An empty group (G-DATA-20). ``epoch``: the epoch of the group that it replaces, where its count starts
    (M-VAL-22)."""
    first = max(epoch, first_epoch(work))
    return ConsumerGroup(group_id, incarnation, first, first)


@varies
def first_epoch(work: HasQuirks) -> int:
    """The epoch of a group that does not replace another (G-DATA-20)."""
    return 1


def held(assigned: Iterable[tuple[bytes, Iterable[int]]], epoch: int) -> dict[bytes, dict[int, int]]:
    """A holding in which every partition has this assignment epoch."""
    return {topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in assigned}
