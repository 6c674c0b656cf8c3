"""Properties of the assignors (10.7) over random groups, each named by its rule."""

from __future__ import annotations

from random import Random

from fencepost.member.assignors.base import Assignor, GroupMember
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.assignors.round_robin import RoundRobinAssignor
from fencepost.member.consumer_protocol import Subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.events import Topic

from ...generate.simulate.broken import demand
from .assignor_server_rules import check_server_assignors
from .assignor_sticky_rules import check_sticky_assignors

Shares = dict[str, tuple[TopicPartition, ...]]
RACKS = ("r1", "r2", "r3")


def check_assignors(seed: int) -> None:
    """Check the group of this seed. Raises ``Broken`` at the first property that does not hold."""
    rng = Random(f"assignors {seed}")
    alike, racks = rng.random() < 0.5, rng.random() < 0.5
    topics = _topics(rng, racks)
    members = _members(rng, sorted(topics), alike=alike, racks=racks)
    for assignor in (RangeAssignor(), RoundRobinAssignor()):
        shares = _shares(assignor, topics, members)
        _check_shares(assignor.name, topics, members, shares)
        turned = dict(reversed(members.items()))
        demand(
            _shares(assignor, topics, turned) == shares,
            "A-PROP-07",
            f"{assignor.name}: the result depends on the input's order",
        )
        smaller = dict(list(members.items())[1:])
        if smaller:
            _check_shares(assignor.name, topics, smaller, _shares(assignor, topics, smaller))
        _check_sizes(assignor.name, topics, members, shares, alike=alike)
    check_sticky_assignors(seed)
    check_server_assignors(seed)


def _topics(rng: Random, racks: bool) -> dict[str, Topic]:
    sizes = [rng.randint(0, 6), rng.randint(1, 6)]
    topics = {}
    for name in rng.sample("abcd", rng.randint(1, 4)):
        size = rng.choice(sizes)
        rows = tuple(frozenset(rng.sample(RACKS, rng.randint(1, 2))) for _ in range(size)) if racks else ()
        topics[name] = Topic(name, b"", size, rows)
    return topics


def _members(rng: Random, topics: list[str], *, alike: bool, racks: bool) -> dict[str, GroupMember]:
    every = [*topics, "gone"]
    members = {}
    for member_id in rng.sample("mnopq", rng.randint(1, 5)):
        wanted = every if alike else rng.sample(every, rng.randint(1, len(every)))
        rack = rng.choice([*RACKS, None]) if racks else None
        static = rng.random() < 0.3
        members[member_id] = GroupMember(
            Subscription(tuple(wanted), rack_id=rack), f"i{9 - ord(member_id) % 10}" if static else None
        )
    return members


def _shares(assignor: Assignor, topics: dict[str, Topic], members: dict[str, GroupMember]) -> Shares:
    try:
        assigned = assignor.assign(topics, members).assignments
    except Exception as reason:
        demand(False, "A-COM-01", f"{assignor.name} raises {type(reason).__name__}: {reason}")
        raise
    return {member: share.partitions for member, share in assigned.items()}


def _check_shares(name: str, topics: dict[str, Topic], members: dict[str, GroupMember], shares: Shares) -> None:
    demand(shares.keys() == members.keys(), "A-COM-03", f"{name}: lists for {sorted(shares)} of {sorted(members)}")
    given = sorted(partition for share in shares.values() for partition in share)
    demand(len(set(given)) == len(given), "A-PROP-02", f"{name}: a partition is assigned twice")
    for member, share in shares.items():
        foreign = {each.topic for each in share} - set(members[member].subscription.topics)
        demand(not foreign, "A-PROP-03", f"{name}: {member} gets {sorted(foreign)} without a subscription")
    wanted = {topic for member in members.values() for topic in member.subscription.topics} & topics.keys()
    every = sorted(TopicPartition(topic, number) for topic in wanted for number in range(topics[topic].partitions))
    demand(given == every, "A-PROP-01", f"{name}: {given} of {every} are assigned")


def _check_sizes(
    name: str, topics: dict[str, Topic], members: dict[str, GroupMember], shares: Shares, *, alike: bool
) -> None:
    if name == "roundrobin":
        sizes = [len(share) for share in shares.values()]
        demand(not alike or max(sizes) - min(sizes) <= 1, "A-RR-02", f"roundrobin: sizes {sizes}")
        return
    splits: dict[tuple[int, tuple[str, ...]], list[dict[str, list[int]]]] = {}
    racks = any(member.subscription.rack_id for member in members.values())
    for topic, each in topics.items():
        takers = _order([member for member in members if topic in members[member].subscription.topics], members)
        if not takers or not each.partitions:
            continue
        numbers = {member: [p.partition for p in shares[member] if p.topic == topic] for member in takers}
        sizes = [len(numbers[member]) for member in takers]
        quota, extras = divmod(each.partitions, len(takers))
        expected = [quota + (position < extras) for position in range(len(takers))]
        if racks:
            demand(sorted(sizes) == sorted(expected), "A-RANGE-06", f"range: {topic} is split {sizes}")
        else:
            demand(sizes == expected, "A-RANGE-01", f"range: {topic} is split {sizes} over {takers}")
            joined = [number for member in takers for number in sorted(numbers[member])]
            demand(joined == sorted(joined), "A-RANGE-01", f"range: {topic} is not cut into contiguous ranges")
        splits.setdefault((each.partitions, tuple(takers)), []).append(
            {member: sorted(part) for member, part in numbers.items()}
        )
    for (size, _), group in splits.items():
        same = all(split == group[0] for split in group)
        demand(same, "A-RANGE-03" if not racks else "A-RANGE-06", f"range: topics of {size} are not co-partitioned")


def _order(takers: list[str], members: dict[str, GroupMember]) -> list[str]:
    """Return the order of members by A-COM-02, implemented independently."""
    static = sorted((members[name].group_instance_id or "", name) for name in takers if members[name].group_instance_id)
    return [name for _, name in static] + sorted(name for name in takers if members[name].group_instance_id is None)
