"""Invariants of members (12.3), checked after each of their steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fencepost.member import Member, MemberState
from fencepost.member.assignors.base import RebalanceProtocol
from fencepost.member.events import Call, Command, Listener
from fencepost.member.partitions import TopicPartition

from .broken import demand

UNJOINED, PREPARING, COMPLETING, STABLE = MemberState

#: K-ST-10…13. A step may pass through several.
_NEXT = {
    UNJOINED: {UNJOINED, PREPARING},
    PREPARING: {UNJOINED, PREPARING, COMPLETING},
    COMPLETING: {UNJOINED, PREPARING, COMPLETING, STABLE},
    STABLE: {UNJOINED, PREPARING, STABLE},
}


class MemberRules:
    """The history of one member, as far as its listener saw it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held: set[TopicPartition] = set()  #: told as assigned and not told as gone

    def observe(self, before: Member, after: Member, commands: Iterable[Command]) -> None:
        demand(
            after.state in _NEXT[before.state],
            "INV-CL-07",
            f"{self._name}: {before.state.value} → {after.state.value}",
        )
        for command in commands:
            if isinstance(command, Listener):
                self._called(command)
        if after.state is PREPARING and after.settings.protocol is RebalanceProtocol.EAGER:
            demand(
                not after.assignment,
                "INV-CL-06",
                f"{self._name}: an eager member owns {sorted(after.assignment)} while it joins",
            )

    def _called(self, call: Listener) -> None:
        if call.call is Call.ASSIGNED:
            again = self._held.intersection(call.partitions)
            demand(not again, "INV-CL-01", f"{self._name}: {sorted(again)} assigned again without being taken away")
            self._held.update(call.partitions)
        else:
            self._held.difference_update(call.partitions)


@dataclass(frozen=True, slots=True)
class Holder:
    """A live member, and the tenure of the coordinator that gave it its generation (NOT-08)."""

    member: Member
    tenure: int


def check_owners(holders: Mapping[str, Holder], adopted: str) -> None:
    """INV-CL-06, INV-OWN-01: what ``adopted`` has taken up, no other live member of its generation owns.

    Two live processes of one instance id are the exception: the elder is fenced, and learns it later (C-STATIC-13).
    """
    taker = holders[adopted]
    generation = taker.member.generation
    instance = taker.member.settings.group_instance_id
    for name, other in holders.items():
        rival = other.member.generation
        if name == adopted or other.tenure != taker.tenure or rival.generation_id != generation.generation_id:
            continue
        if rival.reset or (instance is not None and other.member.settings.group_instance_id == instance):
            continue
        both = taker.member.assignment & other.member.assignment
        demand(
            not both,
            "INV-CL-06",
            f"{adopted} and {name} both own {sorted(both)} in generation {generation.generation_id}",
        )
