"""The byte formats of real consumers, for a member model that leaves them to its caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.member.assignors.base import Assignor, GroupMember
from fencepost.member.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import JoinGroupMember
from fencepost_model.member import inputs as mi


@dataclass(frozen=True, slots=True)
class RealCodec:
    """Encodes and decodes as real consumers do, and assigns as the member does."""

    assignors: tuple[Assignor, ...]

    def subscription(
        self, protocol: str, topics: frozenset[str], owned: frozenset[mi.Partition], generation: int
    ) -> bytes:
        partitions = tuple(TopicPartition(*each) for each in owned)
        return encode_subscription(Subscription(tuple(topics), None, partitions, generation))

    def topics(self, metadata: bytes) -> frozenset[str]:
        return frozenset(decode_subscription(metadata).topics)

    def assign(
        self, protocol: str, members: Sequence[JoinGroupMember], metadata: mi.Metadata
    ) -> tuple[tuple[str, bytes], ...]:
        assignor = next(each for each in self.assignors if each.name == protocol)
        topics = {name: Topic(name, b"", count) for name, count in metadata}
        rows = {row.member_id: GroupMember(decode_subscription(row.metadata), row.group_instance_id) for row in members}
        shares = assignor.assign(topics, rows).assignments
        return tuple((member_id, encode_assignment(share)) for member_id, share in shares.items())

    def assignment(self, data: bytes) -> frozenset[mi.Partition]:
        if len(data) < 2:
            raise ValueError("an assignment has at least two bytes")
        return frozenset((each.topic, each.partition) for each in decode_assignment(data).partitions)
