"""sticky and cooperative-sticky: as even as possible, and members keep what they held (10.5).

They differ in how a member reports what it held, and in how a partition changes its owner. sticky is eager: all members
have given up everything, so the partition goes directly to its new owner. cooperative-sticky leaves it out of every
assignment, so that its owner gives it up, and the next round assigns it (A-COOP-01…04, A-PROP-08).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fencepost.hash_order import texts
from fencepost.protocol.events import Topic

from ..consumer_protocol import NO_GENERATION, Assignment, Subscription
from ..partitions import TopicPartition, partitions_of
from . import constrained, general, sticky_data
from .base import Assigned, GroupMember, RebalanceProtocol, subscribed
from .claims import settle
from .rack_info import RackInfo


@dataclass(frozen=True, slots=True)
class _Shared:
    """The shares, the partitions that change owner (None: unknown), and the newest generation seen so far."""

    shares: dict[str, list[TopicPartition]]
    transferring: dict[TopicPartition, str] | None
    newest: int


def _share(
    topics: Mapping[str, Topic],
    members: Mapping[str, GroupMember],
    claim_of: Callable[[Subscription], sticky_data.Claim],
    newest: int,
    *,
    faults: bool,
) -> _Shared:
    """Share the partitions. Both algorithms visit members in the order of Kafka's hash map, filled in the order of
    ``members``."""
    if not members:
        return _Shared({}, {}, newest)
    known = subscribed(topics, members)
    order = texts(members)
    reported_claims = {name: claim_of(members[name].subscription) for name in order}
    every = [each for name, topic in known.items() for each in partitions_of(name, range(topic.partitions))]
    claims = settle(order, members, reported_claims, known, newest, every=every, faults=faults)
    rack_info = RackInfo(known, members)
    if claims.alike:
        dealt = constrained.assign(list(known), every, claims, rack_info)
        return _Shared(dealt.shares, dealt.transferring, claims.newest)
    shares = general.assign(known, members, claims, reported_claims, rack_info, faults=faults)
    return _Shared(shares, None, claims.newest)


def _assignments(shares: Mapping[str, list[TopicPartition]]) -> dict[str, Assignment]:
    return {name: Assignment(tuple(share)) for name, share in shares.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class StickyAssignor:
    """An eager assignor. ``held``, ``generation``: the last assignment received (A-STICKY-01); ``newest``: A-STICKY-05.

    ``faults``: reproduce Kafka's bugs (A-STICKY-25, A-STICKY-26, and A-STICKY-27 for equal subscriptions).
    """

    name: str = "sticky"
    version: int = 0
    protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})  # A-PROTO-01
    held: tuple[TopicPartition, ...] | None = None
    generation: int = NO_GENERATION
    newest: int = NO_GENERATION
    faults: bool = False

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        return None if self.held is None else sticky_data.write(self.held, self.generation)

    def assign(self, topics: Mapping[str, Topic], members: Mapping[str, GroupMember]) -> Assigned:
        made = _share(topics, members, sticky_data.previous, self.newest, faults=self.faults)
        return Assigned(_assignments(made.shares), replace(self, newest=made.newest))

    def on_assignment(self, assignment: Assignment, generation_id: int) -> StickyAssignor:
        return replace(self, held=assignment.partitions, generation=generation_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class CooperativeStickyAssignor:
    """A cooperative assignor; eager next to an eager one (A-PROTO-01). Fields are those of ``StickyAssignor``."""

    name: str = "cooperative-sticky"
    version: int = 0
    protocols: frozenset[RebalanceProtocol] = frozenset(RebalanceProtocol)
    generation: int = NO_GENERATION
    newest: int = NO_GENERATION
    faults: bool = False

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        return sticky_data.write_generation(self.generation)

    def assign(self, topics: Mapping[str, Topic], members: Mapping[str, GroupMember]) -> Assigned:
        made = _share(topics, members, sticky_data.owned, self.newest, faults=self.faults)
        withheld = made.transferring
        if withheld is None:
            withheld = _changing_hands(members, made.shares)
        shares = made.shares
        if withheld:
            shares = {name: [each for each in share if withheld.get(each) != name] for name, share in shares.items()}
        return Assigned(_assignments(shares), replace(self, newest=made.newest))

    def on_assignment(self, assignment: Assignment, generation_id: int) -> CooperativeStickyAssignor:
        return replace(self, generation=generation_id)


def _changing_hands(
    members: Mapping[str, GroupMember], shares: Mapping[str, list[TopicPartition]]
) -> dict[TopicPartition, str]:
    """Return partitions that are new to their owner and owned by another member, for different subscriptions
    (A-COOP-01)."""
    new: dict[TopicPartition, str] = {}
    lost: set[TopicPartition] = set()
    for name, share in shares.items():
        owned, now = frozenset(members[name].subscription.owned_partitions), frozenset(share)
        new.update((each, name) for each in share if each not in owned)
        lost |= owned - now
    return {each: name for each, name in new.items() if each in lost}
