"""The view that a reader has of its membership, and how to get it from a member.

A host passes the view to the reader after each member step that changed it. The partitions that were assigned, revoked
and lost are the difference between two views.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fencepost.member.consumer.state import ConsumerMember
from fencepost.member.partitions import TopicPartition, partition_order
from fencepost.member.state import ClassicMemberState, Member


class Phase(Enum):
    """State of a classic member, as far as commits depend on it (K-OFF-02). A consumer group's member that has joined
    is always ``STABLE``: it sends its commits in any state (N-CMT-01)."""

    OUT = "out"
    PREPARING = "preparing"
    COMPLETING = "completing"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Membership:
    """``owned``: in fetch order (K-SUB-14). ``pending_revocation``, ``pending_callback``: the owned partitions that
    must not be fetched now (K-CB-01, N-REC-04, N-REC-07). ``member_id``, ``epoch``: the identity in a commit.
    ``settled``: the member's last poll succeeded, its coordinator is known and no join is in progress, so that the rest
    of the poll takes place (K-POLL-05). ``asks``: some of its requests have no response yet; a close waits for them
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
        """The member's current id and epoch."""
        return self.member_id, self.epoch


_PHASES = {
    ClassicMemberState.UNJOINED: Phase.OUT,
    ClassicMemberState.PREPARING_REBALANCE: Phase.PREPARING,
    ClassicMemberState.COMPLETING_REBALANCE: Phase.COMPLETING,
    ClassicMemberState.STABLE: Phase.STABLE,
}


def membership_of(member: Member | ConsumerMember) -> Membership:
    """Return the view of a member of either protocol."""
    subscription = member.subscription
    owned = tuple(sorted(subscription.owned, key=partition_order))
    if isinstance(member, ConsumerMember):
        member_id, epoch = member.commits_as
        phase = Phase.STABLE if member.state.in_group else Phase.OUT
        settled, asks = True, False
    else:
        member_id, epoch = member.generation.member_id, member.generation.generation_id
        phase = _PHASES[member.state]
        joined = member.state is ClassicMemberState.STABLE and member.join is None and not member.rejoin_needed
        settled = joined and member.coordinator.node is not None
        asks = bool(member.sent)
    return Membership(
        owned, subscription.pending_revocation, subscription.pending_callback, member_id, epoch, phase, settled, asks
    )
