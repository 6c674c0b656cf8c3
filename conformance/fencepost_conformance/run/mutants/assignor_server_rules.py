"""Properties of the server assignors (10.6, 10.7) over random groups that change, each named by its rule."""

from __future__ import annotations

from itertools import combinations
from random import Random

from fencepost.coordinator.consumer.assignors import ASSIGNORS, AssignorError, GroupSpec, MemberSpec, Target
from fencepost.protocol.consumer_view import SubscriptionType

from ...generate.simulate.broken import demand

ROUNDS = 3
NAMES = "mnopqrstuv"


def check_server_assignors(seed: int) -> None:
    """Check the groups of this seed. Raises ``Broken`` at the first property that does not hold."""
    for name in ASSIGNORS:
        rng = Random(f"server {name} {seed}")
        alike = rng.random() < 0.5
        topics = {rng.randbytes(16): rng.randint(1, 9) for _ in range(rng.randint(1, 4))}
        members = {each: _newcomer(rng, topics, alike) for each in rng.sample(NAMES, rng.randint(1, 6))}
        for _ in range(ROUNDS):
            spec = _spec(members, topics, alike)
            target = _target(name, spec)
            _check_target(name, spec, target, alike)
            again = _with(members, target)
            demand(
                _target(name, _spec(again, topics, alike)) == target,
                "A-PROP-05",
                f"{name}: partitions moved without a cause",
            )
            if name == "uniform" and alike:
                turned = dict(rng.sample(list(again.items()), len(again)))
                same = _target(name, _spec(turned, topics, alike)) == target
                demand(same, "A-UHOM-04", "uniform: a balanced group changed because its members came in another order")
                _check_leaving(_target(name, spec), again, topics)
            if name == "range":
                turned = dict(reversed(members.items()))
                demand(
                    _target(name, _spec(turned, topics, alike)) == target,
                    "A-PROP-07",
                    "range: the result depends on the order",
                )
            members = {each: member for each, member in again.items() if rng.random() > 0.2 or len(again) == 1} or again
            members[rng.choice(NAMES)] = _newcomer(rng, topics, alike)
            topics = {topic_id: size + (rng.random() < 0.3) for topic_id, size in topics.items()}


def _newcomer(rng: Random, topics: dict[bytes, int], alike: bool) -> MemberSpec:
    wanted = list(topics) if alike else rng.sample(list(topics), rng.randint(1, len(topics)))
    instance = f"i{rng.random()}" if rng.random() < 0.3 else None
    return MemberSpec(instance, None, frozenset(wanted), {})


def _spec(members: dict[str, MemberSpec], topics: dict[bytes, int], alike: bool) -> GroupSpec:
    return GroupSpec(
        members, SubscriptionType.HOMOGENEOUS if alike else SubscriptionType.HETEROGENEOUS, topics
    )  # fmt: skip


def _with(members: dict[str, MemberSpec], target: Target) -> dict[str, MemberSpec]:
    return {name: member._replace(assigned=target[name]) for name, member in members.items()}


def _target(name: str, spec: GroupSpec) -> Target:
    try:
        return ASSIGNORS[name](spec)
    except Exception as reason:
        wanted = AssignorError.__name__
        demand(False, "A-PROP-01", f"{name} raises {type(reason).__name__} instead of {wanted} for a topic: {reason}")
        raise


def _check_target(name: str, spec: GroupSpec, target: Target, alike: bool) -> None:
    demand(target.keys() == spec.members.keys(), "M-TGT-03", f"{name}: shares of {sorted(target)}")
    given = sorted((topic, number) for share in target.values() for topic, row in share.items() for number in row)
    demand(len(set(given)) == len(given), "A-PROP-02", f"{name}: a partition is assigned twice")
    for member, share in target.items():
        demand(share.keys() <= spec.members[member].topic_ids, "A-PROP-03", f"{name}: {member} did not subscribe")
        demand(all(row == tuple(sorted(row)) for row in share.values()), "M-TGT-03", f"{name}: numbers out of order")
    wanted = frozenset().union(*(member.topic_ids for member in spec.members.values()))
    every = sorted((topic, number) for topic in wanted for number in range(spec.topics[topic]))
    demand(given == every, "A-PROP-01", f"{name}: {len(given)} of {len(every)} partitions are assigned")
    if name == "range":
        _check_range(spec, target)
        return
    loads = {member: sum(map(len, share.values())) for member, share in target.items()}
    if alike:
        demand(max(loads.values()) - min(loads.values()) <= 1, "A-PROP-04", f"uniform: loads {sorted(loads.values())}")
        return
    for one, other in combinations(spec.members, 2):
        high, low = (one, other) if loads[one] > loads[other] else (other, one)
        common = spec.members[low].topic_ids & target[high].keys()
        demand(loads[high] - loads[low] <= 1 or not common, "A-UHET-04", f"uniform: {high} could give {low} one")


def _check_range(spec: GroupSpec, target: Target) -> None:
    """Check A-SRANGE-01 and A-SRANGE-02 with an independent implementation."""
    static = sorted((member.instance_id, name) for name, member in spec.members.items() if member.instance_id)
    dynamic = sorted(name for name, member in spec.members.items() if not member.instance_id)
    order = [*(name for _, name in static), *dynamic]
    for topic_id, size in spec.topics.items():
        takers = [name for name in order if topic_id in spec.members[name].topic_ids]
        rows = [target[name].get(topic_id, ()) for name in takers]
        if takers:
            expected = [size // len(takers) + (place < size % len(takers)) for place in range(len(takers))]
            demand([len(row) for row in rows] == expected, "A-SRANGE-02", f"range: {size} partitions are cut {rows}")
            joined = [number for row in rows for number in row]
            demand(joined == sorted(joined), "A-SRANGE-02", "range: the ranges are not contiguous")


def _check_leaving(target: Target, members: dict[str, MemberSpec], topics: dict[bytes, int]) -> None:
    """A-PROP-06: remaining members keep everything when another leaves, since quotas only grow."""
    for gone in list(members)[:2] if len(members) > 1 else ():
        staying = {name: member for name, member in members.items() if name != gone}
        after = _target("uniform", _spec(staying, topics, alike=True))
        for name in staying:
            lost = any(set(row) - set(after[name].get(topic_id, ())) for topic_id, row in target[name].items())
            demand(not lost, "A-PROP-06", f"uniform: {name} lost partitions when {gone} left")
