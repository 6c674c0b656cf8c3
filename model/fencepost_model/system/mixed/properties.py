"""The promises of the closed mixed group: the properties of ``spec/MixedProperties.tla``, under the same names.

This module has those of states, and liveness; those of steps are in ``steps``. A part reads as little as it can, so
that it is evaluated once per combination of these values instead of once per state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any, Final

from fencepost.protocol.consumer_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
)
from fencepost.protocol.events import TimerKind
from fencepost.protocol.records import GroupMetadataValue
from fencepost.protocol.settings import MigrationPolicy

from ...classic.invariants import view_of as view_of_classic
from ...classic.state import Group
from ...consumer.invariants import view_of
from ...consumer.state import ConsumerGroup, Held, Member, Target
from ...explore.interface import Invariant, LeadsTo, Settles
from ...machines import C_STABLE, C_UNRELEASED, C_UNREVOKED, STABLE
from ...promises import PROMISES
from ..consumer.properties import is_complete_and_balanced
from ..environment import expects_answer
from ..gather import Part
from ..properties import gives_nothing_away
from ..values import JoinReply, Partitions, decode_partitions, named
from . import client as clients
from .closed import GROUP, LOG, MixedSystem
from .machine import Log, Memory
from .state import Endpoint, Process

AnyGroup = Group | ConsumerGroup
Property = Callable[[MixedSystem], Iterable[Part]]


def held(held: Held) -> Partitions:
    return frozenset(named(number) for _, number, _ in held)


def target_partitions(target: Target | None) -> Partitions:
    return frozenset(named(number) for _, number in target or ())


def holding(member: Member) -> Partitions:
    return held(member.assigned) | held(member.revoking)


def present(group: AnyGroup) -> Mapping[str, Member]:
    """Return the members of a consumer group, of either protocol, by id."""
    return {member.member_id: member for member in group.members if isinstance(member, Member)}


def in_step(group: AnyGroup, process: Process) -> bool:
    """Return whether the client's partitions came with the current epoch of its member, so that its next request is not
    refused for its age: C-HB-08, X-HB-01, M-FENCE-04, 06, written again from the rules."""
    if process.runs_classic:
        client = process.classic
        if not client.owned:
            return False
        if isinstance(group, Group):
            known = any(member.member_id == client.member_id for member in group.members)
            return known and client.owned_generation == group.generation
        member = present(group).get(client.member_id)
        return member is not None and member.classic is not None and client.owned_generation == member.epoch
    if process.runs_consumer:
        consumer, member = process.consumer, present(group).get(process.member_id)
        return member is not None and (
            consumer.epoch == member.epoch
            or (consumer.epoch == member.previous and consumer.owned <= held(member.assigned))
        )
    return False


def is_in_group(system: MixedSystem, memory: Memory, number: int, endpoint: Endpoint) -> bool:
    """Return whether it is a client of the consumer group that has not been fenced. For a classic client its generation
    decides, and while it joins, whether it is let in (X-JOIN-12)."""
    process, client = endpoint.process, endpoint.classic
    member = present(memory.group).get(process.member_id)
    if member is None or not process.runs:
        return False
    if process.runs_consumer:
        return True
    if member.classic is None:
        return False
    joins = client.state == "joining" and (system.may_join(memory, number, client) or _was_admitted(endpoint, member))
    return client.generation == member.epoch or joins


def _was_admitted(endpoint: Endpoint, member: Member) -> bool:
    """Return whether the answer to its JoinGroup is in flight, and its SyncGroup would not be refused."""
    return any(
        isinstance(reply, JoinReply) and reply.error == "NONE" and reply.generation == member.epoch
        for reply in endpoint.replies
    )


def _of_group(name: str, holds: Callable[[Any], bool]) -> Property:
    return lambda system: (Invariant(name, (system.group,), holds),)


def _of_memory(name: str, holds: Callable[[Memory], bool]) -> Property:
    return lambda system: (Invariant(name, (GROUP,), holds),)


# ---- ownership -------------------------------------------------------------------------------------------------


def _promise(name: str, promise_id: str, of_classic: str = "", *, with_fault: bool = False) -> Property:
    """Return the property that states a promise of the catalogue about consumer groups, and perhaps another one about
    classic groups. ``with_fault``: only what remains of the former with Kafka's fault."""

    def holds(group: AnyGroup) -> bool:
        if isinstance(group, Group):
            return not of_classic or PROMISES[of_classic].holds(view_of_classic(group))
        return PROMISES[promise_id].holds(view_of(group), with_fault=with_fault)

    return _of_group(name, holds)


def no_partition_has_two_owners(system: MixedSystem) -> Iterable[Part]:
    """Clients in step own disjoint sets of partitions, whichever protocol they speak."""

    def holds(group: AnyGroup, one: Process, two: Process) -> bool:
        return not one.owned & two.owned or not (in_step(group, one) and in_step(group, two))

    for pair in combinations(system.processes, 2):
        yield Invariant("NoPartitionHasTwoOwners", (system.group, *pair), holds)


def no_partition_is_reassigned_before_it_is_released(system: MixedSystem) -> Iterable[Part]:
    """A partition assigned to one member is owned by no other client that was not fenced, in groups of either protocol
    (INV-KIP-09)."""

    for number, endpoint in enumerate(system.endpoints):

        def holds(memory: Memory, endpoint: Endpoint, number: int = number) -> bool:
            if isinstance(memory.group, Group):
                return gives_nothing_away(memory.group, endpoint.classic)
            return _is_assigned_to_no_other(memory.group, endpoint.process) or not is_in_group(
                system, memory, number, endpoint
            )

        yield Invariant("NoPartitionIsReassignedBeforeItIsReleased", (GROUP, endpoint), holds)


def no_partition_is_taken_from_a_present_member(system: MixedSystem) -> Iterable[Part]:
    """INV-KIP-09 without regard to epochs, where no request is late and no timer early."""

    def holds(group: AnyGroup, process: Process) -> bool:
        is_there = process.runs and process.member_id in present(group)
        return not is_there or _is_assigned_to_no_other(group, process)

    for view in system.processes:
        yield Invariant("NoPartitionIsTakenFromAPresentMember", (system.group, view), holds)


def _is_assigned_to_no_other(group: AnyGroup, process: Process) -> bool:
    return all(
        name == process.member_id or not process.owned & held(member.assigned)
        for name, member in present(group).items()
    )


def can_commit(system: MixedSystem, group: AnyGroup, number: int, process: Process, partition: str) -> bool:
    """Return whether the client would commit now (K-OFF-02), and the model's coordinator would accept it for the
    partition."""
    return system.sends_commits(process) and system.commit_is_accepted(group, number, process, partition)


def no_partition_has_two_committers(system: MixedSystem) -> Iterable[Part]:
    """Whatever clients believe (NOT-01), the coordinator accepts commits of at most one of them."""
    for c, d in combinations(range(len(system.endpoints)), 2):

        def holds(group: AnyGroup, one: Process, two: Process, c: int = c, d: int = d) -> bool:
            return not any(
                can_commit(system, group, c, one, partition) and can_commit(system, group, d, two, partition)
                for partition in one.owned & two.owned
            )

        yield Invariant("NoPartitionHasTwoCommitters", (system.group, system.processes[c], system.processes[d]), holds)


def granted_by(log: Log) -> Mapping[str, Partitions]:
    """Return what the log grants each member: its assignment in a classic group, A and R in a consumer group."""
    granted: dict[str, Partitions] = {}
    for record in log:
        value = record.value
        if isinstance(value, GroupMetadataValue):
            return {member.member_id: decode_partitions(member.assignment) for member in value.members}
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            rows = (*value.assigned_partitions, *value.partitions_pending_revocation)
            key = record.key
            assert isinstance(key, ConsumerGroupCurrentMemberAssignmentKey)
            granted[key.member_id] = frozenset(named(number) for row in rows for number in row.partitions)
    return granted


def only_holders_commit(system: MixedSystem) -> Iterable[Part]:
    """Every accepted commit is for a partition that the log grants, across all conversions."""
    for number, view in enumerate(system.processes):

        def holds(group: AnyGroup, log: Log, process: Process, number: int = number) -> bool:
            granted = granted_by(log).get(process.member_id, frozenset())
            return all(p in granted or not can_commit(system, group, number, process, p) for p in process.owned)

        yield Invariant("OnlyHoldersCommit", (system.group, LOG, view), holds)


def every_holder_may_commit(system: MixedSystem) -> Iterable[Part]:
    """A client in step is not refused, across all conversions."""
    for number, view in enumerate(system.processes):

        def holds(group: AnyGroup, process: Process, number: int = number) -> bool:
            if not (in_step(group, process) and system.sends_commits(process)):
                return True
            return all(system.commit_is_accepted(group, number, process, partition) for partition in process.owned)

        yield Invariant("EveryHolderMayCommit", (system.group, view), holds)


# ---- epochs, refusals, waits, timers ------------------------------------------------------------------------------


def no_heartbeat_fails_internally(system: MixedSystem) -> Iterable[Part]:
    """A client that comes during the group's first rebalance is asked to wait (X-UP-07 fixed)."""

    def holds(endpoint: Endpoint) -> bool:
        return all(reply.error != "UNKNOWN_SERVER_ERROR" for reply in endpoint.replies)

    return (Invariant("NoHeartbeatFailsInternally", (endpoint,), holds) for endpoint in system.endpoints)


def every_waiting_client_expects_an_answer(system: MixedSystem) -> Iterable[Part]:
    """LIV-01 as a safety property, for networks that neither lose nor duplicate."""

    def holds(is_parked: bool, endpoint: Endpoint) -> bool:
        return not clients.waits(endpoint) or expects_answer(endpoint, is_parked)

    for views in zip(system.parked, system.endpoints, strict=True):
        yield Invariant("EveryWaitingClientExpectsAnAnswer", views, holds)


def ids(memory: Memory, kind: TimerKind) -> set[str]:
    """Return the members whose timers of the kind run."""
    return {name for each, name in memory.timers if each is kind}


def _every_member_has_a_session_timer(memory: Memory) -> bool:
    return ids(memory, TimerKind.CONSUMER_SESSION) == {*present(memory.group)}


def only_members_asked_to_rejoin_have_a_join_timer(system: MixedSystem) -> Iterable[Part]:
    """A member with a join timer was asked to rejoin, so none is fenced for ignoring what it never heard (X-TMR-02,
    X-HB-03)."""

    def holds(memory: Memory) -> bool:
        known = present(memory.group)
        return all(
            name in known and system.coordinator.asks_to_rejoin(memory, name, known[name].epoch)
            for name in ids(memory, TimerKind.CONSUMER_JOIN)
        )

    yield Invariant("OnlyMembersAskedToRejoinHaveAJoinTimer", (GROUP,), holds)


def every_member_with_news_is_asked_to_rejoin(system: MixedSystem) -> Iterable[Part]:
    """A classic member that has to revoke, lags behind the target, or can have all that it waits for, is asked to
    rejoin by the answer to its next heartbeat (X-HB-03, X-HB-07)."""

    def has_news(group: ConsumerGroup, member: Member) -> bool:
        missing = target_partitions(group.target_of(member.member_id)) - held(member.assigned)
        taken = frozenset[str]().union(*(holding(other) for other in present(group).values()))
        lags = member.state == C_UNREVOKED or member.epoch < group.assignment_epoch
        return lags or (member.state == C_UNRELEASED and not missing & taken)

    def holds(memory: Memory, process: Process) -> bool:
        group, client = memory.group, process.classic
        member = present(group).get(client.member_id)
        if client.state != "stable" or isinstance(group, Group) or member is None or member.classic is None:
            return True
        if client.generation != member.epoch or not has_news(group, member):
            return True
        return system.coordinator.asks_to_rejoin(memory, client.member_id, client.generation)

    for view in system.processes:
        yield Invariant("EveryMemberWithNewsIsAskedToRejoin", (GROUP, view), holds)


def _is_the_logged_group(group: ConsumerGroup, log: Log) -> bool:
    """Return whether epochs, members and their protocols are those of the log."""
    epochs: dict[str, int] = {}
    classic: dict[str, ClassicMemberMetadata | None] = {}
    group_epoch = group.epoch
    for record in log:
        match record.key, record.value:
            case ConsumerGroupCurrentMemberAssignmentKey(
                member_id=name
            ), ConsumerGroupCurrentMemberAssignmentValue() as v:
                epochs[name] = v.member_epoch
            case ConsumerGroupMemberMetadataKey(member_id=name), ConsumerGroupMemberMetadataValue() as v:
                classic[name] = v.classic_member_metadata
            case _, ConsumerGroupMetadataValue() as v:
                group_epoch = v.epoch
    members = present(group)
    return (
        group_epoch == group.epoch
        and epochs == {name: member.epoch for name, member in members.items()}
        and classic == {name: member.classic for name, member in members.items()}
    )


def the_memory_equals_the_log(system: MixedSystem) -> Iterable[Part]:
    """Another coordinator would load the same consumer group (F-LOAD-01, X-UP-05)."""

    def holds(group: AnyGroup, log: Log) -> bool:
        return isinstance(group, Group) or _is_the_logged_group(group, log)

    yield Invariant("TheMemoryEqualsTheLog", (system.group, LOG), holds)


def is_replaced(group: AnyGroup, member_id: str, instance: str) -> bool:
    """Return whether another member, of either protocol, has the instance id of this one."""
    others = (member for member in group.members if member.member_id != member_id)
    return bool(member_id and instance) and any(member.instance == instance for member in others)


def _every_revoking_member_has_a_rebalance_timer(memory: Memory) -> bool:
    armed = dict(memory.rebalance_epochs)
    running = ids(memory, TimerKind.CONSUMER_REBALANCE)
    return all(
        name in running and armed.get(name) == member.epoch
        for name, member in present(memory.group).items()
        if member.state == C_UNREVOKED and member.classic is None and member.epoch >= 0
    )


def every_current_target_is_complete_and_balanced(system: MixedSystem) -> Iterable[Part]:
    """The target of the group epoch gives every member its share, whichever protocol it speaks, and every partition to
    one member (M-TGT-01 to 04). So a new member is in it, or the epoch was bumped and the target is to come (M-HB-03,
    X-JOIN-10)."""
    partitions = frozenset(system.config.partitions)

    def holds(group: AnyGroup) -> bool:
        if isinstance(group, Group) or not group.members or group.assignment_epoch != group.epoch:
            return True
        target = {name: target_partitions(each) for name, each in group.target}
        return is_complete_and_balanced(target, present(group).keys(), partitions)

    yield Invariant("EveryCurrentTargetIsCompleteAndBalanced", (system.group,), holds)


def _only_classic_members_have_a_sync_timer(memory: Memory) -> bool:
    speaks = {name for name, member in present(memory.group).items() if member.classic is not None}
    return ids(memory, TimerKind.CONSUMER_SYNC) <= speaks


# ---- liveness ------------------------------------------------------------------------------------------------------


def has_converged(group: AnyGroup, process: Process) -> bool:
    """Return whether the client is at rest with everything that it is to have."""
    if process.runs_classic:
        client = process.classic
        if client.state != "stable":
            return False
        if isinstance(group, Group):
            known = any(member.member_id == client.member_id for member in group.members)
            return group.state == STABLE and known and client.generation == group.generation
        member = present(group).get(client.member_id)
        return member is not None and (
            member.state == C_STABLE
            and client.generation == member.epoch == group.assignment_epoch
            and client.owned == held(member.assigned)
        )
    own, member = process.consumer, present(group).get(process.member_id)
    return (
        member is not None
        and isinstance(group, ConsumerGroup)
        and (
            own.state == "member"
            and member.state == C_STABLE
            and own.epoch == member.epoch == group.assignment_epoch
            and own.owned == held(member.assigned)
            and not (own.reconciling or own.unacknowledged or own.waiting)
        )
    )


def the_group_converges(system: MixedSystem) -> Iterable[Part]:
    """All clients reach their targets and stay there (LIV-05…08, X-ROLL-02).

    A JoinGroup that finds no id left waits for ever, so a configuration needs enough of them.
    """
    partitions = {*system.config.partitions}
    converts = system.config.policy is MigrationPolicy.BIDIRECTIONAL

    def content(group: AnyGroup, *processes: Process) -> bool:
        running = [process for process in processes if process.runs]
        if {member.member_id for member in group.members} != {process.member_id for process in running}:
            return False
        is_consumer = isinstance(group, ConsumerGroup)
        done = not isinstance(group, ConsumerGroup) or group.assignment_epoch == group.epoch
        of_one = not converts or is_consumer == any(process.runs_consumer for process in running)
        owned = frozenset[str]().union(*(process.owned for process in running))
        return all(has_converged(group, process) for process in running) and (
            not running or (done and of_one and owned == partitions)
        )

    yield Settles("TheGroupConverges", (system.group, *system.processes), content)


def every_wait_ends(system: MixedSystem) -> Iterable[Part]:
    """Every wait for an answer ends."""
    for endpoint in system.endpoints:
        yield LeadsTo("EveryWaitEnds", (endpoint,), clients.waits, lambda endpoint: not clients.waits(endpoint))


CATALOGUE: Final[dict[str, Property]] = {
    "NoPartitionHasTwoHolders": _promise("NoPartitionHasTwoHolders", "INV-KIP-01"),
    "NoPartitionHasTwoOwners": no_partition_has_two_owners,
    "NoPartitionIsReassignedBeforeItIsReleased": no_partition_is_reassigned_before_it_is_released,
    "NoPartitionIsTakenFromAPresentMember": no_partition_is_taken_from_a_present_member,
    "NoPartitionHasTwoCommitters": no_partition_has_two_committers,
    "OnlyHoldersCommit": only_holders_commit,
    "EveryHolderMayCommit": every_holder_may_commit,
    "EpochsAreOrdered": _promise("EpochsAreOrdered", "INV-KIP-03"),
    "NoHeartbeatFailsInternally": no_heartbeat_fails_internally,
    "TheMemoryEqualsTheLog": the_memory_equals_the_log,
    # An instance id is mapped to the member that has it (INV-KIP-14).
    "EveryInstanceMapsToItsMember": _promise("EveryInstanceMapsToItsMember", "INV-KIP-14"),
    # An instance id belongs to one member, in groups of either protocol (INV-MEM-02, INV-KIP-14).
    "EveryInstanceBelongsToOneMember": _promise(
        "EveryInstanceBelongsToOneMember", "INV-KIP-14", "INV-MEM-02", with_fault=True
    ),
    "EveryCurrentTargetIsCompleteAndBalanced": every_current_target_is_complete_and_balanced,
    "EveryWaitingClientExpectsAnAnswer": every_waiting_client_expects_an_answer,
    # Every member has its session timer, and no other id has one (M-TMR-01, X-TMR-01).
    "EveryMemberHasASessionTimer": _of_memory("EveryMemberHasASessionTimer", _every_member_has_a_session_timer),
    # A member of the consumer protocol that has to revoke has a rebalance timer (M-TMR-02, LIV-08); a classic one has a
    # join timer instead (X-JOIN-21, X-TMR-02).
    "EveryRevokingMemberHasARebalanceTimer": _of_memory(
        "EveryRevokingMemberHasARebalanceTimer", _every_revoking_member_has_a_rebalance_timer
    ),
    "EveryMemberWithNewsIsAskedToRejoin": every_member_with_news_is_asked_to_rejoin,
    "OnlyMembersAskedToRejoinHaveAJoinTimer": only_members_asked_to_rejoin_have_a_join_timer,
    # Only classic members have sync timers (X-TMR-03).
    "OnlyClassicMembersHaveASyncTimer": _of_memory(
        "OnlyClassicMembersHaveASyncTimer", _only_classic_members_have_a_sync_timer
    ),
    "TheGroupConverges": the_group_converges,
    "EveryWaitEnds": every_wait_ends,
}

SYSTEM: Final = frozenset(
    {
        "CoordinatorHandlesJoin",
        "CoordinatorHandlesSync",
        "CoordinatorHandlesLeaveGroup",
        "CoordinatorHandlesHeartbeat",
        "CoordinatorHandlesLeave",
        "ClientReceivesJoinReply",
        "ClientReceivesSyncReply",
        "ClientReceivesReply",
        "IntervalPasses",
        "JoinTimerFires",
        "SyncTimerFires",
        "ClientSendsJoin",
        "ClientHeartbeats",
        "ClientSendsHeartbeat",
        "ClientReconciles",
        "ClientTimesOut",
        "SessionTimerFires",
        "RebalanceTimerFires",
        "MemberJoinTimerFires",
        "MemberSyncTimerFires",
    }
)
