"""The promises of the closed consumer group: the properties of ``spec/ConsumerProperties.tla``, under the same names.

Each function returns the parts of one property. A part reads as little as it can, so that it is evaluated once per
combination of these values instead of once per state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, Final, TypeAlias

from ...explore.interface import Invariant, Label, LeadsTo, Settles, StepInvariant
from ..durable import Durable, follows
from .client import RUNNING
from .closed import GROUP, LOG, ConsumerSystem
from .state import AWAY, NO_PARTITIONS, Client, Endpoint, Group, Hard, Heartbeat, Log, Member, Partitions, Reply, names

Part: TypeAlias = Invariant | StepInvariant | LeadsTo | Settles
Property: TypeAlias = Callable[[ConsumerSystem], Iterable[Part]]


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


def _of_members(name: str, holds: Callable[[Hard, str, Member], bool], *, also_away: bool = False) -> Property:
    def every(hard: Hard) -> bool:
        members = hard.members if also_away else live(hard)
        return all(holds(hard, member_id, member) for member_id, member in members)

    return _of_hard(name, every)


# ---- ownership -----------------------------------------------------------------------------------------------------


def _two_holders(hard: Hard) -> bool:
    return all(not holding(one) & holding(two) for (_, one), (_, two) in combinations(hard.members, 2))


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


def _epochs_are_ordered(hard: Hard) -> bool:
    ahead = any(member.epoch > hard.assignment_epoch for _, member in live(hard))
    return hard.assignment_epoch <= hard.group_epoch and not ahead


def no_epoch_decreases(system: ConsumerSystem) -> Iterable[Part]:
    """No replicated epoch falls (INV-KIP-04)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (old,), (new,) = before, after
        known = dict(old.members)
        return (
            new.group_epoch >= old.group_epoch
            and new.assignment_epoch >= old.assignment_epoch
            and all(
                name not in known or member.epoch >= known[name].epoch or member.epoch == AWAY
                for name, member in new.members
            )
        )

    yield StepInvariant("NoEpochDecreases", (system.replicated,), holds, changed=(system.replicated,))


def no_member_is_between_epochs(system: ConsumerSystem) -> Iterable[Part]:
    """A member that confirms a revocation moves to the assignment epoch or stays (M-REC-19)."""

    def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        known = dict(before[0].members)
        return all(
            name not in known or member.epoch in (known[name].epoch, after[0].assignment_epoch, AWAY)
            for name, member in after[0].members
        )

    actions = {"CoordinatorHandlesHeartbeat", "CoordinatorHandlesLeave"}
    yield StepInvariant("NoMemberIsBetweenEpochs", (system.hard,), holds, frozenset(actions), (system.hard,))


def the_first_member_need_not_wait(system: ConsumerSystem) -> Iterable[Part]:
    """The first member of an empty group does not wait for an interval that earlier members began (M-LEAVE-08)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        comes = after[0].members and not before[0].members
        return not comes or after[0].assignment_epoch == after[0].group_epoch

    handles_heartbeat = frozenset({"CoordinatorHandlesHeartbeat"})
    yield StepInvariant("TheFirstMemberNeedNotWait", (system.hard,), holds, handles_heartbeat, (system.hard,))


def _assignment_epochs_are_reached(_: Hard, __: str, member: Member) -> bool:
    return all(epoch <= max(member.epoch, 0) for _, epoch in member.assigned | member.revoking)


def _current_target_is_complete_and_balanced(system: ConsumerSystem, hard: Hard) -> bool:
    if not hard.members or hard.assignment_epoch != hard.group_epoch:
        return True
    target = dict(hard.target)
    sizes = [len(partitions) for partitions in target.values()]
    given = [partition for partitions in target.values() for partition in partitions]
    complete = target.keys() == dict(hard.members).keys() and {*given} == {*system.config.partitions[: hard.hashed]}
    return complete and len(given) == len({*given}) and max(sizes) - min(sizes) <= 1


def every_current_target_is_complete_and_balanced(system: ConsumerSystem) -> Iterable[Part]:
    """The target of the group epoch gives every member its share, and every partition to one member (M-TGT-01 to 04).
    So a new member is in it, or the epoch was bumped and the target is to come (M-HB-03)."""
    promise = "EveryCurrentTargetIsCompleteAndBalanced"
    yield Invariant(promise, (system.hard,), lambda hard: _current_target_is_complete_and_balanced(system, hard))


def every_grown_topic_bumps_the_epoch(system: ConsumerSystem) -> Iterable[Part]:
    """The next heartbeat after a topic has grown bumps the epoch, so that the next target has the new partitions
    (M-META-03, M-HB-04, M-EPOCH-03)."""
    for number, endpoint in enumerate(system.endpoints):

        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...], number: int = number) -> bool:
            (hard, log, endpoint, existing), (hard2, log2, lane2, _existing) = before, after
            new = _answers(number, log2, lane2) - _answers(number, log, endpoint)
            if all(reply.error != "NONE" for reply in new):
                return True
            grown = hard.hashed != existing
            return bool(hard2.hashed == existing and (not grown or hard2.group_epoch > hard.group_epoch))

        reads = (system.hard, LOG, endpoint, system.existing)
        yield StepInvariant("EveryGrownTopicBumpsTheEpoch", reads, holds, HEARTBEAT, (endpoint,))


TIMER_FIRES: Final = {
    "session": frozenset({"SessionTimerFires", "SessionTimerFiresEarly"}),
    "rebalance": frozenset({"RebalanceTimerFires", "RebalanceTimerFiresEarly"}),
}


def _ended(before: Hard, after: Hard) -> list[tuple[str, Member]]:
    """Return the members whose membership the step ended or suspended."""
    stay = dict(after.members)
    return [
        (name, member)
        for name, member in before.members
        if name not in stay or (stay[name].epoch == AWAY and member.epoch != AWAY)
    ]


def _is_slow_to_revoke(member: Member) -> bool:
    return member.epoch >= 0 and member.state == "UNREVOKED"


def every_membership_ends_for_a_reason(system: ConsumerSystem) -> Iterable[Part]:
    """A membership ends, or is suspended, by its owner, or by a timer whose reason applies to the member (M-LEAVE-02 to
    05, M-STATIC-03, M-TMR-02). A live static member is not displaced."""
    promise = "EveryMembershipEndsForAReason"

    def by_itself(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        action = label[0]
        if action.startswith("CoordinatorHandles") or action == "CoordinatorFailsOver":
            return True
        return all(
            label[1:2] == (name,)
            and (
                action in TIMER_FIRES["session"] or (action in TIMER_FIRES["rebalance"] and _is_slow_to_revoke(member))
            )
            for name, member in _ended(before[0], after[0])
        )

    def by_request(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        if before[1] == after[1]:  # the request of another endpoint was handled
            return True
        handled = _handled_requests(before[1], after[1])
        leaves = {request.member_id for request in handled if request.epoch < 0}
        returns = {request.instance for request in handled if request.epoch == 0} - {""}
        return all(
            name in leaves or (member.instance in returns and member.epoch == AWAY)
            for name, member in _ended(before[0], after[0])
        )

    yield StepInvariant(promise, (system.hard,), by_itself, changed=(system.hard,))
    handles = frozenset({"CoordinatorHandlesHeartbeat", "CoordinatorHandlesLeave"})
    for endpoint in system.endpoints:
        yield StepInvariant(promise, (system.hard, endpoint), by_request, handles, (endpoint,))


def a_rebalance_timer_fences_only_a_revoking_member(system: ConsumerSystem) -> Iterable[Part]:
    """A rebalance timer that fires ends only the membership of a member that is present and has to revoke (M-TMR-02,
    M-LEAVE-05)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        return all(_is_slow_to_revoke(member) for _, member in _ended(before[0], after[0]))

    promise = "ARebalanceTimerFencesOnlyARevokingMember"
    yield StepInvariant(promise, (system.hard,), holds, TIMER_FIRES["rebalance"], (system.hard,))


def every_replacement_starts_at_zero(system: ConsumerSystem) -> Iterable[Part]:
    """A member that replaces another starts at epoch 0, whatever the other's was (M-STATIC-03, M-STATIC-10)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        known, members = dict(before[0].instances), dict(after[0].members)
        return all(
            known.get(instance, name) == name or members[name].previous == 0 for instance, name in after[0].instances
        )

    yield StepInvariant("EveryReplacementStartsAtZero", (system.hard,), holds, HEARTBEAT, (system.hard,))


def every_unreleased_member_waits_for_another(system: ConsumerSystem) -> Iterable[Part]:
    """A member that is UNRELEASED after its heartbeat waits for a partition that another member holds (M-MS-03,
    M-REC-11, M-REC-21)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        known, hard = dict(before[0].members), after[0]
        target = dict(hard.target)
        for name, member in hard.members:
            if member == known.get(name) or member.state != "UNRELEASED" or member.epoch != hard.assignment_epoch:
                continue
            others = (holding(other) for each, other in hard.members if each != name)
            waits_for = target.get(name, NO_PARTITIONS) - names(member.assigned)
            if not waits_for.intersection(frozenset[str]().union(*others)):
                return False
        return True

    yield StepInvariant("EveryUnreleasedMemberWaitsForAnother", (system.hard,), holds, HEARTBEAT, (system.hard,))


def _has_its_target(hard: Hard, name: str, member: Member) -> bool:
    has, target = names(member.assigned), dict(hard.target).get(name, NO_PARTITIONS)
    if member.epoch != hard.assignment_epoch or member.state == "UNREVOKED":
        return True
    return has == target if member.state == "STABLE" else has <= target


def _every_instance_maps_to_its_member(hard: Hard) -> bool:
    members = dict(hard.members)
    return all(member in members and members[member].instance == instance for instance, member in hard.instances)


def _unrevoked_have_timers(group: Group) -> bool:
    timers = dict(group.rebalance_timers)
    return all(member.state != "UNREVOKED" or timers.get(name) == member.epoch for name, member in live(group.hard))


def _only_unrevoked_have_timers(group: Group) -> bool:
    timers = dict(group.rebalance_timers)
    return all(name not in timers or member.state == "UNREVOKED" for name, member in live(group.hard))


# ---- requests and answers -------------------------------------------------------------------------------------------

HEARTBEAT: Final = frozenset({"CoordinatorHandlesHeartbeat"})


def _handled_requests(before: Endpoint, after: Endpoint) -> frozenset[Heartbeat]:
    return before.requests - after.requests


def is_stale(hard: Hard, heartbeat: Heartbeat) -> bool:
    """Return whether the coordinator must refuse the heartbeat: M-FENCE-01, 03, 05, written again from the rules."""
    member = dict(hard.members).get(heartbeat.member_id)
    if member is None or member.epoch == AWAY:
        return True
    forgiven = (
        heartbeat.epoch == member.previous and heartbeat.owned is not None and heartbeat.owned <= names(member.assigned)
    )
    return heartbeat.epoch != member.epoch and not forgiven


def a_stale_heartbeat_changes_nothing(system: ConsumerSystem) -> Iterable[Part]:
    """A stale heartbeat changes nothing and is refused (M-FENCE-01, 03, 05, INV-KIP-17)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (group, log, endpoint), (group2, log2, lane2) = before, after
        if not any(
            heartbeat.epoch > 0 and is_stale(group.hard, heartbeat) for heartbeat in _handled_requests(endpoint, lane2)
        ):
            return True
        new: frozenset[Reply] = lane2.replies - endpoint.replies
        return group == group2 and log == log2 and all(reply.error != "NONE" for reply in new)

    for endpoint in system.endpoints:
        yield StepInvariant("AStaleHeartbeatChangesNothing", (GROUP, LOG, endpoint), holds, HEARTBEAT, (endpoint,))


def is_replaced(hard: Hard, member_id: str, instance: str) -> bool:
    """Return whether another member has the instance id of this one."""
    return dict(hard.instances).get(instance, member_id) != member_id if instance else False


def every_replaced_member_is_fenced(system: ConsumerSystem) -> Iterable[Part]:
    """No request of a replaced member succeeds, whatever the API, and the answer ends the old process (INV-FENCE-01,
    M-STATIC-02, M-STATIC-05, M-LEAVE-02). To join it must wait until the other is away."""
    promise = "EveryReplacedMemberIsFenced"

    def must_be_refused(hard: Hard, request: Heartbeat) -> bool:
        if not is_replaced(hard, request.member_id, request.instance):
            return False
        return request.epoch != 0 or dict(hard.members)[dict(hard.instances)[request.instance]].epoch >= 0

    def is_refused(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (group, endpoint), (group2, lane2) = before, after
        if not any(must_be_refused(group.hard, request) for request in _handled_requests(endpoint, lane2)):
            return True
        errors = {reply.error for reply in lane2.replies - endpoint.replies}
        return bool(group == group2 and errors <= {"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"})

    def may_not_commit(hard: Hard, client: Client) -> bool:
        return not is_replaced(hard, client.member_id, client.instance) or not any(
            can_commit(system, hard, client, partition) for partition in client.owned
        )

    handles = frozenset({"CoordinatorHandlesHeartbeat", "CoordinatorHandlesLeave"})
    for endpoint, view in zip(system.endpoints, system.members, strict=True):
        yield StepInvariant(promise, (GROUP, endpoint), is_refused, handles, (endpoint,))
        yield Invariant(promise, (system.hard, view), may_not_commit)


def no_answer_overtakes_an_open_batch(system: ConsumerSystem) -> Iterable[Part]:
    """No answer NONE overtakes a batch that was appended before it (F-RT-16)."""

    def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        if label[0] == "AppendSucceeds" or not before[0]:
            return True
        return all(reply.error != "NONE" for reply in after[1].replies - before[1].replies)

    for endpoint in system.endpoints:
        yield StepInvariant("NoAnswerOvertakesAnOpenBatch", (system.open, endpoint), holds, changed=(endpoint,))


def every_answered_epoch_is_replicated(system: ConsumerSystem) -> Iterable[Part]:
    """The epoch in an answer NONE is stored and replicated (INV-KIP-10)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        new = [reply for reply in after[1].replies - before[1].replies if reply.error == "NONE"]
        member = dict(after[0].members).get(before[1].client.member_id)
        return all(member is not None and member.epoch == reply.epoch for reply in new)

    for endpoint in system.endpoints:
        yield StepInvariant("EveryAnsweredEpochIsReplicated", (system.replicated, endpoint), holds, changed=(endpoint,))


def _answers(number: int, log: Log, endpoint: Endpoint) -> frozenset[Reply]:
    """Return the answers to the client, released or not."""
    return endpoint.replies | {reply for batch in log.open for to, reply in batch.answers if to == number}


def every_changed_assignment_is_answered(system: ConsumerSystem) -> Iterable[Part]:
    """An answer without assignment means that A did not change (INV-KIP-15)."""
    for number, endpoint in enumerate(system.endpoints):

        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...], number: int = number) -> bool:
            (hard, log, endpoint), (hard2, log2, lane2) = before, after
            new = _answers(number, log2, lane2) - _answers(number, log, endpoint)
            if not any(reply.error == "NONE" and reply.assignment is None for reply in new):
                return True
            old, now = dict(hard.members), dict(hard2.members)
            return all(
                old[heartbeat.member_id].assigned == now[heartbeat.member_id].assigned
                for heartbeat in _handled_requests(endpoint, lane2)
            )

        reads = (system.hard, LOG, endpoint)
        yield StepInvariant("EveryChangedAssignmentIsAnswered", reads, holds, HEARTBEAT, (endpoint,))


def _never_answered(name: str, error: str, concerns: Callable[[Hard, Heartbeat], bool]) -> Property:
    """Make the property that no such request is answered with the error."""

    def parts(system: ConsumerSystem) -> Iterable[Part]:
        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            hard, endpoint = before
            new = after[1].replies - endpoint.replies
            return not (
                any(reply.error == error for reply in new)
                and any(concerns(hard, heartbeat) for heartbeat in _handled_requests(endpoint, after[1]))
            )

        return (
            StepInvariant(name, (system.hard, endpoint), holds, HEARTBEAT, (endpoint,)) for endpoint in system.endpoints
        )

    return parts


def _is_join(_: Hard, heartbeat: Heartbeat) -> bool:
    return heartbeat.epoch == 0


def _holds_the_instance(hard: Hard, heartbeat: Heartbeat) -> bool:
    return dict(hard.instances).get(heartbeat.instance) == heartbeat.member_id


# ---- liveness and refinement ----------------------------------------------------------------------------------------


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


def the_group_refines_durable(system: ConsumerSystem) -> Iterable[Part]:
    """The log behaves as ``Durable`` says."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        logs = (Durable(log.replicated, tuple(batch.hard for batch in log.open)) for (log,) in (before, after))
        return follows(*logs)

    yield StepInvariant("TheGroupRefinesDurable", (LOG,), holds, changed=(LOG,))


CATALOGUE: Final[dict[str, Property]] = {
    "TheGroupRefinesDurable": the_group_refines_durable,
    # INV-KIP-01
    "NoPartitionHasTwoHolders": _of_hard("NoPartitionHasTwoHolders", _two_holders),
    "NoPartitionHasTwoOwners": no_partition_has_two_owners,
    "NoPartitionIsReassignedBeforeItIsReleased": no_partition_is_reassigned_before_it_is_released,
    "NoPartitionHasTwoCommitters": no_partition_has_two_committers,
    "OnlyHoldersCommit": only_holders_commit,
    "EveryHolderMayCommit": every_holder_may_commit,
    "NoCommitIsOlderThanItsGrant": no_commit_is_older_than_its_grant,
    "EveryCurrentTargetIsCompleteAndBalanced": every_current_target_is_complete_and_balanced,
    "EveryGrownTopicBumpsTheEpoch": every_grown_topic_bumps_the_epoch,
    "EveryMembershipEndsForAReason": every_membership_ends_for_a_reason,
    "ARebalanceTimerFencesOnlyARevokingMember": a_rebalance_timer_fences_only_a_revoking_member,
    "EveryReplacementStartsAtZero": every_replacement_starts_at_zero,
    "EveryUnreleasedMemberWaitsForAnother": every_unreleased_member_waits_for_another,
    "EveryReplacedMemberIsFenced": every_replaced_member_is_fenced,
    "NoAnswerOvertakesAnOpenBatch": no_answer_overtakes_an_open_batch,
    # INV-KIP-03
    "EpochsAreOrdered": _of_hard("EpochsAreOrdered", _epochs_are_ordered),
    "NoEpochDecreases": no_epoch_decreases,
    "NoMemberIsBetweenEpochs": no_member_is_between_epochs,
    "TheFirstMemberNeedNotWait": the_first_member_need_not_wait,
    # INV-KIP-16
    "NoAssignmentEpochIsNewerThanItsMember": _of_members(
        "NoAssignmentEpochIsNewerThanItsMember", _assignment_epochs_are_reached, also_away=True
    ),
    # INV-KIP-02
    "NoPartitionIsBothAssignedAndRevoked": _of_members(
        "NoPartitionIsBothAssignedAndRevoked",
        lambda _, __, member: not names(member.assigned) & names(member.revoking),
        also_away=True,
    ),
    # INV-KIP-06
    "EveryReconciledMemberHasItsTarget": _of_members("EveryReconciledMemberHasItsTarget", _has_its_target),
    # INV-KIP-07
    "AMemberIsUnrevokedIffItHasToRevoke": _of_members(
        "AMemberIsUnrevokedIffItHasToRevoke",
        lambda _, __, member: (member.state == "UNREVOKED") == bool(member.revoking),
    ),
    # INV-KIP-14
    "EveryInstanceMapsToItsMember": _of_hard("EveryInstanceMapsToItsMember", _every_instance_maps_to_its_member),
    # M-TMR-01
    "EveryMemberHasASessionTimer": _of_group(
        "EveryMemberHasASessionTimer", lambda group: group.session_timers == {name for name, _ in group.hard.members}
    ),
    # M-TMR-02, LIV-08
    "EveryRevokingMemberHasARebalanceTimer": _of_group("EveryRevokingMemberHasARebalanceTimer", _unrevoked_have_timers),
    # M-TMR-04
    "OnlyRevokingMembersHaveARebalanceTimer": _of_group(
        "OnlyRevokingMembersHaveARebalanceTimer", _only_unrevoked_have_timers
    ),
    "AStaleHeartbeatChangesNothing": a_stale_heartbeat_changes_nothing,
    "EveryAnsweredEpochIsReplicated": every_answered_epoch_is_replicated,
    "EveryChangedAssignmentIsAnswered": every_changed_assignment_is_answered,
    # M-FENCE-02, M-STATIC-13
    "NoJoiningMemberIsUnknown": _never_answered("NoJoiningMemberIsUnknown", "UNKNOWN_MEMBER_ID", _is_join),
    # M-FENCE-07
    "NoJoiningMemberIsFenced": _never_answered("NoJoiningMemberIsFenced", "FENCED_MEMBER_EPOCH", _is_join),
    # M-STATIC-02
    "NoStaticMemberBlocksItself": _never_answered(
        "NoStaticMemberBlocksItself", "UNRELEASED_INSTANCE_ID", _holds_the_instance
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
