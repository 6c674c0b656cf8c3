"""The sticky algorithm for equal subscriptions (A-STICKY-10…14).

Any member can have any partition, so only the counts matter: with n partitions and k members, each gets ⌊n/k⌋, and n
mod k members get one more. Members keep what they held up to that count, and the free partitions are dealt to members
that have fewer. This takes one pass over the members and one over the partitions; no partition moves twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..partitions import TopicPartition, java_order, partition_order
from .claims import Claims, missing
from .rack_info import RackInfo


def _keeping_order(topics: Sequence[str]) -> Callable[[TopicPartition], int]:
    """Sort by number first, so that a member gives up partitions of many topics. ``topics``: sorted."""
    place, count = {topic: at for at, topic in enumerate(topics)}, len(topics)
    return lambda partition: partition.partition * count + place[partition.topic]


@dataclass(frozen=True, slots=True)
class Dealt:
    """The shares, and the partitions that change owner, with the new owner (A-STICKY-14)."""

    shares: dict[str, list[TopicPartition]]
    transferring: dict[TopicPartition, str]


def assign(topics: Sequence[str], every: Sequence[TopicPartition], claims: Claims, rack_info: RackInfo) -> Dealt:
    """Return the shares. ``topics``: sorted; ``every``: their partitions in that order.

    Raises ``IndexError`` where claims to partitions that do not exist make the counts wrong; this happens only with
    ``faults`` (A-STICKY-27)."""
    deal = _Deal(len(every), claims, rack_info)
    deal.keep(_keeping_order(topics))
    kept = deal.shares.values()
    unreal = [each for share in kept for each in share if each in claims.unreal] if claims.unreal else []
    free = rack_info.fewest_first(
        _from(min(unreal, key=partition_order), every, kept) if unreal else missing(every, kept)
    )
    deal.under.sort(key=java_order)
    deal.even.sort(key=java_order)
    if rack_info.used:
        free = deal.deal_by_rack(free)
    deal.deal(free)
    if deal.under:
        raise IndexError(f"no partition is left for {', '.join(deal.under)}; claims to missing partitions were counted")
    return Dealt(deal.shares, deal.transferring)


def _from(
    unreal: TopicPartition, every: Sequence[TopicPartition], kept: Iterable[Sequence[TopicPartition]]
) -> list[TopicPartition]:
    """Return what Kafka treats as free if a member keeps a partition that does not exist. Kafka walks both sorted lists
    in parallel. It waits at that partition, so every later partition counts as free (A-STICKY-27)."""
    free = frozenset(missing(every, kept))
    return [each for each in every if each in free or partition_order(each) > partition_order(unreal)]


class _Deal:
    """The deal in progress. ``under``: members below the quota. ``even``: at the quota, and may get one more."""

    def __init__(self, partitions: int, claims: Claims, rack_info: RackInfo) -> None:
        self.quota, self.extras = divmod(partitions, len(claims.held))
        self.claims = claims
        self.rack_info = rack_info
        self.shares: dict[str, list[TopicPartition]] = {name: [] for name in claims.held}
        self.under: list[str] = []
        self.even: list[str] = []
        self.given_up: dict[TopicPartition, str] = {}
        self.transferring: dict[TopicPartition, str] = {}

    def keep(self, order: Callable[[TopicPartition], int]) -> None:
        """Let each member, in map order, keep what it held up to the quota, or one more while there are extras
        (A-STICKY-11)."""
        for name, held in self.claims.held.items():
            kept = list(held)
            if self.rack_info.used:
                far = [each for each in held if self.rack_info.mismatch(name, each)]
                self.given_up.update(dict.fromkeys(far, name))
                kept = missing(kept, [far])
            if self.claims.void:
                kept = missing(kept, [self.claims.void])
            kept.sort(key=order)
            size = self.quota
            if len(kept) < self.quota:
                self.under.append(name)
            elif self.extras and len(kept) > self.quota:
                size += 1
                self._take_extra()
            elif self.extras:
                self.even.append(name)
            self.shares[name] += kept[:size]
            self.given_up.update((each, name) for each in kept[size:])

    def _take_extra(self) -> None:
        self.extras -= 1
        if not self.extras:
            self.even.clear()  # no other member may have one more

    def deal_by_rack(self, free: list[TopicPartition]) -> list[TopicPartition]:
        """Deal partitions to members on a rack with a replica that have room. Return the others (A-STICKY-12b)."""
        at, left = 0, []
        for partition in free:
            place = self.rack_info.next_rack_member(partition, self.under, at)
            if place is not None:
                name = self.under[place]
                self._give(partition, name)
                if len(self.shares[name]) < self.quota:
                    place += 1
                else:
                    del self.under[place]
                    if self.extras:
                        self.even.append(name)
                at = place % len(self.under) if self.under else 0
                continue
            place = self.rack_info.next_rack_member(partition, self.even, 0)
            if place is None:
                left.append(partition)
                continue
            self._give(partition, self.even.pop(place))
            self._take_extra()
        return left

    def deal(self, free: list[TopicPartition]) -> None:
        """Deal in a circle to members below the quota, then one each to members that may have more (A-STICKY-12)."""
        at = after = 0
        for partition in free:
            if self.under:
                at = at if at < len(self.under) else 0
                name = self.under[at]
                self._give(partition, name)
                if len(self.shares[name]) == self.quota:
                    del self.under[at]
                    self.even.append(name)
                else:
                    at += 1
            else:
                self._give(partition, self.even[after])
                after += 1

    def _give(self, partition: TopicPartition, name: str) -> None:
        self.shares[name].append(partition)
        if self.given_up.get(partition, name) != name or partition in self.claims.void:
            self.transferring[partition] = name
