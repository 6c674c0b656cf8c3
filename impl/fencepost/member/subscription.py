"""The topics that a member subscribes to and the partitions that it owns (8.7, the membership part)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fencepost.protocol.events import Topic

from .partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """``topics``: the subscribed topics, or those that match the pattern. ``group_topics``: the topics that a leader
    watches for its group. ``regex``: the coordinator matches it (K-SUB-01). Two parts of ``owned`` must not be fetched:
    ``pending_revocation`` (K-CB-01, N-REC-04), and ``pending_callback``, which the listener has not seen (N-REC-07)."""

    subscribed: bool = False
    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    regex: str | None = None
    group_topics: frozenset[str] = frozenset()
    owned: frozenset[TopicPartition] = frozenset()
    pending_revocation: frozenset[TopicPartition] = frozenset()
    pending_callback: frozenset[TopicPartition] = frozenset()

    def subscribe(self, topics: frozenset[str]) -> SubscriptionState:
        """Subscribe to topics. Raises ``ValueError`` if a pattern is in use or ``topics`` is empty (K-SUB-01)."""
        if self.pattern is not None or self.regex is not None:
            raise ValueError("already subscribed to a pattern; unsubscribe first")
        if not topics:
            raise ValueError("Subscribe needs at least one topic; use Unsubscribe to drop all")
        return replace(self, subscribed=True, topics=topics)

    def subscribe_pattern(self, pattern: str) -> SubscriptionState:
        """Subscribe to a pattern. Raises ``ValueError`` if topics are in use or it is not valid (K-SUB-01)."""
        if self.subscribed and self.pattern is None:
            raise ValueError("already subscribed to topics by name, or to a regex; unsubscribe first")
        try:
            re.compile(pattern)
        except re.error as reason:
            raise ValueError(f"{pattern!r} is not a valid regular expression: {reason}") from None
        return replace(self, subscribed=True, pattern=pattern)

    def subscribe_regex(self, regex: str) -> SubscriptionState:
        """Subscribe to a regex. Raises ``ValueError`` if subscribed in another way (K-SUB-01). The coordinator checks
        whether the regex is valid."""
        if self.subscribed and self.regex is None:
            raise ValueError("already subscribed to topics or to a pattern; unsubscribe first")
        return replace(self, subscribed=True, regex=regex)

    def match(self, cluster: Mapping[str, Topic]) -> SubscriptionState:
        """Set ``topics`` to those that match the pattern now, if there is a pattern (K-JOIN-15)."""
        if self.pattern is None:
            return self
        return replace(self, topics=frozenset(name for name in cluster if self.accepts(name)))

    def adopt(self, topics: frozenset[str]) -> SubscriptionState:
        """Add matching topics that the leader saw first; only for a pattern (K-JOIN-16)."""
        return replace(self, topics=self.topics | topics)

    @property
    def watched(self) -> frozenset[str]:
        """The topics whose metadata the member watches (K-JOIN-18)."""
        return self.topics | self.group_topics

    def accepts(self, topic: str) -> bool:
        """Return whether this member may be assigned ``topic`` (K-CB-08, K-JOIN-19)."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics

    def watch(self, topics: frozenset[str]) -> SubscriptionState:
        """Watch all topics of the group; only a leader does so (K-JOIN-10)."""
        return replace(self, group_topics=topics)

    def watch_own(self) -> SubscriptionState:
        """Stop watching the group's topics; watch only the member's own."""
        return replace(self, group_topics=frozenset())

    def assign(self, partitions: Iterable[TopicPartition]) -> SubscriptionState:
        """Own exactly these partitions; those owned before keep their marks (K-SUB-02, K-SUB-14)."""
        owned = frozenset(partitions)
        return replace(
            self,
            owned=owned,
            pending_revocation=self.pending_revocation & owned,
            pending_callback=self.pending_callback & owned,
        )

    @property
    def fetchable(self) -> frozenset[TopicPartition]:
        """The partitions that membership allows to fetch. Pauses and positions are the host's (K-SUB-03, INV-CL-02)."""
        named = self.subscribed and self.pattern is None and self.regex is None
        held = self.pending_revocation | self.pending_callback
        return frozenset(each for each in self.owned - held if not named or each.topic in self.topics)

    def mark_all(self) -> SubscriptionState:
        """Stop fetching from all owned partitions (K-CB-01)."""
        return replace(self, pending_revocation=self.owned)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The metadata that an assignment is based on (K-JOIN-02, K-JOIN-18). For each topic and partition it holds the
    racks of the replicas if the client has a rack, else nothing."""

    version: int = 0
    topics: tuple[tuple[str, tuple[frozenset[str], ...]], ...] = ()

    @staticmethod
    def take(version: int, cluster: Mapping[str, Topic], watched: Iterable[str], rack: str | None) -> Snapshot:
        """Return the watched topics as the cluster has them now, with racks if ``rack`` is not None."""
        rows = []
        for name in sorted(watched):
            topic = cluster.get(name)
            if topic is not None:
                racks = topic.racks if rack is not None and topic.racks else (frozenset[str](),) * topic.partitions
                rows.append((name, racks))
        return Snapshot(version, tuple(rows))

    def matches(self, other: Snapshot) -> bool:
        """Return whether no change since ``other`` needs a rebalance."""
        return self.version == other.version or self.topics == other.topics
