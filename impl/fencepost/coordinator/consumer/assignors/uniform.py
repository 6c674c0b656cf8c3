"""Uniform: as even as possible over all topics together, and sticky (A-UHOM-01…06; see also ``uniform_mixed``).

With equal subscriptions any member can take any partition, so only the number of partitions for each member matters:
``n`` partitions and ``k`` members make a quota of ⌊n/k⌋, and n mod k members hold one more. Members that already hold
one more should be among those, and the loop visits each member only once. So a member that need not keep its extra
partition gives it back, as long as enough members follow that could take it (A-UHOM-01). Partitions above the quota,
and those without an owner, fill the other members.

Most members keep everything and get nothing new. Their share is the previous one, the same object; single partitions
are looked at only where a member loses or gets some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.server_assignor import AssignorError, GroupSpec, Share, Target

from . import hash_order, uniform_mixed
from .hash_order import partitions_of

#: Partitions of one topic that are to be distributed, at least one.
Part = tuple[bytes, Sequence[int]]


def assign(spec: GroupSpec) -> Target:
    """Raises ``AssignorError``."""
    if not spec.members:
        return {}
    if spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        return _alike(spec)
    return uniform_mixed.assign(spec)


def _alike(spec: GroupSpec) -> Target:
    subscribed = next(iter(spec.members.values())).topic_ids  # the topics of one member stand for those of all (10.6)
    if not subscribed:
        return {member: {} for member in spec.members}  # A-UHOM-05
    owned = _owned(spec)
    tidy = owned.keys() <= subscribed and not any(() in rows for rows in owned.values())
    pool, total = _unowned(spec, subscribed, owned)
    least, extras = divmod(total, len(spec.members))
    shares: dict[str, Share] = {}
    unfilled: list[tuple[str, int]] = []
    for followers, (name, member) in zip(range(len(spec.members), 0, -1), spec.members.items(), strict=True):
        extra = extras > 0
        quota = least + extra
        kept, load = member.assigned, sum(map(len, member.assigned.values()))
        if not tidy or load > quota:
            kept = _kept(kept, subscribed, quota, pool)
            load = sum(map(len, kept.values()))
        remaining = quota - load
        if remaining and extra and followers > extras:
            extra, remaining = False, remaining - 1
        extras -= extra
        shares[name] = kept
        if remaining:
            unfilled.append((name, remaining))
    _fill(shares, unfilled, pool)
    return shares


def _owned(spec: GroupSpec) -> dict[bytes, list[tuple[int, ...]]]:
    """By topic, the parts that previous targets contain, and the withheld ones (A-UHOM-08)."""
    owned: defaultdict[bytes, list[tuple[int, ...]]] = defaultdict(list)
    for share in (spec.withheld, *[member.assigned for member in spec.members.values()]):
        for topic_id, numbers in share.items():
            owned[topic_id].append(numbers)
    return owned


def _unowned(
    spec: GroupSpec, subscribed: frozenset[bytes], owned: dict[bytes, list[tuple[int, ...]]]
) -> tuple[list[Part], int]:
    """The partitions that are in no member's previous target (A-UHOM-03), and the number of all partitions."""
    for topic_id in subscribed:
        partitions_of(spec, topic_id)
    sizes = {topic_id: spec.topics[topic_id] for topic_id in spec.topics if topic_id in subscribed}
    every = {size: frozenset(range(size)) for size in sizes.values()}
    free = ((each, every[sizes[each]].difference(*owned.get(each, ()))) for each in hash_order.of_set(sizes))
    return [(topic_id, sorted(numbers)) for topic_id, numbers in free if numbers], sum(sizes.values())


def _kept(held: Share, subscribed: frozenset[bytes], quota: int, pool: list[Part]) -> Share:
    """The part of ``held`` that a member keeps, at most ``quota``; the rest goes to the pool (A-UHOM-02)."""
    fits = sum(map(len, held.values())) <= quota  # otherwise the order decides what is taken away (A-UHOM-06)
    kept: dict[bytes, tuple[int, ...]] = {}
    for topic_id in held if fits else hash_order.of_map(held):
        if topic_id not in subscribed:
            continue  # A-UHOM-02: dropped, and in no pool
        numbers = held[topic_id] if fits else hash_order.of_numbers(held[topic_id])
        if quota and numbers:
            kept[topic_id] = tuple(sorted(numbers[:quota]))
        if len(numbers) > quota:
            pool.append((topic_id, numbers[quota:]))
        quota -= min(quota, len(numbers))
    return kept


def _fill(shares: dict[str, Share], unfilled: list[tuple[str, int]], pool: list[Part]) -> None:
    """Give the partitions of the pool, in its order, to the members below their quota. ``unfilled``: these
    members, each with the number of partitions that it may still get."""
    parts = iter(pool)
    part: Part = b"", ()
    at = 0
    for name, remaining in unfilled:
        share = shares[name] = dict(shares[name])
        needed = remaining
        while needed:
            if at == len(part[1]):
                following = next(parts, None)
                if following is None:
                    return
                part, at = following, 0
            topic_id, numbers = part
            chosen = numbers[at : at + needed]
            at += len(chosen)
            needed -= len(chosen)
            held = share.get(topic_id)
            if held:
                chosen = (*held, *chosen)
            share[topic_id] = tuple(sorted(chosen) if len(chosen) > 1 else chosen)
    if at < len(part[1]) or next(parts, None) is not None:
        raise AssignorError("partitions were left unassigned")  # A-UHOM-06
