"""Properties of sticky and cooperative-sticky (10.5, 10.7) over random groups, each named by its rule."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from random import Random

from fencepost.member.assignors import sticky_data
from fencepost.member.assignors.base import GroupMember
from fencepost.member.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from fencepost.member.consumer_protocol import Subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.events import Topic

from ...generate.simulate.broken import demand

Shares = dict[str, frozenset[TopicPartition]]
Sticky = StickyAssignor | CooperativeStickyAssignor
ENOUGH = 4  #: maximum number of rounds until a cooperative group settles


def check_sticky_assignors(seed: int) -> None:
    """Check the groups of this seed. Raises ``Broken`` at the first property that does not hold."""
    for assignor in (StickyAssignor(), CooperativeStickyAssignor()):
        rng = Random(f"{assignor.name} {seed}")
        group = _Group(assignor, rng)
        first = group.settle({})
        group.topics = {
            name: Topic(name, b"", each.partitions + rng.randint(0, 2)) for name, each in group.topics.items()
        }
        held = group.settle(first)
        group.check_stays(held)
        group.check_contested(held)
        if group.alike:
            group.check_leaving(held)
            group.check_stale(held, first)
            group.check_spread()
        else:
            group.change_mind()
            group.settle(held, old=first)


class _Group:
    """Topics and each member's subscription; members report generation 2 unless stated otherwise."""

    def __init__(self, assignor: Sticky, rng: Random) -> None:
        self.assignor = assignor
        self.rng = rng
        self.alike = rng.random() < 0.5
        self.topics = {name: Topic(name, b"", rng.randint(1, 6)) for name in "abcd"[: rng.randint(1, 4)]}
        self.wants = {name: self._wanted() for name in rng.sample("mnopqr", rng.randint(2, 5))}

    def _wanted(self) -> tuple[str, ...]:
        every = sorted(self.topics)
        return tuple(every if self.alike else sorted(self.rng.sample(every, self.rng.randint(0, len(every)))))

    def change_mind(self) -> None:
        if not self.alike:
            self.wants = {
                name: self._wanted() if self.rng.random() < 0.5 else each for name, each in self.wants.items()
            }

    def member(self, name: str, held: Iterable[TopicPartition], generation: int = 2) -> GroupMember:
        partitions = tuple(self.rng.sample(sorted(held), len(list(held))))
        if isinstance(self.assignor, StickyAssignor):
            data = sticky_data.write(partitions, generation)
            return GroupMember(Subscription(self.wants[name], data, (), generation))
        return GroupMember(Subscription(self.wants[name], None, partitions, generation))

    def assign(self, members: dict[str, GroupMember]) -> Shares:
        order = dict(self.rng.sample(list(members.items()), len(members)))
        try:
            assigned = self.assignor.assign(self.topics, order).assignments
        except Exception as reason:
            demand(False, "A-COM-01", f"{self.assignor.name} raises {type(reason).__name__}: {reason}")
            raise
        demand(assigned.keys() == members.keys(), "A-COM-03", f"{self.assignor.name}: lists for {sorted(assigned)}")
        given = [each for share in assigned.values() for each in share.partitions]
        demand(len(set(given)) == len(given), "A-PROP-02", f"{self.assignor.name}: a partition is assigned twice")
        for name, share in assigned.items():
            foreign = {each.topic for each in share.partitions} - set(members[name].subscription.topics)
            demand(not foreign, "A-PROP-03", f"{self.assignor.name}: {name} gets {sorted(foreign)}")
        shares = {name: frozenset(share.partitions) for name, share in assigned.items()}
        if isinstance(self.assignor, CooperativeStickyAssignor):
            owned = {name: frozenset(member.subscription.owned_partitions) for name, member in members.items()}
            for name, other in ((a, b) for a in members for b in members if a != b):
                direct = (shares[name] - owned[name]) & owned[other]
                newest = members[other].subscription.generation_id == 2
                demand(
                    not direct or not newest, "A-PROP-08", f"{sorted(direct)[:1]} moves from {other} to {name} directly"
                )
        return shares

    def settle(self, held: Shares, old: Shares | None = None) -> Shares:
        """Assign until every partition has its owner, then check the balance. One member may be out of date."""
        late = self.rng.choice(sorted(self.wants)) if old else None
        members = {name: self.member(name, held.get(name, ())) for name in self.wants}
        if late is not None and old is not None:
            members[late] = self.member(late, old.get(late, ()), 1)
        shares: Shares = {}
        for _ in range(1 if isinstance(self.assignor, StickyAssignor) else ENOUGH):
            shares = self.assign(members)
            members = {name: self.member(name, share) for name, share in shares.items()}
        wanted = {topic for topics in self.wants.values() for topic in topics}
        every = {TopicPartition(topic, n) for topic in wanted for n in range(self.topics[topic].partitions)}
        missing = every.difference(*shares.values())
        demand(not missing, "A-PROP-01", f"{self.assignor.name}: {sorted(missing)[:2]} stay unassigned")
        self._check_even(shares)
        return shares

    def _check_even(self, shares: Shares) -> None:
        loads = {name: len(share) for name, share in shares.items()}
        if self.alike:
            even = max(loads.values()) - min(loads.values()) <= 1
            demand(even, "A-PROP-04", f"{self.assignor.name}: {sorted(loads.values())}")
            return
        for one, other in combinations(shares, 2):
            high, low = (one, other) if loads[one] > loads[other] else (other, one)
            common = {each.topic for each in shares[high]} & set(self.wants[low])
            far = loads[high] - loads[low] > 1
            demand(not (far and common), "A-STICKY-24", f"{self.assignor.name}: {high} could give {low} one")

    def check_stays(self, held: Shares) -> None:
        again = self.assign({name: self.member(name, share) for name, share in held.items()})
        demand(again == held, "A-PROP-05", f"{self.assignor.name}: partitions moved without a cause")

    def check_leaving(self, held: Shares) -> None:
        gone = self.rng.choice(sorted(held))
        after = self.assign({name: self.member(name, share) for name, share in held.items() if name != gone})
        for name, share in after.items():
            demand(held[name] <= share, "A-PROP-06", f"{self.assignor.name}: {name} lost partitions when {gone} left")

    def check_stale(self, held: Shares, first: Shares) -> None:
        """A member that returns from an older generation takes nothing from the others (A-STICKY-04)."""
        late = self.rng.choice(sorted(held))
        claim = first[late].union(*held.values())
        members = {name: self.member(name, share) for name, share in held.items() if name != late}
        after = self.assign(members | {late: self.member(late, claim, 1)})
        for name in members:
            demand(
                held[name] <= after[name],
                "A-STICKY-04",
                f"{self.assignor.name}: {name} lost partitions to an old claim",
            )

    def check_contested(self, held: Shares) -> None:
        """Two claims in one generation cancel each other; the partition is transferred (A-STICKY-04, A-COOP-01)."""
        one, other = self.rng.sample(sorted(held), 2)
        members = {name: self.member(name, share) for name, share in held.items()}
        members[other] = self.member(other, held[other] | held[one])
        after = self.assign(members)
        if self.alike and isinstance(self.assignor, CooperativeStickyAssignor):
            given = frozenset().union(*after.values())
            demand(given.isdisjoint(held[one]), "A-STICKY-04", "a partition that two members claim is not withheld")

    def check_spread(self) -> None:
        """One member holds everything and another joins: each topic is distributed evenly (A-STICKY-11)."""
        self.wants = dict.fromkeys(sorted(self.wants)[:2], tuple(sorted(self.topics)))
        self.topics = {name: Topic(name, b"", 4) for name in self.topics}
        one, other = self.wants
        every = [TopicPartition(topic, n) for topic in self.topics for n in range(4)]
        after = self.assign({one: self.member(one, every), other: self.member(other, ())})
        for topic in self.topics:
            kept = sum(each.topic == topic for each in after[one])
            demand(kept == 2, "A-STICKY-11", f"{self.assignor.name}: {kept} of the 4 partitions stay of {topic}")
