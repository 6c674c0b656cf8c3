"""Invariants that must *not* hold, from ``spec/MCConsumerGroup.tla``: each says "never" about something reachable."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Final

from ...explore.interface import Invariant
from ..environment import Counters
from ..gather import Part
from .closed import COUNTERS, GROUP, ConsumerSystem
from .properties import Property, live
from .state import Endpoint, Group, Hard


def every_variable_has_its_type(system: ConsumerSystem) -> Iterable[Part]:
    config = system.config
    ids = {*config.member_ids}

    def group_is_typed(group: Group) -> bool:
        hard = group.hard
        known = {name for name, _ in hard.members}
        named = {*known, *(name for name, _ in (*hard.target, *group.rebalance_timers))}
        named |= {member for _, member in hard.instances}
        return named <= ids and group.session_timers <= known

    def counters_are_typed(counters: Counters) -> bool:
        return (
            0 <= counters.ids_used <= len(ids)
            and system.environment.has_types(counters.faults_left)
            and config.first_parts <= counters.existing <= len(config.partitions)
        )

    yield Invariant("EveryVariableHasItsType", (GROUP,), group_is_typed)
    yield Invariant("EveryVariableHasItsType", (COUNTERS,), counters_are_typed)
    for view in system.members:
        yield Invariant(
            "EveryVariableHasItsType",
            (view,),
            lambda client: client.member_id in ids | {""} and client.owned | client.assigned <= {*config.partitions},
        )


def no_two_clients_ever_believe_to_own_a_partition(system: ConsumerSystem) -> Iterable[Part]:
    """Two clients believe that they own a partition (NOT-01)."""
    for pair in combinations(system.members, 2):
        yield Invariant("NoTwoClientsEverBelieveToOwnAPartition", pair, lambda one, two: not one.owned & two.owned)


def no_client_ever_owns_a_partition(system: ConsumerSystem) -> Iterable[Part]:
    for view in system.members:
        yield Invariant("NoClientEverOwnsAPartition", (view,), lambda client: not client.owned)


def _no_member(name: str, state: str) -> Property:
    def holds(hard: Hard) -> bool:
        return all(member.state != state for _, member in hard.members)

    return lambda system: (Invariant(name, (system.hard,), holds),)


def no_member_ever_returns_to_its_partitions(system: ConsumerSystem) -> Iterable[Part]:
    """A static member returns to its partitions (M-STATIC-03, M-PE-07)."""

    def holds(hard: Hard) -> bool:
        return all(epoch > 0 for _, member in live(hard) for _, epoch in member.assigned)

    yield Invariant("NoMemberEverReturnsToItsPartitions", (system.hard,), holds)


def no_bump_ever_waits(system: ConsumerSystem) -> Iterable[Part]:
    """A bump waits for the assignment interval (M-TGT-09)."""

    def holds(group: Group) -> bool:
        return not group.blocked or group.hard.assignment_epoch == group.hard.group_epoch

    yield Invariant("NoBumpEverWaits", (GROUP,), holds)


def no_previous_epoch_is_ever_accepted(system: ConsumerSystem) -> Iterable[Part]:
    """A lost answer does no harm (M-FENCE-04)."""

    def holds(group: Group, existing: int, endpoint: Endpoint) -> bool:
        members = dict(group.hard.members)
        return not any(
            0 < heartbeat.epoch < members[heartbeat.member_id].epoch
            and any(each.reply.error == "NONE" for each in system.coordinator.get(group, heartbeat, existing))
            for heartbeat in endpoint.requests
            if heartbeat.member_id in members
        )

    for endpoint in system.endpoints:
        yield Invariant("NoPreviousEpochIsEverAccepted", (GROUP, system.existing, endpoint), holds)


WITNESSES: Final[dict[str, Property]] = {
    "EveryVariableHasItsType": every_variable_has_its_type,
    "NoTwoClientsEverBelieveToOwnAPartition": no_two_clients_ever_believe_to_own_a_partition,
    "NoClientEverOwnsAPartition": no_client_ever_owns_a_partition,
    "NoMemberEverHasToRevoke": _no_member("NoMemberEverHasToRevoke", "UNREVOKED"),
    "NoMemberEverWaitsForAPartition": _no_member("NoMemberEverWaitsForAPartition", "UNRELEASED"),
    "NoMemberEverReturnsToItsPartitions": no_member_ever_returns_to_its_partitions,
    "NoBumpEverWaits": no_bump_ever_waits,
    "NoPreviousEpochIsEverAccepted": no_previous_epoch_is_ever_accepted,
}
