"""Range: each topic is cut into contiguous ranges, one for each subscriber (A-SRANGE-01…04).

Topics with equal size and subscribers are cut in the same way. Where such topics follow each other, as they do in most
groups, a member's part of them is created in one operation: a dictionary that gives each of them the same range.
"""

from __future__ import annotations

from itertools import accumulate, groupby, pairwise

from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.partitions import static_first
from fencepost.protocol.server_assignor import GroupSpec, Target

from .hash_order import partitions_of


def assign(spec: GroupSpec) -> Target:
    """Balanced per topic, co-partitioned, not sticky. Raises ``AssignorError``."""
    order = static_first({name: member.instance_id for name, member in spec.members.items()})  # A-SRANGE-01
    shares: dict[str, dict[bytes, tuple[int, ...]]] = {member: {} for member in spec.members}
    if not order:
        return shares
    subscribers: dict[bytes, list[str]] = {}
    if spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        # A-SRANGE-03: the topics of one member stand for those of all
        subscribers = dict.fromkeys(spec.members[order[0]].topic_ids, order)
    else:
        for member in order:
            for topic_id in spec.members[member].topic_ids:
                subscribers.setdefault(topic_id, []).append(member)

    def kind(topic_id: bytes) -> tuple[int, list[str]]:
        return partitions_of(spec, topic_id), subscribers[topic_id]

    cuts: dict[tuple[int, int], list[tuple[int, ...]]] = {}  # topics of one shape are cut in the same way (A-SRANGE-04)
    for (size, takers), alike in groupby(sorted(subscribers), key=kind):
        topic_ids = tuple(alike)
        shape = size, len(takers)
        if shape not in cuts:
            cuts[shape] = _cut(*shape)
        for member, numbers in zip(takers, cuts[shape], strict=False):
            shares[member].update(dict.fromkeys(topic_ids, numbers))
    return shares


def _cut(size: int, takers: int) -> list[tuple[int, ...]]:
    """A-SRANGE-02: the first ``size mod takers`` ranges are longer by one; empty ones come last and are left out."""
    quota, extras = divmod(size, takers)
    sizes = (quota + (position < extras) for position in range(min(size, takers)))
    return [tuple(range(start, end)) for start, end in pairwise(accumulate(sizes, initial=0))]
