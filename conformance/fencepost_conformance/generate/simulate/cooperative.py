"""A cooperative assignor for simulations: round-robin shares, reached without taking a partition from its owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.member.assignors.base import Assigned, GroupMember, RebalanceProtocol
from fencepost.member.assignors.round_robin import RoundRobinAssignor
from fencepost.member.consumer_protocol import Assignment
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.events import Topic


@dataclass(frozen=True, slots=True)
class GradualAssignor:
    """Withholds a partition from its new member until no other member claims it (A-COOP-01, A-COOP-02)."""

    name: str = "gradual"
    version: int = 0
    protocols: frozenset[RebalanceProtocol] = frozenset(RebalanceProtocol)

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        return None

    def assign(self, topics: Mapping[str, Topic], members: Mapping[str, GroupMember]) -> Assigned:
        target = RoundRobinAssignor().assign(topics, members).assignments
        claims: dict[TopicPartition, set[str]] = {}
        for member_id, member in members.items():
            for partition in member.subscription.owned_partitions:
                claims.setdefault(partition, set()).add(member_id)
        shares = {
            member_id: Assignment(
                tuple(each for each in share.partitions if claims.get(each, {member_id}) == {member_id})
            )
            for member_id, share in target.items()
        }
        return Assigned(shares, self)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> GradualAssignor:
        return self
