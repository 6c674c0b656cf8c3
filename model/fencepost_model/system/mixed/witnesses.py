"""Invariants that must *not* hold, from ``spec/MCMixedGroup.tla``: each says "never" about something reachable."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any, Final

from fencepost.protocol.events import TimerKind

from ...explore.interface import Invariant, Label, StepInvariant
from ...machines import C_UNREVOKED
from ..environment import Counters
from ..gather import Part
from .closed import COUNTERS, GROUP, MixedSystem
from .machine import CLASSIC_TIMERS, Memory
from .properties import AnyGroup, Property, in_step, present
from .state import Process
from .steps import is_downgrade


def every_variable_has_its_type(system: MixedSystem) -> Iterable[Part]:
    config = system.config
    ids = {*config.member_ids}

    def group_is_typed(memory: Memory) -> bool:
        known = {member.member_id for member in memory.group.members}
        of_members = {name for kind, name in memory.timers if kind is TimerKind.CONSUMER_SESSION}
        own = not present(memory.group) or all(kind not in CLASSIC_TIMERS for kind, _ in memory.timers)
        return known <= ids and of_members <= known and own and {name for _, name in memory.timers} <= ids | {""}

    def counters_are_typed(counters: Counters) -> bool:
        return 0 <= counters.ids_used <= len(ids) and system.environment.has_types(counters.faults_left)

    yield Invariant("EveryVariableHasItsType", (GROUP,), group_is_typed)
    yield Invariant("EveryVariableHasItsType", (COUNTERS,), counters_are_typed)
    for view in system.processes:
        yield Invariant(
            "EveryVariableHasItsType",
            (view,),
            lambda process: (
                "down" in (process.classic.state, process.consumer.state) and process.member_id in ids | {""}
            ),
        )


def no_group_is_ever_mixed(system: MixedSystem) -> Iterable[Part]:
    """Members of both protocols own partitions at the same time (X-ROLL-02)."""

    def holds(group: AnyGroup, *pair: Process) -> bool:
        both = {process.runs_classic for process in pair} == {True, False} and all(process.runs for process in pair)
        return not both or not all(process.owned and in_step(group, process) for process in pair)

    for pair in combinations(system.processes, 2):
        yield Invariant("NoGroupIsEverMixed", (system.group, *pair), holds)


def no_classic_member_ever_has_to_revoke(system: MixedSystem) -> Iterable[Part]:
    """A classic member of a consumer group has to revoke (X-JOIN-17)."""

    def holds(group: AnyGroup) -> bool:
        return all(member.classic is None or member.state != C_UNREVOKED for member in present(group).values())

    yield Invariant("NoClassicMemberEverHasToRevoke", (system.group,), holds)


def no_group_is_ever_downgraded(system: MixedSystem) -> Iterable[Part]:
    """A group is downgraded (X-DOWN-01)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        return not is_downgrade(*before, *after)

    yield StepInvariant("NoGroupIsEverDowngraded", (system.group,), holds)


WITNESSES: Final[dict[str, Property]] = {
    "EveryVariableHasItsType": every_variable_has_its_type,
    "NoGroupIsEverMixed": no_group_is_ever_mixed,
    "NoClassicMemberEverHasToRevoke": no_classic_member_ever_has_to_revoke,
    "NoGroupIsEverDowngraded": no_group_is_ever_downgraded,
}
