"""What a member subscribes to and owns (8.7, as far as membership needs it)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fencepost.protocol.events import Topic

from .partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """``topics`` are those of the subscription, or those that the pattern matched; ``group_topics`` those that a
    leader watches for its group; ``regex`` is for the coordinator to match (K-SUB-01). Of ``owned`` must not be fetched
    ``pending_revocation`` (K-CB-01, N-REC-04) and ``pending_callback``, which the listener does not know (N-REC-07)."""

    subscribed: bool = False
    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    regex: str | None = None
    group_topics: frozenset[str] = frozenset()
    owned: frozenset[TopicPartition] = frozenset()
    pending_revocation: frozenset[TopicPartition] = frozenset()
    pending_callback: frozenset[TopicPartition] = frozenset()

    def subscribe(self, topics: frozenset[str]) -> SubscriptionState:
        """Raises ``ValueError`` if a pattern is in use or no topic is named (K-SUB-01)."""
        if self.pattern is not None or self.regex is not None:
            raise ValueError("subscribed to a pattern; unsubscribe first")
        if not topics:
            raise ValueError("no topic; unsubscribe instead")
        return replace(self, subscribed=True, topics=topics)

    def subscribe_pattern(self, pattern: str) -> SubscriptionState:
        """Raises ``ValueError`` if topics were named before or the pattern is none (K-SUB-01)."""
        if self.subscribed and self.pattern is None:
            raise ValueError("subscribed to topics by name, or to a regex; unsubscribe first")
        try:
            re.compile(pattern)
        except re.error as reason:
            raise ValueError(f"{pattern!r} is no regular expression: {reason}") from None
        return replace(self, subscribed=True, pattern=pattern)

    def subscribe_regex(self, regex: str) -> SubscriptionState:
        """Raises ``ValueError`` if subscribed in another way (K-SUB-01). Whether it is one is the coordinator's to
        say."""
        if self.subscribed and self.regex is None:
            raise ValueError("subscribed in another way; unsubscribe first")
        return replace(self, subscribed=True, regex=regex)

    def match(self, cluster: Mapping[str, Topic]) -> SubscriptionState:
        """With a pattern: the topics that now match (K-JOIN-15)."""
        if self.pattern is None:
            return self
        return replace(self, topics=frozenset(name for name in cluster if self.accepts(name)))

    def adopt(self, topics: frozenset[str]) -> SubscriptionState:
        """With a pattern: take over matching topics that the leader saw first (K-JOIN-16)."""
        return replace(self, topics=self.topics | topics)

    @property
    def watched(self) -> frozenset[str]:
        """The topics whose metadata counts (K-JOIN-18)."""
        return self.topics | self.group_topics

    def accepts(self, topic: str) -> bool:
        """Is ``topic`` one that this member may be assigned (K-CB-08, K-JOIN-19)?"""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics

    def watch(self, topics: frozenset[str]) -> SubscriptionState:
        """A leader watches all topics of its group (K-JOIN-10)."""
        return replace(self, group_topics=topics)

    def watch_own(self) -> SubscriptionState:
        """The group's topics are watched no more, its own are."""
        return replace(self, group_topics=frozenset())

    def assign(self, partitions: Iterable[TopicPartition]) -> SubscriptionState:
        """Own exactly these; what stays keeps its marks (K-SUB-02, K-SUB-14)."""
        owned = frozenset(partitions)
        return replace(
            self,
            owned=owned,
            pending_revocation=self.pending_revocation & owned,
            pending_callback=self.pending_callback & owned,
        )

    @property
    def fetchable(self) -> frozenset[TopicPartition]:
        """What membership lets the application fetch; pauses and positions are the host's (K-SUB-03, INV-CL-02)."""
        named = self.subscribed and self.pattern is None and self.regex is None
        held = self.pending_revocation | self.pending_callback
        return frozenset(each for each in self.owned - held if not named or each.topic in self.topics)

    def mark_all(self) -> SubscriptionState:
        """No further records of anything owned (K-CB-01)."""
        return replace(self, pending_revocation=self.owned)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The metadata that an assignment rests on (K-JOIN-02, K-JOIN-18): per topic and partition, the replicas' racks if
    the client has a rack, else nothing."""

    version: int = 0
    topics: tuple[tuple[str, tuple[frozenset[str], ...]], ...] = ()

    @staticmethod
    def take(version: int, cluster: Mapping[str, Topic], watched: Iterable[str], rack: str | None) -> Snapshot:
        """The watched topics as the cluster has them now, with racks if the member has one."""
        rows = []
        for name in sorted(watched):
            topic = cluster.get(name)
            if topic is not None:
                racks = topic.racks if rack is not None and topic.racks else (frozenset[str](),) * topic.partitions
                rows.append((name, racks))
        return Snapshot(version, tuple(rows))

    def matches(self, other: Snapshot) -> bool:
        """Whether nothing has changed since that would need a rebalance."""
        return self.version == other.version or self.topics == other.topics
