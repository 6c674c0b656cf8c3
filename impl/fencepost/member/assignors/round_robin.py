"""Round-robin: the assignor deals all partitions in a circle (10.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.protocol.events import Topic

from ..consumer_protocol import Assignment
from ..partitions import TopicPartition, partitions_of
from .base import Assigned, GroupMember, RebalanceProtocol, in_order, subscribed


@dataclass(frozen=True, slots=True)
class RoundRobinAssignor:
    """A deterministic assignor; it is not sticky and ignores racks (A-RR-03)."""

    name: str = "roundrobin"
    version: int = 0
    protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})  # A-PROTO-01

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        return None

    def assign(self, topics: Mapping[str, Topic], members: Mapping[str, GroupMember]) -> Assigned:
        circle = in_order(members)
        wants = [frozenset(members[member].subscription.topics) for member in circle]
        shares: dict[str, list[TopicPartition]] = {member: [] for member in members}  # A-COM-03
        at = 0
        for name, topic in subscribed(topics, members).items():
            for partition in partitions_of(name, range(topic.partitions)):
                # A-RR-01: the next member that subscribes to the topic; there is one, since the topic is listed
                while name not in wants[at]:
                    at = (at + 1) % len(circle)
                shares[circle[at]].append(partition)
                at = (at + 1) % len(circle)
        return Assigned({member: Assignment(tuple(share)) for member, share in shares.items()}, self)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> RoundRobinAssignor:
        return self
