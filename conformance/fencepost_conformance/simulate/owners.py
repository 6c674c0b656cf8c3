"""At most one unfenced owner of a partition, whatever its protocol: what programs believe, against the coordinator's
view of them, and against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from fencepost.member.consumer import ConsumerState
from fencepost.member.consumer_protocol import decode_assignment
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView
from fencepost.protocol.view import GroupView

from .broken import demand
from .consumer_group_rules import holdings
from .consumer_host import ConsumerHost
from .host import AnyHost, Host
from .member_rules import Holder, check_generation


class _Claim(NamedTuple):
    """What a program believes: its member id, its epoch or generation, and what it owns."""

    member_id: str
    epoch: int
    owned: frozenset[TopicPartition]


class Owners:
    """``overlooked``: by program, what it owned when its group was upgraded and the coordinator did not know of.

    An upgrade takes the assignments of the classic group at their word (X-UP-05). In the middle of a cooperative
    rebalance they do not say all: who is to give up a partition in this round goes on with it until it has, and a join
    phase that is begun again blanks the assignments of members that go on (C-JOIN-42). Nobody asks such members either:
    what their JoinGroup says they own is looked at only as far as they were assigned it (X-JOIN-11). Until they have
    synced, two unfenced members may own a partition, in Kafka and here. Nothing else is excused.
    """

    def __init__(self) -> None:
        self._overlooked: dict[str, frozenset[TopicPartition]] = {}

    def upgraded(self, before: GroupView, hosts: Sequence[AnyHost]) -> None:
        """The classic group has just become a consumer group; ``hosts`` are its programs."""
        assigned = {member.member_id: member.assignment for member in before.members}
        for host in hosts:
            if isinstance(host, Host) and (data := assigned.get(host.member.generation.member_id)) is not None:
                known = decode_assignment(data).partitions if data else ()
                self._overlooked[host.plan.name] = host.member.assignment.difference(known)

    def check(
        self,
        group: ConsumerGroupView | None,
        hosts: Sequence[AnyHost],
        ids: Mapping[str, bytes],
        adopted: AnyHost | None = None,
    ) -> None:
        """Of one group, ``group`` if it is a consumer group now; ``adopted`` has just taken up partitions. ``ids``: of
        the topics, by name."""
        if group is not None:
            self._check_claims(group, hosts, ids)
        if isinstance(adopted, Host):
            holders = {host.plan.name: Holder(host.member, host.life) for host in hosts if isinstance(host, Host)}
            check_generation(holders, adopted.plan.name)

    def _check_claims(self, group: ConsumerGroupView, hosts: Sequence[AnyHost], ids: Mapping[str, bytes]) -> None:
        """Who has not been fenced owns nothing that the coordinator has given to somebody else.

        NOT-01: one that has been may still believe so; its epoch is neither the present nor the previous one. Of a
        classic member only the present one counts (X-HB-01, X-SYNC-03).
        """
        by_id = {member.member_id: member for member in group.members}
        for host in hosts:
            claim = _claim(host)
            seen = None if claim is None else by_id.get(claim.member_id)
            if claim is None or seen is None or not _counts(host, claim, seen):
                continue
            known = holdings(seen)
            mine = {
                (ids[each.topic], each.partition) for each in claim.owned - self._still_overlooked(host, known, ids)
            }
            for other in group.members:
                if other is not seen:
                    both = mine & holdings(other)
                    demand(
                        not both,
                        "INV-KIP-09",
                        f"{host.plan.name} at epoch {claim.epoch} owns {sorted(both)}, "
                        f"which {other.member_id} was given",
                    )

    def _still_overlooked(
        self, host: AnyHost, known: Set[tuple[bytes, int]], ids: Mapping[str, bytes]
    ) -> frozenset[TopicPartition]:
        before = self._overlooked.pop(host.plan.name, None)
        if not before:
            return frozenset()
        still = frozenset(
            each for each in before & host.member.assignment if (ids[each.topic], each.partition) not in known
        )
        self._overlooked[host.plan.name] = still
        return still


def _claim(host: AnyHost) -> _Claim | None:
    if isinstance(host, ConsumerHost):
        member = host.member
        in_group = member.state.in_group and member.state is not ConsumerState.JOINING
        return _Claim(member.member_id, member.epoch, member.assignment) if in_group else None
    assert isinstance(host, Host)
    generation = host.member.generation
    if generation.reset:
        return None
    return _Claim(generation.member_id, generation.generation_id, host.member.assignment)


def _counts(host: AnyHost, claim: _Claim, seen: ConsumerMemberView) -> bool:
    """M-FENCE-01…03: would its next heartbeat be accepted?"""
    if host.plan.is_consumer:
        return seen.classic is None and claim.epoch in (seen.member_epoch, seen.previous_member_epoch)
    return seen.classic is not None and claim.epoch == seen.member_epoch
