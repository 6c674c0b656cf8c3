"""A consumer group while records are applied to it: the facts they state, and the counts that follow from them."""

from __future__ import annotations

from typing import Any

from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.quirks import Quirks, varies

from ..kernel.errors import InternalError
from . import subscription
from .group import ConsumerGroup, ConsumerMember, Holding, Refresh, Resolution, Share

_FIELDS = ConsumerGroup._fields


class ConsumerDraft:
    """Fields as in ``ConsumerGroup``. Its mappings are the group's until they are changed for the first time."""

    __slots__ = ("_own", "quirks", *_FIELDS)

    group_id: str
    incarnation: int
    epoch: int
    assignment_epoch: int
    metadata_hash: int
    assignment_timestamp: int
    members: dict[str, ConsumerMember]
    static_members: dict[str, str]
    target: dict[str, Share]
    partition_epochs: dict[bytes, dict[int, int]]
    resolved: dict[str, Resolution]
    by_topic: dict[str, tuple[int, int]]
    by_regex: dict[str, int]
    subscription_type: SubscriptionType
    partition_metadata: tuple[Any, ...] | None
    refresh: Refresh | None

    def __init__(self, group: ConsumerGroup, quirks: Quirks | None) -> None:
        for name, value in zip(_FIELDS, group, strict=True):
            setattr(self, name, value)
        self._own: set[object] = set()
        self.quirks = quirks

    def freeze(self) -> ConsumerGroup:
        """What the draft has come to; it must not be changed afterwards."""
        return ConsumerGroup(*(getattr(self, name) for name in _FIELDS))

    def edit(self, name: str) -> dict[Any, Any]:
        """The mapping of this name, to be changed."""
        if name not in self._own:
            setattr(self, name, dict(getattr(self, name)))
            self._own.add(name)
        mapping: dict[Any, Any] = getattr(self, name)
        return mapping

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or exchange the one with its id."""
        old = self.members.get(member.member_id)
        self.edit("members")[member.member_id] = member
        if old is None or old.topic_names != member.topic_names or old.regex != member.regex:
            self._count(old, -1)
            self._count(member, 1)
        if old is not None:
            self._release(old)
            if old.instance_id != member.instance_id:
                self.relabelled(old)
        self._hold(member.assigned, member.epoch)
        self._hold(member.revoking, member.epoch)
        if member.instance_id is not None:
            self.edit("static_members")[member.instance_id] = member.member_id
        self._recompute_type()

    def remove(self, member: ConsumerMember) -> None:
        del self.edit("members")[member.member_id]
        self._count(member, -1)
        self._release(member)
        self._unmap(member)
        self._recompute_type()

    def resolve(self, regex: str, resolution: Resolution | None) -> None:
        """F-REC-16; None forgets. The subscription type is not looked at (M-TGT-05)."""
        resolved = self.edit("resolved")
        old = resolved.pop(regex, None)
        counts = self.edit("by_topic")
        if old is not None:
            subscription.count_regex(counts, old.topics, -1)
        if resolution is not None:
            resolved[regex] = resolution
            subscription.count_regex(counts, resolution.topics, 1)

    def _count(self, member: ConsumerMember | None, change: int) -> None:
        if member is None:
            return
        if member.topic_names:
            subscription.count_names(self.edit("by_topic"), member.topic_names, change)
        if member.regex:
            subscription.count_user(self.edit("by_regex"), member.regex, change)

    @varies
    def relabelled(self, old: ConsumerMember) -> None:
        """The member has another instance id from now on, and the one that it had is free (M-STATIC-13)."""
        self._unmap(old)

    @varies
    def unmaps(self, member: ConsumerMember, mapped: str) -> bool:
        """Whether the instance id of a member that goes is free: if it is mapped to this member (F-REPLAY-07)."""
        return mapped == member.member_id

    def _unmap(self, member: ConsumerMember) -> None:
        instance_id = member.instance_id
        mapped = None if instance_id is None else self.static_members.get(instance_id)
        if mapped is not None and self.unmaps(member, mapped):
            del self.edit("static_members")[instance_id]

    def _recompute_type(self) -> None:
        self.subscription_type = subscription.type_of(self.by_regex, self.by_topic, len(self.members))

    def _epochs_of(self, topic_id: bytes) -> dict[int, int]:
        epochs = self.edit("partition_epochs")
        if topic_id not in self._own:
            epochs[topic_id] = dict(epochs.get(topic_id, {}))
            self._own.add(topic_id)
        of_topic: dict[int, int] = epochs[topic_id]
        return of_topic

    def _release(self, member: ConsumerMember) -> None:
        """M-PE-02: an entry with another epoch is not this member's."""
        for holding in (member.assigned, member.revoking):
            for topic_id, partitions in holding.items():
                epochs = self._epochs_of(topic_id)
                for partition in partitions:
                    if epochs.get(partition) == member.epoch:
                        del epochs[partition]
                if not epochs:
                    del self.partition_epochs[topic_id]
                    self._own.discard(topic_id)

    def _hold(self, holding: Holding, epoch: int) -> None:
        """M-PE-01, M-PE-02."""
        for topic_id, partitions in holding.items():
            epochs = self._epochs_of(topic_id)
            for partition in partitions:
                known = epochs.get(partition)
                if known is not None and known >= epoch:
                    raise InternalError
                epochs[partition] = epoch
