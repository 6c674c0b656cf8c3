"""What the reading half of a consumer is told of its membership, and how to read that off a member.

A host hands the view over after each step of the member in which it has changed: what is assigned, revoked and lost is
the difference between two views.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fencepost.member.consumer.state import ConsumerMember
from fencepost.member.partitions import TopicPartition, partition_order
from fencepost.member.state import Member, MemberState


class Phase(Enum):
    """Where a classic member stands, as far as commits ask (K-OFF-02). A member of a consumer group that has joined is
    always ``STABLE``: its commits are sent whatever it does (N-CMT-01)."""

    OUT = "out"
    PREPARING = "preparing"
    COMPLETING = "completing"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Membership:
    """``owned``: in the order that they are fetched in (K-SUB-14). ``pending_revocation``, ``pending_callback``: those
    of them that must not be fetched now (K-CB-01, N-REC-04, N-REC-07). ``member_id``, ``epoch``: what a commit carries.
    ``settled``: the last poll of the member got through, with the coordinator known and no join under way, so that the
    rest of the poll takes place (K-POLL-05). ``asks``: requests of it have no answer yet, for which a close waits
    (K-LEAVE-04)."""

    owned: tuple[TopicPartition, ...] = ()
    pending_revocation: frozenset[TopicPartition] = frozenset()
    pending_callback: frozenset[TopicPartition] = frozenset()
    member_id: str = ""
    epoch: int = -1
    phase: Phase = Phase.OUT
    settled: bool = True
    asks: bool = False

    @property
    def identity(self) -> tuple[str, int]:
        """Who the member is just now."""
        return self.member_id, self.epoch


_PHASES = {
    MemberState.UNJOINED: Phase.OUT,
    MemberState.PREPARING_REBALANCE: Phase.PREPARING,
    MemberState.COMPLETING_REBALANCE: Phase.COMPLETING,
    MemberState.STABLE: Phase.STABLE,
}


def membership_of(member: Member | ConsumerMember) -> Membership:
    """The view of a member of either protocol."""
    subscription = member.subscription
    owned = tuple(sorted(subscription.owned, key=partition_order))
    if isinstance(member, ConsumerMember):
        member_id, epoch = member.commits_as
        phase = Phase.STABLE if member.state.in_group else Phase.OUT
        settled, asks = True, False
    else:
        member_id, epoch = member.generation.member_id, member.generation.generation_id
        phase = _PHASES[member.state]
        joined = member.state is MemberState.STABLE and member.join is None and not member.rejoin_needed
        settled = joined and member.coordinator.node is not None
        asks = bool(member.sent)
    return Membership(
        owned, subscription.pending_revocation, subscription.pending_callback, member_id, epoch, phase, settled, asks
    )
