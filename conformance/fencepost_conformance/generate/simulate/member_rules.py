"""Invariants of members (12.3), checked after each of their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.member import ClassicMemberState, Member
from fencepost.member.assignors.base import RebalanceProtocol
from fencepost.member.events import Command, MemberEvent, Poll

from .broken import demand
from .listener_rules import ListenerRules

UNJOINED, PREPARING, COMPLETING, STABLE = ClassicMemberState

#: K-ST-10…13. A step may pass through several states.
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
        self._listener = ListenerRules(name)

    def observe(self, before: Member, after: Member, event: MemberEvent, commands: Sequence[Command]) -> None:
        demand(
            after.state in _NEXT[before.state],
            "INV-CL-07",
            f"{self._name}: {before.state.value} → {after.state.value}",
        )
        settings = after.settings
        eager = settings.protocol is RebalanceProtocol.EAGER
        # A cooperative member's commit before the join, if any, covers what it gives up after the join (K-CB-12).
        commits = settings.auto_commit and eager and isinstance(event, Poll) and before.state is STABLE
        self._listener.observe(event, commands, "K-CB-01" if commits else None)
        if after.state is PREPARING and eager:
            demand(
                not after.assignment,
                "INV-CL-06",
                f"{self._name}: an eager member owns {sorted(after.assignment)} while it joins",
            )


@dataclass(frozen=True, slots=True)
class Holder:
    """A live member, and the life of its group in which it got its generation (NOT-08)."""

    member: Member
    life: tuple[int, int]


def check_generation(holders: Mapping[str, Holder], adopted: str) -> None:
    """INV-CL-06, INV-OWN-01: no other live member of the generation owns partitions that ``adopted`` has just got.

    Two live processes with one instance id are the exception: the older one is fenced, but learns it later
    (C-STATIC-13).
    """
    taker = holders[adopted]
    generation = taker.member.generation
    instance = taker.member.settings.group_instance_id
    for name, other in holders.items():
        rival = other.member.generation
        if name == adopted or other.life != taker.life or rival.generation_id != generation.generation_id:
            continue
        if rival.reset or (instance is not None and other.member.settings.group_instance_id == instance):
            continue
        both = taker.member.assignment & other.member.assignment
        demand(
            not both,
            "INV-CL-06",
            f"{adopted} and {name} both own {sorted(both)} in generation {generation.generation_id}",
        )
