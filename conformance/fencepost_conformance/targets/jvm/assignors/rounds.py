"""Random groups over several rounds; this project's assignor assigns each round, and Kafka's is asked about it.

Members hold the result of a round in the next one, after members have joined, left or changed their subscription, and
topics have grown, appeared or disappeared. So the rounds reach cases that a single random input seldom has: shares that
are sticky, uneven, contested, out of date. If a seed differs from Kafka, ``Round`` has the input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from fencepost.coordinator.consumer.assignors import ASSIGNORS, AssignorError, GroupSpec, MemberSpec, Share, Target
from fencepost.member.assignors import sticky_data
from fencepost.member.assignors.base import GroupMember
from fencepost.member.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from fencepost.member.consumer_protocol import NO_GENERATION, Subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.events import Topic

from . import client

#: Names whose order by code points differs from that by UTF-16 units (A-COM-02), and whose hashes collide.
NAMES = ("a", "b", "t10", "t9", "ä", "\uffee", "\U0001f980", "B", "_", "AaAa", "BBBB", "AaBB", "q", "r")
RACKS = ("r1", "r2", "r3")
Shares = dict[str, tuple[TopicPartition, ...]]


@dataclass(frozen=True, slots=True)
class Round:
    """A question for Kafka and this project's answer; None: an error. ``read`` reads Kafka's answer."""

    question: str
    ours: Target | Shares | None

    def theirs(self, answer: str) -> Target | Shares | None:
        """Return Kafka's answer; a member that it leaves out gets nothing."""
        try:
            if self.question.startswith("target"):
                return {name: {} for name in self.ours or ()} | client.targets(answer)
            return client.shares(answer)
        except (AssignorError, client.Raised):
            return None


# --- server assignors ---


def server_rounds(name: str, seed: int, count: int = 6) -> Iterator[Round]:
    """``count`` rounds of one group of the assignor ``uniform`` or ``range``."""
    rng = Random(f"{name} {seed}")
    alike = rng.random() < 0.5
    wide = rng.random() < 0.2  # more topics and partitions than a small hash table holds
    topics = {rng.randbytes(16): _size(rng, wide) for _ in range(rng.randint(1, 20 if wide else 5))}
    members = {name: _server_member(rng, topics, alike) for name in rng.sample(NAMES, rng.randint(1, 8))}
    held: Target = {}
    for _ in range(count):
        names = list(members)
        rng.shuffle(names)
        specs = {each: members[each]._replace(assigned=_rows(rng, held.get(each, {}))) for each in names}
        kind = SubscriptionType.HOMOGENEOUS if alike else SubscriptionType.HETEROGENEOUS
        if rng.random() < 0.1:
            kind = rng.choice(list(SubscriptionType))  # stale (M-TGT-06)
        known = topics if rng.random() < 0.95 else dict(list(topics.items())[1:])
        spec = GroupSpec(specs, kind, known)
        try:
            held = ASSIGNORS[name](spec)
            yield Round(client.target(name, spec), held)
        except AssignorError:
            yield Round(client.target(name, spec), None)
        topics = _changed_topics(rng, topics, wide)
        members = _changed_members(rng, members, topics, alike)


def _size(rng: Random, wide: bool) -> int:
    return rng.randint(1, 70) if wide and rng.random() < 0.3 else rng.randint(1, 8)


def _rows(rng: Random, share: Share) -> Share:
    rows = list(share.items())
    rng.shuffle(rows)
    return dict(rows)


def _server_member(rng: Random, topics: dict[bytes, int], alike: bool) -> MemberSpec:
    wanted = list(topics) if alike else rng.sample(list(topics), rng.randint(0, len(topics)))
    instance = f"i{rng.randint(0, 99)}-{rng.random()}" if rng.random() < 0.3 else None
    return MemberSpec(instance, rng.choice([None, *RACKS]), frozenset(wanted), {})


def _changed_topics(rng: Random, topics: dict[bytes, int], wide: bool) -> dict[bytes, int]:
    changed = {
        each: size + (rng.randint(1, 5) if rng.random() < 0.2 else 0)
        for each, size in topics.items()
        if rng.random() > 0.05 or len(topics) == 1
    } or dict(topics)
    if rng.random() < 0.15:
        changed[rng.randbytes(16)] = _size(rng, wide)
    return changed


def _changed_members(
    rng: Random, members: dict[str, MemberSpec], topics: dict[bytes, int], alike: bool
) -> dict[str, MemberSpec]:
    changed = {}
    for name, member in members.items():
        if rng.random() < 0.15 and len(members) > 1:
            continue
        wanted = frozenset(topics) if alike else member.topic_ids & frozenset(topics)
        if not alike and rng.random() < 0.2:
            wanted = frozenset(rng.sample(list(topics), rng.randint(0, len(topics))))
        changed[name] = member._replace(topic_ids=wanted)
    newcomers = rng.sample(NAMES, rng.randint(0 if changed else 1, 2))
    return {name: _server_member(rng, topics, alike) for name in newcomers} | changed


# --- client assignors ---


def sticky_rounds(name: str, seed: int, count: int = 6, *, racks: bool = False, faults: bool = True) -> Iterator[Round]:
    """``count`` rounds of one group of ``sticky`` or ``cooperative-sticky``, led by the same assignor object."""
    crowd = _Crowd(name, Random(f"{name} {seed} {racks}"), racks)
    leader: StickyAssignor | CooperativeStickyAssignor = (
        StickyAssignor(faults=faults) if name == "sticky" else CooperativeStickyAssignor(faults=faults)
    )
    for generation in range(1, count + 1):
        group = crowd.answered()
        question = client.assign(name, crowd.topics.values(), group, f"{name}_{seed}_{racks}")
        try:
            assigned = leader.assign(crowd.topics, group)
        except KeyError:
            yield Round(question, None)
            return  # later state of Kafka's assignor object is not modelled
        assert isinstance(assigned.assignor, type(leader))
        leader = assigned.assignor
        shares = {each: share.partitions for each, share in assigned.assignments.items()}
        yield Round(question, shares)
        crowd.grow()
        crowd.join_again(shares, generation)


class _Crowd:
    """The members and topics of a group of sticky clients, as the leader sees them in each round."""

    def __init__(self, name: str, rng: Random, racks: bool) -> None:
        self.name = name
        self.rng = rng
        self.racks = racks
        self.alike = rng.random() < 0.5
        self.wide = rng.random() < 0.2
        self.unused = rng.sample(NAMES, len(NAMES))  # a topic is never recreated with fewer partitions (A-STICKY-27)
        self.topics: dict[str, Topic] = {}
        for _ in range(rng.randint(1, 5)):
            self._new_topic()
        self.members = {each: self._newcomer() for each in rng.sample(NAMES, rng.randint(1, 7))}

    def answered(self) -> dict[str, GroupMember]:
        """Return the members in the order of the JoinGroup answer, which may be any."""
        return {each: self.members[each] for each in self.rng.sample(list(self.members), len(self.members))}

    def _new_topic(self) -> None:
        if self.unused:
            name = self.unused.pop()
            self.topics[name] = self._topic(name, _size(self.rng, self.wide))

    def _topic(self, name: str, size: int) -> Topic:
        known = self.racks and self.rng.random() < 0.85
        rows = tuple(frozenset(self.rng.sample(RACKS, self.rng.randint(0, 2))) for _ in range(size)) if known else ()
        return Topic(name, b"", size, rows)

    def _newcomer(self) -> GroupMember:
        rack = self.rng.choice([*RACKS, None]) if self.racks else None
        instance = f"i{self.rng.random()}" if self.rng.random() < 0.2 else None
        return GroupMember(Subscription(self._wanted(), rack_id=rack), instance)

    def _wanted(self) -> tuple[str, ...]:
        every = [*sorted(self.topics), "gone"]
        return tuple(every if self.alike else sorted(self.rng.sample(every, self.rng.randint(0, len(every)))))

    def grow(self) -> None:
        for name, topic in list(self.topics.items()):
            if self.rng.random() < 0.05 and len(self.topics) > 1:
                del self.topics[name]
            elif self.rng.random() < 0.2:
                self.topics[name] = self._topic(name, topic.partitions + self.rng.randint(1, 4))
        if self.rng.random() < 0.15:
            self._new_topic()

    def join_again(self, shares: Shares, generation: int) -> None:
        """Let members rejoin: most with their assignment; some are late, lost, lying or without any claim."""
        rng, changed = self.rng, {}
        for each, member in self.members.items():
            draw = rng.random()
            if draw < 0.12 and len(self.members) > 1:
                continue
            subscription = member.subscription
            subscription = replace(
                subscription, topics=self._wanted() if self.alike or rng.random() < 0.2 else subscription.topics
            )
            if 0.24 < draw < 0.30:
                subscription = Subscription(subscription.topics, rack_id=subscription.rack_id)
            elif draw >= 0.30:  # the others rejoin with their previous claims
                held = shares[each]
                if draw < 0.38:  # also claims another member's partitions
                    held = tuple(dict.fromkeys((*held, *rng.choice(list(shares.values())))))
                subscription = self._with_claims(subscription, held, generation)
            changed[each] = replace(member, subscription=subscription)
        newcomers = rng.sample(NAMES, rng.randint(0 if changed else 1, 2))
        self.members = {each: self._newcomer() for each in newcomers} | changed

    def _with_claims(
        self, subscription: Subscription, held: tuple[TopicPartition, ...], generation: int
    ) -> Subscription:
        """Encode what a member held: mostly as current clients do; else as older ones did, or unreadably."""
        rng, old = self.rng, self.rng.random()
        if self.name == "sticky":
            data: bytes | None = sticky_data.write(held, generation)
            if old < 0.1 and data is not None:
                data = data[:-4]  # version 0: no generation
            elif old < 0.13:
                data = rng.choice([b"", b"\1", None])
            return replace(subscription, user_data=data, generation_id=rng.choice([generation, generation, -1]))
        data = sticky_data.write_generation(generation)
        if old < 0.15:
            data = rng.choice([None, b"", data])
            generation = NO_GENERATION
        return replace(subscription, user_data=data, owned_partitions=held, generation_id=generation)
