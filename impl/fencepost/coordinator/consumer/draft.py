"""A consumer group while records are applied to it: the values in the records, and the counts that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Final

from fencepost.protocol.consumer_view import MemberState

from ..kernel.errors import InternalError
from ..kernel.persistent import changed, edit, frozen, owned
from ..kernel.rules import Rules
from .group import (
    ByTopic,
    ConsumerGroup,
    ConsumerGroupMember,
    Holding,
    Resolution,
    Share,
    TopicTally,
    counted,
    subscription_type_of,
)

_NOBODY: Final[Mapping[int, int]] = {}


class ConsumerDraft:
    """Fields as in ``ConsumerGroup``; members, targets and regexes change through the methods only."""

    __slots__ = (
        "_before",
        "_epochs",
        "_members_changed",
        "_rules",
        "_topics",
        "assignment_epoch",
        "assignment_timestamp",
        "by_regex",
        "classic_members",
        "epoch",
        "members",
        "metadata_hash",
        "partition_metadata",
        "resolved",
        "stable",
        "static_members",
        "subscription_type",
        "support",
        "target",
        "votes",
    )

    def __init__(self, group: ConsumerGroup, rules: Rules) -> None:
        self._before = group
        self.epoch = group.epoch
        self.assignment_epoch = group.assignment_epoch
        self.metadata_hash = group.metadata_hash
        self.assignment_timestamp = group.assignment_timestamp
        self.members = group.members
        self.static_members = group.static_members
        self.target = group.target
        self._epochs: dict[bytes, MutableMapping[int, int]] = {}  #: of the topics with changed epochs
        self.resolved = group.resolved
        self._topics: TopicTally | None = None  #: set once the counts by topic change
        self._members_changed = False  #: but the subscription type is not computed yet
        self.by_regex = group.by_regex
        self.subscription_type = group.subscription_type
        self.partition_metadata = group.partition_metadata
        self.votes = group.votes
        self.classic_members = group.classic_members
        self.support = group.support
        self.stable = group.stable
        self._rules = rules

    def freeze(self) -> ConsumerGroup:
        """The group after the changes; the draft must not be changed afterwards."""
        before, by_topic = self._before, self._by_topic()
        return ConsumerGroup(
            before.group_id,
            before.incarnation,
            self.epoch,
            self.assignment_epoch,
            self.metadata_hash,
            self.assignment_timestamp,
            frozen(self.members),
            frozen(self.static_members),
            frozen(self.target),
            self._partition_epochs(),
            frozen(self.resolved),
            by_topic,
            self.by_regex,
            self.subscription_type,
            self.partition_metadata,
            before.refresh,
            before.changed_topics if self.epoch == before.epoch else frozenset(),
            self.votes,
            self.classic_members,
            self.support,
            frozen(self.stable),
        )

    def put(self, member: ConsumerGroupMember) -> None:
        """Add a member, or replace the one with its id."""
        members = self.members = owned(self.members, self._before.members)
        old = members.get(member.member_id)
        members[member.member_id] = member
        self._count(old, member)
        if old is not None:
            self._release(old)
            if old.instance_id != member.instance_id and self._rules.relabelled_instance_freed:
                self._unmap(old)  # M-STATIC-13
        self._hold(member.assigned, member.epoch)
        self._hold(member.revoking, member.epoch)
        if member.instance_id is not None:
            mapping = self.static_members = owned(self.static_members, self._before.static_members)
            mapping[member.instance_id] = member.member_id
        self._members_changed = True

    def remove(self, member: ConsumerGroupMember) -> None:
        """Remove a member, and everything that depends on it."""
        members = self.members = owned(self.members, self._before.members)
        del members[member.member_id]
        self._count(member, None)
        self._release(member)
        self._unmap(member)
        self._members_changed = True

    def set_target(self, member_id: str, share: Share | None) -> None:
        """Set the target of a member; None removes it (F-REPLAY-09)."""
        target = self.target = owned(self.target, self._before.target)
        if share is None:
            target.pop(member_id, None)
        else:
            target[member_id] = share

    def resolve(self, regex: str, resolution: Resolution | None) -> None:
        """Set the topics that a regex matches (F-REC-16); None removes them. The subscription type stays (M-TGT-05)."""
        self._by_topic()
        resolved = self.resolved = owned(self.resolved, self._before.resolved)
        old = resolved.pop(regex, None)
        topics = self._own_topics()
        if old is not None:
            topics.matched(old.topics, -1)
        if resolution is not None:
            resolved[regex] = resolution
            topics.matched(resolution.topics, 1)

    def _own_topics(self) -> TopicTally:
        topics = self._topics = self._topics or TopicTally(self._before.by_topic)
        return topics

    def _count(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        """A member changes, joins (from None) or leaves (to None); most records change nothing that is counted."""
        names = frozenset[str]() if old is None else old.topic_names
        named = frozenset[str]() if new is None else new.topic_names
        if names is not named and names != named:
            topics = self._own_topics()
            topics.named(names, -1)
            topics.named(named, 1)
        if old is None or new is None or not _counts_the_same(old, new):
            self._tally(old, -1)
            self._tally(new, 1)
        if old is None or new is None or old.epoch != new.epoch or old.state is not new.state:
            self._count_stable(old, -1)
            self._count_stable(new, 1)

    def _count_stable(self, member: ConsumerGroupMember | None, change: int) -> None:
        if member is None or member.state is not MemberState.STABLE:
            return
        stable = self.stable = owned(self.stable, self._before.stable)
        count = stable.get(member.epoch, 0) + change
        if count:
            stable[member.epoch] = count
        else:
            del stable[member.epoch]

    def _tally(self, member: ConsumerGroupMember | None, change: int) -> None:
        if member is None:
            return
        if member.regex:
            self.by_regex = counted(self.by_regex, member.regex, change)
        if member.assignor is not None:
            self.votes = counted(self.votes, member.assignor, change)
        if member.classic is not None:
            self.classic_members += change
            for protocol in member.classic.supported_protocols:
                self.support = counted(self.support, protocol.name, change)

    def _unmap(self, member: ConsumerGroupMember) -> None:
        """Free the instance id of a member, if it is mapped to this member (F-REPLAY-07)."""
        instance_id = member.instance_id
        mapped = None if instance_id is None else self.static_members.get(instance_id)
        if instance_id is None or mapped is None:
            return
        if mapped == member.member_id or not self._rules.instance_freed_by_its_member:
            mapping = self.static_members = owned(self.static_members, self._before.static_members)
            del mapping[instance_id]

    def _by_topic(self) -> ByTopic:
        """The current counts; the subscription type is from the last change of a member (M-TGT-05)."""
        by_topic = self._before.by_topic if self._topics is None else self._topics.freeze()
        if self._members_changed:
            self.subscription_type = subscription_type_of(self.by_regex, by_topic, len(self.members))
            self._members_changed = False
        return by_topic

    def _epochs_of(self, topic_id: bytes) -> MutableMapping[int, int]:
        """The epochs of the partitions of the topic, as a map to be changed."""
        epochs = self._epochs.get(topic_id)
        if epochs is None:
            epochs = self._epochs[topic_id] = edit(self._before.partition_epochs.get(topic_id, _NOBODY))
        return epochs

    def _partition_epochs(self) -> Mapping[bytes, Mapping[int, int]]:
        changes = {topic_id: frozen(epochs) or None for topic_id, epochs in self._epochs.items()}
        before = self._before.partition_epochs
        return changed(before, changes) if changes else before

    def _release(self, member: ConsumerGroupMember) -> None:
        """M-PE-02: an entry with another epoch does not belong to this member."""
        for holding in (member.assigned, member.revoking):
            for topic_id, partitions in holding.items():
                epochs = self._epochs_of(topic_id)
                for partition in partitions:
                    if epochs.get(partition) == member.epoch:
                        del epochs[partition]

    def _hold(self, holding: Holding, epoch: int) -> None:
        """M-PE-01, M-PE-02."""
        for topic_id, partitions in holding.items():
            epochs = self._epochs_of(topic_id)
            for partition in partitions:
                known = epochs.get(partition)
                if known is not None and known >= epoch:
                    raise InternalError
                epochs[partition] = epoch


def _counts_the_same(one: ConsumerGroupMember, other: ConsumerGroupMember) -> bool:
    return one.regex == other.regex and one.assignor == other.assignor and one.classic == other.classic
