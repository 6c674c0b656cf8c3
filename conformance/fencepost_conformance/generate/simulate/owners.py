"""At most one unfenced owner of a partition, whatever its protocol: compares the programs' own view with the
coordinator's, and with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fencepost.member.consumer import ConsumerState
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView

from .broken import demand
from .consumer_group_rules import holdings
from .consumer_host import ConsumerHost
from .host import AnyHost, Host
from .member_rules import Holder, check_generation


class _Claim(NamedTuple):
    """A program's own view: its member id, its epoch or generation, and the partitions that it owns."""

    member_id: str
    epoch: int
    owned: frozenset[TopicPartition]


def check_owners(
    group: ConsumerGroupView | None,
    hosts: Sequence[AnyHost],
    ids: Mapping[str, bytes],
    adopted: AnyHost | None = None,
) -> None:
    """Check the owners in one group. ``group``: its view if it is a consumer group now; ``adopted``: the host that has
    just got partitions, if any; ``ids``: topic ids by name."""
    if group is not None:
        _check_claims(group, hosts, ids)
    if isinstance(adopted, Host):
        holders = {host.plan.name: Holder(host.member, host.life) for host in hosts if isinstance(host, Host)}
        check_generation(holders, adopted.plan.name)


def _check_claims(group: ConsumerGroupView, hosts: Sequence[AnyHost], ids: Mapping[str, bytes]) -> None:
    """A member that has not been fenced owns nothing that the coordinator has given to another member.

    A fenced member may still believe to own (NOT-01); its epoch is neither the current nor the previous one. For a
    classic member only the current one counts (X-HB-01, X-SYNC-03).
    """
    by_id = {member.member_id: member for member in group.members}
    for host in hosts:
        claim = _claim(host)
        seen = None if claim is None else by_id.get(claim.member_id)
        if claim is None or seen is None or not _counts(host, claim, seen):
            continue
        mine = {(ids[each.topic], each.partition) for each in claim.owned}
        for other in group.members:
            if other is not seen:
                both = mine & holdings(other)
                demand(
                    not both,
                    "INV-KIP-09",
                    f"{host.plan.name} at epoch {claim.epoch} owns {sorted(both)}, which {other.member_id} was given",
                )


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
    """M-FENCE-01…03: whether the coordinator would accept the next heartbeat."""
    if host.plan.is_consumer:
        return seen.classic is None and claim.epoch in (seen.member_epoch, seen.previous_member_epoch)
    return seen.classic is not None and claim.epoch == seen.member_epoch
