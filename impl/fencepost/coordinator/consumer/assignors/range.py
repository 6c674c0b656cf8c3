"""Range: each topic cut into contiguous ranges, one a subscriber (A-SRANGE-01…04)."""

from __future__ import annotations

from itertools import accumulate, pairwise

from fencepost.protocol.consumer_view import SubscriptionType

from .base import GroupSpec, Target, java_text_order, partitions_of


def assign(spec: GroupSpec) -> Target:
    """Balanced per topic, co-partitioned, not sticky. Raises ``AssignorError``."""
    order = _in_order(spec)
    shares: dict[str, dict[bytes, tuple[int, ...]]] = {member: {} for member in spec.members}
    if not order:
        return shares
    subscribers: dict[bytes, list[str]] = {}
    if spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        # A-SRANGE-03: one member's topics stand for everybody's
        subscribers = dict.fromkeys(spec.members[order[0]].topic_ids, order)
    else:
        for member in order:
            for topic_id in spec.members[member].topic_ids:
                subscribers.setdefault(topic_id, []).append(member)
    cuts: dict[tuple[int, int], list[tuple[int, ...]]] = {}  # topics of one shape are cut alike (A-SRANGE-04)
    for topic_id, takers in sorted(subscribers.items()):
        shape = partitions_of(spec, topic_id), len(takers)
        if shape not in cuts:
            cuts[shape] = _cut(*shape)
        for member, numbers in zip(takers, cuts[shape], strict=False):
            shares[member][topic_id] = numbers
    return shares


def _in_order(spec: GroupSpec) -> list[str]:
    """A-SRANGE-01: static members by instance id, then dynamic ones by member id."""

    def key(member: str) -> tuple[bool, bytes]:
        instance = spec.members[member].instance_id
        return (True, java_text_order(member)) if instance is None else (False, java_text_order(instance))

    return sorted(spec.members, key=key)


def _cut(size: int, takers: int) -> list[tuple[int, ...]]:
    """A-SRANGE-02: the first ``size mod takers`` ranges are longer by one; empty ones come last and are left out."""
    quota, extras = divmod(size, takers)
    sizes = (quota + (position < extras) for position in range(min(size, takers)))
    return [tuple(range(start, end)) for start, end in pairwise(accumulate(sizes, initial=0))]
