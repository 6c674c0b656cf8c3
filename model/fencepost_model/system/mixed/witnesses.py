"""Invariants that must *not* hold: those of ``spec/MCMixedGroup.tla``, each "never" of something to be reached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fencepost.protocol.events import TimerKind

from ...explore.interface import Invariant
from ..gather import Part
from .closed import COUNTERS, GROUP, MixedSystem
from .machine import CLASSIC_TIMERS, Memory
from .properties import Property, present
from .state import Counters


def every_variable_has_its_type(system: MixedSystem) -> Iterable[Part]:
    config = system.config
    ids = {*config.member_ids}

    def group_is_typed(memory: Memory) -> bool:
        known = {member.member_id for member in memory.group.members}
        of_members = {name for kind, name in memory.timers if kind is TimerKind.CONSUMER_SESSION}
        own = not present(memory.group) or all(kind not in CLASSIC_TIMERS for kind, _ in memory.timers)
        return known <= ids and of_members <= known and own and {name for _, name in memory.timers} <= ids | {""}

    def counters_are_typed(counters: Counters) -> bool:
        return 0 <= counters.ids_used <= len(ids) and 0 <= counters.faults_left <= config.faults

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


WITNESSES: Final[dict[str, Property]] = {
    "EveryVariableHasItsType": every_variable_has_its_type,
}
