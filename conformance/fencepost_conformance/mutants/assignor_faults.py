"""Faults of assignors."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.member.assignors import base, range, round_robin
from fencepost.member.assignors.base import Assigned, GroupMember
from fencepost.member.consumer_protocol import Assignment
from fencepost.protocol.events import Topic

from . import assignor_sticky_faults
from .mutant import Side
from .patched import Patches, patched

Topics = Mapping[str, Topic]
Members = Mapping[str, GroupMember]


def _topic_without_metadata_raises(patches: Patches) -> None:
    def subscribed(topics: Topics, members: Members) -> dict[str, Topic]:
        names = sorted({name for member in members.values() for name in member.subscription.topics})
        return {name: topics[name] for name in names if topics[name].partitions}

    for module in (range, round_robin):
        patches.attribute(module, "subscribed", subscribed)


def _assignment_cached(patches: Patches) -> None:
    cache: dict[frozenset[str], Assigned] = {}

    def assign(self: range.RangeAssignor, topics: Topics, members: Members) -> Assigned:
        return cache.setdefault(frozenset(members), original(self, topics, members))

    original = patches.attribute(range.RangeAssignor, "assign", assign)


def _extras_to_the_last(patches: Patches) -> None:
    def room(self: range._Split, taker: str) -> int:
        later = list(self.taken).index(taker) >= len(self.taken) - self.topic.partitions % len(self.taken)
        return max(0, self.quota + later - self.taken[taker])

    patches.attribute(range._Split, "room", room)


def _dynamic_members_first(patches: Patches) -> None:
    def order(members: Members) -> list[str]:
        return sorted(members)

    for module in (range, round_robin):
        patches.attribute(module, "in_order", order)


def _circle_begins_anew(patches: Patches) -> None:
    def assign(self: round_robin.RoundRobinAssignor, topics: Topics, members: Members) -> Assigned:
        shares: dict[str, Assignment] = {member: Assignment(()) for member in members}
        for name in base.subscribed(topics, members):
            one = original(self, {name: topics[name]}, members).assignments
            for member, share in one.items():
                shares[member] = Assignment(shares[member].partitions + share.partitions)
        return Assigned(shares, self)

    original = patches.attribute(round_robin.RoundRobinAssignor, "assign", assign)


def _racks_before_co_partitioning(patches: Patches) -> None:
    def near(splits: list[range._Split], shares: range.Shares) -> None:
        for split in splits:
            if split.racks_matter:
                split.fill(shares, near=True)

    patches.attribute(range, "_place_near", near)


A = Side.ASSIGNOR
FAULTS = (
    patched(
        "topic-without-metadata-raises", A, "KAFKA-3661", "a subscribed topic that does not exist raises",
        _topic_without_metadata_raises,
    ),
    patched(
        "assignment-cached", A, "KAFKA-5277", "the assignor object remembers an assignment and gives it out again",
        _assignment_cached,
    ),
    patched("extras-to-the-last", A, "A-RANGE-01", "the last members get the extra partitions", _extras_to_the_last),
    patched(
        "dynamic-members-first", A, "A-COM-02", "members are ordered by member id, static or not",
        _dynamic_members_first,
    ),
    patched(
        "circle-begins-anew", A, "A-RR-02", "round-robin begins with the first member at each topic",
        _circle_begins_anew,
    ),
    patched(
        "racks-before-co-partitioning", A, "A-RANGE-06", "topics of equal shape are not kept together",
        _racks_before_co_partitioning,
    ),
    *assignor_sticky_faults.FAULTS,
)  # fmt: skip
