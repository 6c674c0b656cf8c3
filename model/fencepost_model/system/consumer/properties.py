"""The promises of the closed consumer group: the properties of ``spec/ConsumerProperties.tla``, under the same names.

This module has those of states, and liveness; those of steps are in ``steps``. Each function returns the parts of one
property. A part reads as little as it can, so that it is evaluated once per combination of these values instead of
once per state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from itertools import combinations
from typing import Final, TypeAlias

from ...explore.interface import Invariant, LeadsTo, Settles
from ...machines import C_STABLE, C_UNRELEASED, C_UNREVOKED
from ...promises import PROMISES, GroupView, MemberView
from ..gather import Part
from .client import RUNNING
from .closed import GROUP, ConsumerSystem
from .state import NO_PARTITIONS, Client, Group, Hard, Member, Partitions, names

Property: TypeAlias = Callable[[ConsumerSystem], Iterable[Part]]

#: The states of members by the names that promises know.
_STATES: Final = {"STABLE": C_STABLE, "UNREVOKED": C_UNREVOKED, "UNRELEASED": C_UNRELEASED}


def holding(member: Member) -> Partitions:
    return names(member.assigned) | names(member.revoking)


def live(hard: Hard) -> list[tuple[str, Member]]:
    """Return the members that are not away."""
    return [(name, member) for name, member in hard.members if member.epoch >= 0]


def of_client(hard: Hard, client: Client) -> Member | None:
    """Return the member of a running client, if it has not been fenced."""
    return dict(hard.members).get(client.member_id) if client.state in RUNNING else None


def in_step(hard: Hard, client: Client) -> bool:
    """Return whether the client's epoch would pass: M-FENCE-04, 06, written again from the rules."""
    member = of_client(hard, client)
    return member is not None and (
        client.epoch == member.epoch or (client.epoch == member.previous and client.owned <= names(member.assigned))
    )


def can_commit(system: ConsumerSystem, hard: Hard, client: Client, partition: str) -> bool:
    """Return whether the client could commit now, and the model's coordinator would accept it for the partition."""
    return client.state in RUNNING and client.epoch > 0 and system.commit_is_accepted(hard, client, partition)


def _of_hard(name: str, holds: Callable[[Hard], bool]) -> Property:
    return lambda system: (Invariant(name, (system.hard,), holds),)


def _of_group(name: str, holds: Callable[[Group], bool]) -> Property:
    return lambda system: (Invariant(name, (GROUP,), holds),)


# ---- ownership -----------------------------------------------------------------------------------------------------


def view_of(hard: Hard) -> GroupView:
    """Return what promises see of the group."""
    members = [
        MemberView(
            member_id,
            member.epoch,
            names(member.assigned),
            names(member.revoking),
            [epoch for _, epoch in member.assigned | member.revoking],
            _STATES[member.state],
            member.instance or None,
        )
        for member_id, member in hard.members
    ]
    return GroupView(hard.group_epoch, hard.assignment_epoch, members, dict(hard.target), hard.instances)


def _promise(
    name: str, promise_id: str, *, also: Callable[[Hard], bool] = lambda _: True, with_fault: bool = False
) -> Property:
    """Return the property that states a promise of the catalogue. ``also``: what this closed system keeps beside it;
    ``with_fault``: only what remains of the promise with Kafka's fault."""
    return _of_hard(name, lambda hard: PROMISES[promise_id].holds(view_of(hard), with_fault=with_fault) and also(hard))


def no_partition_has_two_owners(system: ConsumerSystem) -> Iterable[Part]:
    """Clients in step own disjoint sets of partitions."""
    for c, d in combinations(system.members, 2):

        def holds(hard: Hard, one: Client, two: Client) -> bool:
            return not one.owned & two.owned or not (in_step(hard, one) and in_step(hard, two))

        yield Invariant("NoPartitionHasTwoOwners", (system.hard, c, d), holds)


def no_partition_is_reassigned_before_it_is_released(system: ConsumerSystem) -> Iterable[Part]:
    """A partition assigned to one member is owned by no other client that was not fenced (INV-KIP-09)."""

    def holds(hard: Hard, client: Client) -> bool:
        return of_client(hard, client) is None or all(
            name == client.member_id or not client.owned & names(member.assigned) for name, member in hard.members
        )

    for view in system.members:
        yield Invariant("NoPartitionIsReassignedBeforeItIsReleased", (system.hard, view), holds)


def no_partition_has_two_committers(system: ConsumerSystem) -> Iterable[Part]:
    """Whatever clients believe (NOT-01), the coordinator accepts commits of at most one of them."""

    def holds(hard: Hard, one: Client, two: Client) -> bool:
        return not any(
            can_commit(system, hard, one, partition) and can_commit(system, hard, two, partition)
            for partition in one.owned & two.owned
        )

    for c, d in combinations(system.members, 2):
        yield Invariant("NoPartitionHasTwoCommitters", (system.hard, c, d), holds)


def only_holders_commit(system: ConsumerSystem) -> Iterable[Part]:
    """Every accepted commit is for a partition that the log grants."""

    def holds(hard: Hard, replicated: Hard, client: Client) -> bool:
        member = dict(replicated.members).get(client.member_id)
        granted = holding(member) if member else frozenset()
        return all(p in granted or not can_commit(system, hard, client, p) for p in client.owned)

    for view in system.members:
        yield Invariant("OnlyHoldersCommit", (system.hard, system.replicated, view), holds)


def no_commit_is_older_than_its_grant(system: ConsumerSystem) -> Iterable[Part]:
    """Every accepted commit is for a partition that its member has had at least since the epoch of the commit, so no
    other member has committed in between (M-PE-08)."""

    def holds(hard: Hard, client: Client) -> bool:
        member = of_client(hard, client)
        if member is None or client.epoch == member.epoch:
            return True
        held_since = dict(member.assigned | member.revoking)
        return all(
            held_since.get(partition, client.epoch + 1) <= client.epoch
            or not can_commit(system, hard, client, partition)
            for partition in client.owned
        )

    for view in system.members:
        yield Invariant("NoCommitIsOlderThanItsGrant", (system.hard, view), holds)


def every_holder_may_commit(system: ConsumerSystem) -> Iterable[Part]:
    """A client in step is not refused, with the previous epoch either (M-PE-08)."""

    def holds(hard: Hard, client: Client) -> bool:
        if not in_step(hard, client) or client.epoch <= 0:
            return True
        return all(system.commit_is_accepted(hard, client, partition) for partition in client.owned)

    for view in system.members:
        yield Invariant("EveryHolderMayCommit", (system.hard, view), holds)


# ---- epochs and members ----------------------------------------------------------------------------------------------


def _newcomers_have_no_assignment_epochs(hard: Hard) -> bool:
    """Without classic members a replacement finds all assignment epochs at 0 (M-PE-07)."""
    held = [row for _, member in hard.members if member.epoch == 0 for row in member.assigned | member.revoking]
    return all(epoch == 0 for _, epoch in held)


def is_complete_and_balanced(target: Mapping[str, Partitions], members: Set[str], partitions: Set[str]) -> bool:
    """Return whether a target gives every member its share, and every partition to one member (M-TGT-01 to 04)."""
    sizes = [len(its) for its in target.values()]
    given = [partition for its in target.values() for partition in its]
    complete = target.keys() == members and {*given} == partitions
    return complete and len(given) == len({*given}) and max(sizes) - min(sizes) <= 1


def every_current_target_is_complete_and_balanced(system: ConsumerSystem) -> Iterable[Part]:
    """The target of the group epoch gives every member its share, and every partition to one member (M-TGT-01 to 04).
    So a new member is in it, or the epoch was bumped and the target is to come (M-HB-03)."""

    def holds(hard: Hard) -> bool:
        if not hard.members or hard.assignment_epoch != hard.group_epoch:
            return True
        partitions = {*system.config.partitions[: hard.hashed]}
        return is_complete_and_balanced(dict(hard.target), dict(hard.members).keys(), partitions)

    yield Invariant("EveryCurrentTargetIsCompleteAndBalanced", (system.hard,), holds)


def _stable_members_have_all_of_their_targets(hard: Hard) -> bool:
    """No subscription changes here, so a STABLE member lacks nothing."""
    target = dict(hard.target)
    return all(
        names(member.assigned) == target.get(name, NO_PARTITIONS)
        for name, member in hard.members
        if member.epoch == hard.assignment_epoch and member.state == "STABLE"
    )


def _unrevoked_have_timers(group: Group) -> bool:
    timers = dict(group.rebalance_timers)
    return all(member.state != "UNREVOKED" or timers.get(name) == member.epoch for name, member in live(group.hard))


def _only_unrevoked_have_timers(group: Group) -> bool:
    timers = dict(group.rebalance_timers)
    return all(name not in timers or member.state == "UNREVOKED" for name, member in live(group.hard))


# ---- liveness -------------------------------------------------------------------------------------------------------


def the_group_converges(system: ConsumerSystem) -> Iterable[Part]:
    """All members reach their targets and stay there (LIV-07, LIV-08), in parts that each hold for ever from some point
    on."""

    def reached(group: Group, client: Client) -> bool:
        if client.state not in RUNNING:
            return True
        member = of_client(group.hard, client)
        return (
            member is not None
            and client.state == "member"
            and member.state == "STABLE"
            and client.epoch == member.epoch == group.hard.assignment_epoch
            and client.owned == names(member.assigned) == dict(group.hard.target).get(client.member_id, NO_PARTITIONS)
            and not (client.reconciling or client.unacknowledged or client.waiting)
        )

    def content(hard: Hard, existing: int, *clients: Client) -> bool:
        running = [client for client in clients if client.state in RUNNING]
        if {name for name, _ in hard.members} != {client.member_id for client in running}:
            return False
        owned = frozenset[str]().union(*(client.owned for client in running))
        done = hard.assignment_epoch == hard.group_epoch and owned == {*system.config.partitions[:existing]}
        return not running or done

    for view in system.members:
        yield Settles("TheGroupConverges", (GROUP, view), reached)
    yield Settles("TheGroupConverges", (system.hard, system.existing, *system.members), content)


def every_wait_ends(system: ConsumerSystem) -> Iterable[Part]:
    for view in system.members:
        yield LeadsTo("EveryWaitEnds", (view,), lambda client: client.waiting, lambda client: not client.waiting)


CATALOGUE: Final[dict[str, Property]] = {
    "NoPartitionHasTwoHolders": _promise("NoPartitionHasTwoHolders", "INV-KIP-01"),
    "NoPartitionHasTwoOwners": no_partition_has_two_owners,
    "NoPartitionIsReassignedBeforeItIsReleased": no_partition_is_reassigned_before_it_is_released,
    "NoPartitionHasTwoCommitters": no_partition_has_two_committers,
    "OnlyHoldersCommit": only_holders_commit,
    "EveryHolderMayCommit": every_holder_may_commit,
    "NoCommitIsOlderThanItsGrant": no_commit_is_older_than_its_grant,
    "EveryCurrentTargetIsCompleteAndBalanced": every_current_target_is_complete_and_balanced,
    # A group without members subscribes to nothing (M-META-07).
    "AnEmptyGroupHasNoHash": _of_hard("AnEmptyGroupHasNoHash", lambda hard: bool(hard.members) or hard.hashed == 0),
    "EpochsAreOrdered": _promise("EpochsAreOrdered", "INV-KIP-03"),
    "NoAssignmentEpochIsNewerThanItsMember": _promise(
        "NoAssignmentEpochIsNewerThanItsMember", "INV-KIP-16", also=_newcomers_have_no_assignment_epochs
    ),
    "NoPartitionIsBothAssignedAndRevoked": _promise("NoPartitionIsBothAssignedAndRevoked", "INV-KIP-02"),
    "EveryReconciledMemberHasItsTarget": _promise(
        "EveryReconciledMemberHasItsTarget", "INV-KIP-06", also=_stable_members_have_all_of_their_targets
    ),
    "AMemberIsUnrevokedIffItHasToRevoke": _promise("AMemberIsUnrevokedIffItHasToRevoke", "INV-KIP-07"),
    "EveryInstanceBelongsToOneMember": _promise("EveryInstanceBelongsToOneMember", "INV-KIP-14", with_fault=True),
    "EveryInstanceMapsToItsMember": _promise("EveryInstanceMapsToItsMember", "INV-KIP-14"),
    # Each member has a session timer, and no other id has one (M-TMR-01).
    "EveryMemberHasASessionTimer": _of_group(
        "EveryMemberHasASessionTimer", lambda group: group.session_timers == {name for name, _ in group.hard.members}
    ),
    # A member that has to revoke has the timer that ends the wait for it (M-TMR-02, LIV-08).
    "EveryRevokingMemberHasARebalanceTimer": _of_group("EveryRevokingMemberHasARebalanceTimer", _unrevoked_have_timers),
    # The timer ends when the member has revoked (M-TMR-04).
    "OnlyRevokingMembersHaveARebalanceTimer": _of_group(
        "OnlyRevokingMembersHaveARebalanceTimer", _only_unrevoked_have_timers
    ),
    "TheGroupConverges": the_group_converges,
    "EveryWaitEnds": every_wait_ends,
}


SYSTEM: Final = frozenset(
    {
        "AppendSucceeds",
        "CoordinatorHandlesHeartbeat",
        "CoordinatorHandlesLeave",
        "ClientReceivesReply",
        "IntervalPasses",
        "ClientSendsHeartbeat",
        "ClientReconciles",
        "ClientTimesOut",
        "SessionTimerFires",
        "RebalanceTimerFires",
    }
)
