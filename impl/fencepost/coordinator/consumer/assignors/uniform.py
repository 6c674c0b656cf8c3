"""Uniform: as even as possible over all topics together, and sticky (A-UHOM-01…06; see also ``uniform_mixed``).

With equal subscriptions any member can take any partition, so all that counts is how many each has: ``n`` partitions
and ``k`` members make a quota of ⌊n/k⌋, and n mod k members hold one more. Whoever holds one more already should be
among those, and the members are gone through only once; so a member that has no use for its extra gives it back, as
long as enough members follow who could take it (A-UHOM-01). What is over the quota, or was nobody's, fills the others.
"""

from __future__ import annotations

from fencepost.protocol.consumer_view import SubscriptionType

from . import hash_order, uniform_mixed
from .base import AssignorError, GroupSpec, Target, partitions_of


def assign(spec: GroupSpec) -> Target:
    """Raises ``AssignorError``."""
    if not spec.members:
        return {}
    if spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        return _alike(spec)
    return uniform_mixed.assign(spec)


def _alike(spec: GroupSpec) -> Target:
    subscribed = next(iter(spec.members.values())).topic_ids  # one member's stand for everybody's (10.6)
    if not subscribed:
        return {member: {} for member in spec.members}  # A-UHOM-05
    pool, total = _unowned(spec, subscribed)
    least, extras = divmod(total, len(spec.members))
    shares: dict[str, dict[bytes, list[int]]] = {}
    rooms: list[tuple[str, int]] = []
    for followers, (name, member) in zip(range(len(spec.members), 0, -1), spec.members.items(), strict=True):
        extra = extras > 0
        room = least + extra
        kept: dict[bytes, list[int]] = {}
        fits = sum(map(len, member.assigned.values())) <= room  # else the order says what is given up (A-UHOM-06)
        for topic_id in member.assigned if fits else hash_order.of_map(member.assigned):
            if topic_id not in subscribed:
                continue  # A-UHOM-02: dropped, and in no pool
            held = member.assigned[topic_id]
            numbers = sorted(held) if fits else hash_order.of_numbers(held)
            if room:
                kept[topic_id] = numbers[:room]
            pool += [(topic_id, number) for number in numbers[room:]]
            room -= min(room, len(numbers))
        if room and extra and followers > extras:
            extra, room = False, room - 1
        extras -= extra
        shares[name] = kept
        if room:
            rooms.append((name, room))
    _fill(shares, rooms, pool)
    return {
        name: {topic_id: tuple(sorted(numbers)) for topic_id, numbers in share.items() if numbers}
        for name, share in shares.items()
    }


def _unowned(spec: GroupSpec, subscribed: frozenset[bytes]) -> tuple[list[tuple[bytes, int]], int]:
    """The partitions that no member's previous target has (A-UHOM-03), and how many partitions there are in all."""
    owned = {topic_id: set(numbers) for topic_id, numbers in spec.withheld.items()}  # A-UHOM-08
    for member in spec.members.values():
        for topic_id, numbers in member.assigned.items():
            owned.setdefault(topic_id, set()).update(numbers)
    for topic_id in subscribed:
        partitions_of(spec, topic_id)
    sizes = {topic_id: spec.topics[topic_id] for topic_id in spec.topics if topic_id in subscribed}
    pool = [
        (topic_id, number)
        for topic_id in hash_order.of_set(sizes)
        for number in range(sizes[topic_id])
        if number not in owned.get(topic_id, ())
    ]
    return pool, sum(sizes.values())


def _fill(
    shares: dict[str, dict[bytes, list[int]]], rooms: list[tuple[str, int]], pool: list[tuple[bytes, int]]
) -> None:
    at = 0
    for name, room in rooms:
        share = shares[name]
        for topic_id, number in pool[at : at + room]:
            share.setdefault(topic_id, []).append(number)
        at += room
    if at < len(pool):
        raise AssignorError("partitions were left unassigned")  # A-UHOM-06
