"""The promises of the closed mixed group about its steps: conversions, and the answers to requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from fencepost.protocol.events import TimerKind

from ...classic.state import Group
from ...consumer.state import ConsumerGroup, Member
from ...explore.interface import Invariant, Label, StepInvariant
from ...machines import C_UNREVOKED, EMPTY, PREPARING, STABLE
from ..consumer.state import Heartbeat
from ..consumer.state import Reply as ConsumerReply
from ..gather import Part
from ..steps import SESSION_TIMER_FIRES, is_late
from ..values import (
    JoinReply,
    JoinRequest,
    LeaveRequest,
    Partitions,
    SyncReply,
    SyncRequest,
    decode_metadata,
    decode_partitions,
)
from .closed import GROUP, MixedSystem
from .machine import Memory, blocked
from .properties import (
    AnyGroup,
    Property,
    can_commit,
    held,
    holding,
    ids,
    is_replaced,
    present,
    target_partitions,
)
from .state import Endpoint, Process, Request

#: The steps in which the coordinator handles a request of a member.
HANDLES: Final = frozenset(
    {
        "CoordinatorHandlesJoin",
        "CoordinatorHandlesSync",
        "CoordinatorHandlesHeartbeat",
        "CoordinatorHandlesLeave",
    }
)

#: A promise about a conversion: the system, the group before it and after it.
Conversion = Callable[[MixedSystem, Any, Any], bool]


def is_upgrade(before: AnyGroup, after: AnyGroup) -> bool:
    """Return whether a group with members becomes a consumer group (X-UP-01)."""
    return isinstance(before, Group) and bool(before.members) and isinstance(after, ConsumerGroup)


def is_downgrade(before: AnyGroup, after: AnyGroup) -> bool:
    """Return whether a group with members becomes a classic group (X-DOWN-01)."""
    return isinstance(before, ConsumerGroup) and bool(before.members) and isinstance(after, Group)


def epoch_of(group: AnyGroup) -> int:
    return group.generation if isinstance(group, Group) else group.epoch


def _of_conversions(name: str, kinds: Iterable[Callable[[AnyGroup, AnyGroup], bool]], promise: Conversion) -> Property:
    kinds = tuple(kinds)

    def parts(system: MixedSystem) -> Iterable[Part]:
        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            (old,), (new,) = before, after
            return not any(kind(old, new) for kind in kinds) or promise(system, old, new)

        return (StepInvariant(name, (system.group,), holds),)

    return parts


def _keeps_members(_: MixedSystem, before: Group, after: ConsumerGroup) -> bool:
    """An upgrade keeps every member and what it owns (INV-CONV-01, X-UP-05). A replaced member keeps its instance id
    only (X-UP-13)."""
    given = {member.member_id: decode_partitions(member.assignment) for member in before.members}
    claims = {member.member_id: decode_metadata(member.protocols[0].metadata) for member in before.members}

    def belongs_to_another(partition: str, member_id: str) -> bool:
        """Return whether another member is assigned the partition, or claims it with a generation that is not older."""
        return any(
            partition in given[name]
            or (partition in claims[name].owned and claims[name].generation >= claims[member_id].generation)
            for name in given.keys() - {member_id}
        )

    def is_brought(member_id: str, partitions: Partitions) -> bool:
        """Return whether the partitions are its assignment and its claims: X-UP-05, written again."""
        may = given[member_id] | claims[member_id].owned
        missing = may - partitions
        return given[member_id] <= partitions <= may and all(belongs_to_another(each, member_id) for each in missing)

    def kept(member_id: str) -> bool:
        old = next(member for member in before.members if member.member_id == member_id)
        new = after.member(member_id)
        if new is not None and new.classic is not None:
            same = (new.instance, new.classic.supported_protocols) == (old.instance, old.protocols)
            return same and is_brought(member_id, holding(new))
        return old.instance is not None and after.held_by(old.instance) not in (None, member_id)

    return all(kept(member.member_id) for member in before.members)


def _keeps_others(_: MixedSystem, before: ConsumerGroup, after: Group) -> bool:
    """In a downgrade one member goes or is replaced; the others stay with what they hold (INV-CONV-01, X-DOWN-04)."""
    known, stay = present(before), {member.member_id: member for member in after.members}
    return len(known.keys() - stay.keys()) == 1 and all(
        stay[name].instance == known[name].instance
        and (classic := known[name].classic) is not None
        and stay[name].protocols == classic.supported_protocols
        and decode_partitions(stay[name].assignment) == holding(known[name])
        for name in known.keys() & stay.keys()
    )


def _is_allowed(system: MixedSystem, before: AnyGroup, _: AnyGroup) -> bool:
    """The policy allows the conversion (X-POL-01…04)."""
    policy = system.config.policy
    return policy.upgrades if isinstance(before, Group) else policy.downgrades


def no_stable_downgrade_owes_partitions(system: MixedSystem) -> Iterable[Part]:
    """A classic group that is Stable at once asks no member to rejoin, so every member must have its target
    (X-DOWN-22)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (old, _process), (new, process) = before, after
        client = process.classic
        if not is_downgrade(old, new) or new.state != STABLE or client.state != "stable":
            return True
        known = {member.member_id for member in new.members}
        in_time = client.member_id in known and client.generation == new.generation
        return not in_time or client.owned == target_partitions(old.target_of(client.member_id))

    for view in system.processes:
        yield StepInvariant("NoStableDowngradeOwesPartitions", (system.group, view), holds)


# ---- answers -------------------------------------------------------------------------------------------------------


def _new(before: Endpoint, after: Endpoint) -> frozenset[Any]:
    return after.replies - before.replies


def every_sync_returns_the_current_assignment(system: MixedSystem) -> Iterable[Part]:
    """SyncGroup returns to a classic member what it holds (X-SYNC-06)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        group, endpoint = before
        sent = [each for each in _new(endpoint, after[1]) if isinstance(each, SyncReply) and each.error == "NONE"]
        member = present(group).get(endpoint.classic.member_id)
        return isinstance(group, Group) or all(
            member is not None and reply.assignment == held(member.assigned) for reply in sent
        )

    for endpoint in system.endpoints:
        yield StepInvariant("EverySyncReturnsTheCurrentAssignment", (system.group, endpoint), holds)


def no_lagging_member_is_synced(system: MixedSystem) -> Iterable[Part]:
    """SyncGroup returns nothing to a member that lags, except what it has to revoke (X-SYNC-05)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        memory, endpoint = before
        group = memory.group
        sent = [each for each in _new(endpoint, after[1]) if isinstance(each, SyncReply) and each.error == "NONE"]
        if not sent or isinstance(group, Group):
            return True
        member = present(group).get(endpoint.classic.member_id)
        is_due = group.assignment_epoch < group.epoch and not blocked(memory)
        return member is not None and (
            member.state == C_UNREVOKED or (member.epoch == group.assignment_epoch and not is_due)
        )

    for endpoint in system.endpoints:
        yield StepInvariant("NoLaggingMemberIsSynced", (GROUP, endpoint), holds, frozenset({"CoordinatorHandlesSync"}))


def every_member_asked_to_rejoin_has_a_join_timer(system: MixedSystem) -> Iterable[Part]:
    """A classic member that is asked to rejoin, by the answer to a SyncGroup or a Heartbeat, has the timer that ends
    the wait for it (X-TMR-02)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (memory, endpoint), (memory2, lane2) = before, after
        client = endpoint.classic
        synced = any(
            isinstance(each, SyncReply) and each.error == "REBALANCE_IN_PROGRESS" for each in _new(endpoint, lane2)
        )
        heartbeat = client.state == "stable" and lane2.classic == client._replace(state="unjoined")
        if isinstance(memory.group, Group) or not (synced or heartbeat):
            return True
        return client.member_id in ids(memory2, TimerKind.CONSUMER_JOIN)

    for endpoint in system.endpoints:
        yield StepInvariant("EveryMemberAskedToRejoinHasAJoinTimer", (GROUP, endpoint), holds, changed=(endpoint,))


def every_member_asked_to_sync_has_a_sync_timer(system: MixedSystem) -> Iterable[Part]:
    """A classic member whose JoinGroup is answered has the timer that ends the wait for its SyncGroup (X-TMR-03)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        joined = [each for each in _new(before[1], after[1]) if isinstance(each, JoinReply) and each.error == "NONE"]
        memory = after[0]
        return isinstance(memory.group, Group) or all(
            reply.member_id in ids(memory, TimerKind.CONSUMER_SYNC) for reply in joined
        )

    for endpoint in system.endpoints:
        yield StepInvariant("EveryMemberAskedToSyncHasASyncTimer", (GROUP, endpoint), holds, changed=(endpoint,))


def every_replaced_member_is_fenced(system: MixedSystem) -> Iterable[Part]:
    """No request of a replaced member succeeds, whatever the API, the protocol and the kind of group, and the answer
    ends the old process (INV-FENCE-01, X-JOIN-08, X-SYNC-01, X-HB-01, M-STATIC-05). A consumer process may join: it may
    replace the other in turn. A classic group does not know heartbeats of the consumer protocol (M-VAL-24)."""
    promise = "EveryReplacedMemberIsFenced"
    for number, endpoint in enumerate(system.endpoints):
        instance = system.config.instance(number)
        if not instance:
            continue

        def must_be_refused(group: AnyGroup, request: Request, instance: str = instance) -> bool:
            joins = isinstance(request, Heartbeat) and request.epoch == 0
            exempt = joins or isinstance(request, LeaveRequest)
            return not exempt and is_replaced(group, request.member_id, instance)

        def is_refused(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            (memory, endpoint), (memory2, lane2) = before, after
            handled = endpoint.requests - lane2.requests
            if not any(must_be_refused(memory.group, request) for request in handled):
                return True
            allowed = {"FENCED_INSTANCE_ID", *(["GROUP_ID_NOT_FOUND"] if isinstance(memory.group, Group) else [])}
            return bool(memory == memory2 and {reply.error for reply in _new(endpoint, lane2)} <= allowed)

        def is_stopped(
            label: Label,
            before: tuple[Any, ...],
            after: tuple[Any, ...],
            number: int = number,
            instance: str = instance,
        ) -> bool:
            (memory, endpoint), (memory2, lane2) = before, after
            if label[1] != system.config.clients[number]:
                return True
            replaced = is_replaced(memory.group, endpoint.classic.member_id, instance)
            return not replaced or bool(memory == memory2 and lane2.classic.state == "stopped")

        def may_not_commit(group: AnyGroup, process: Process, number: int = number, instance: str = instance) -> bool:
            return not is_replaced(group, process.member_id, instance) or not any(
                can_commit(system, group, number, process, partition) for partition in process.owned
            )

        yield StepInvariant(promise, (GROUP, endpoint), is_refused, HANDLES, (endpoint,))
        yield StepInvariant(promise, (GROUP, endpoint), is_stopped, frozenset({"ClientHeartbeats"}))
        yield Invariant(promise, (system.group, system.processes[number]), may_not_commit)


REBALANCE_TIMER_FIRES: Final = frozenset({"RebalanceTimerFires", "RebalanceTimerFiresEarly"})
MEMBER_JOIN_TIMER_FIRES: Final = frozenset({"MemberJoinTimerFires", "MemberJoinTimerFiresEarly"})
MEMBER_SYNC_TIMER_FIRES: Final = frozenset({"MemberSyncTimerFires", "MemberSyncTimerFiresEarly"})


def _ended(before: AnyGroup, after: AnyGroup) -> list[Any]:
    """Return the members, of either protocol, whose membership the step ended or suspended."""
    stay = {member.member_id: member for member in after.members}
    return [
        member
        for member in before.members
        if member.member_id not in stay or (_is_present(member) and not _is_present(stay[member.member_id]))
    ]


def _is_present(member: Any) -> bool:
    """Return whether the member is not away; one of a classic group never is."""
    return not isinstance(member, Member) or member.epoch >= 0


def _is_late_in_consumer_group(action: str, member: Member, asked_to_rejoin: bool) -> bool:
    """Return whether the timer's reason applies to the member of a consumer group: it was silent (M-TMR-01), has not
    revoked (M-TMR-02), or is a classic member that has not joined again (X-TMR-02) or has not synced (X-TMR-03)."""
    if action in REBALANCE_TIMER_FIRES:
        return member.epoch >= 0 and member.state == C_UNREVOKED
    if action in MEMBER_JOIN_TIMER_FIRES:
        return member.classic is not None and asked_to_rejoin
    return action in SESSION_TIMER_FIRES or (action in MEMBER_SYNC_TIMER_FIRES and member.classic is not None)


def _takes_the_place(group: AnyGroup, request: Request, member: Any) -> bool:
    """Return whether the request lets its sender take the place of a member with its instance id. A consumer process
    must wait until a member of the same protocol is away (M-STATIC-02, 03); otherwise it need not (X-JOIN-08,
    X-UP-13)."""
    if isinstance(request, JoinRequest):
        return not request.member_id
    if not isinstance(request, Heartbeat) or request.epoch != 0:
        return False
    return isinstance(group, Group) or member.classic is not None or not _is_present(member)


def every_membership_ends_for_a_reason(system: MixedSystem) -> Iterable[Part]:
    """A membership ends, or is suspended, by its owner, or by a timer whose reason applies to the member, whatever the
    conversion in the same step. A live static member of the consumer protocol is not displaced by another one. A
    fail-over loses only members of a classic group whose assignment is not yet stored (F-SURV-02)."""
    promise = "EveryMembershipEndsForAReason"

    def has_reason(label: Label, memory: Memory, member: Any) -> bool:
        action, group = label[0], memory.group
        if len(label) > 1 and label[1] != member.member_id:
            return False
        if isinstance(group, Group):
            return action == "CoordinatorFailsOver" or is_late(action, group, member)
        asked = system.coordinator.asks_to_rejoin(memory, member.member_id, member.epoch)
        return _is_late_in_consumer_group(action, member, member.classic is not None and asked)

    def by_itself(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        handles = label[0].startswith("CoordinatorHandles")
        return handles or all(
            has_reason(label, before[0], member) for member in _ended(before[0].group, after[0].group)
        )

    yield StepInvariant(promise, (GROUP,), by_itself, changed=(system.group,))
    for number, endpoint in enumerate(system.endpoints):

        def by_request(label: Label, before: tuple[Any, ...], after: tuple[Any, ...], number: int = number) -> bool:
            if label[1] != system.config.clients[number]:
                return True
            instance = system.config.instance(number)
            group, handled = before[0], before[1].requests - after[1].requests
            leaves = {
                request.member_id
                for request in handled
                if isinstance(request, LeaveRequest) or (isinstance(request, Heartbeat) and request.epoch < 0)
            }
            return all(
                member.member_id in leaves
                or (
                    bool(instance)
                    and member.instance == instance
                    and any(_takes_the_place(group, request, member) for request in handled)
                )
                for member in _ended(group, after[0])
            )

        handles = HANDLES | {"CoordinatorHandlesLeaveGroup"}
        yield StepInvariant(promise, (system.group, endpoint), by_request, handles, (system.group,))


def every_join_answer_has_the_current_generation(system: MixedSystem) -> Iterable[Part]:
    """The generation in a JoinGroup answer is one with which a SyncGroup would pass now (X-JOIN-15, X-DOWN-23)."""

    def fits(group: AnyGroup, reply: JoinReply) -> bool:
        if isinstance(group, Group):
            return reply.generation == group.generation
        member = group.member(reply.member_id)
        return member is not None and reply.generation == member.epoch

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        sent = [each for each in _new(before[1], after[1]) if isinstance(each, JoinReply) and each.error == "NONE"]
        return all(fits(after[0], reply) for reply in sent)

    for endpoint in system.endpoints:
        yield StepInvariant("EveryJoinAnswerHasTheCurrentGeneration", (system.group, endpoint), holds)


def no_rejected_join_affects_other_clients(system: MixedSystem) -> Iterable[Part]:
    """A refused join affects no other client (X-UP-03 fixed)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        new = [reply for endpoints in zip(before[1:], after[1:], strict=True) for reply in _new(*endpoints)]
        refused = any(isinstance(reply, ConsumerReply) and reply.error != "NONE" for reply in new)
        return not refused or (len(new) == 1 and before[0] == after[0])

    handles_heartbeat = frozenset({"CoordinatorHandlesHeartbeat"})
    yield StepInvariant("NoRejectedJoinAffectsOtherClients", (GROUP, *system.endpoints), holds, handles_heartbeat)


def is_stale(group: ConsumerGroup, request: SyncRequest) -> bool:
    """Return whether the coordinator must refuse the SyncGroup: X-SYNC-01 to 03, written again from the rules."""
    member = group.member(request.member_id)
    return member is None or member.classic is None or request.generation != member.epoch


def a_stale_sync_changes_nothing(system: MixedSystem) -> Iterable[Part]:
    """A stale SyncGroup changes nothing and is refused (X-SYNC-01…03, INV-KIP-17)."""

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (memory, endpoint), (memory2, lane2) = before, after
        group = memory.group
        gone = [each for each in endpoint.requests - lane2.requests if isinstance(each, SyncRequest)]
        if not isinstance(group, ConsumerGroup) or not group.members or not any(is_stale(group, each) for each in gone):
            return True
        return memory == memory2 and all(reply.error != "NONE" for reply in _new(endpoint, lane2))

    for endpoint in system.endpoints:
        yield StepInvariant("AStaleSyncChangesNothing", (GROUP, endpoint), holds)


STEPS: Final[dict[str, Property]] = {
    # Generation and group epoch are one count (INV-CONV-01, X-UP-04, X-DOWN-03).
    "NoConversionLowersTheEpoch": _of_conversions(
        "NoConversionLowersTheEpoch",
        (is_upgrade, is_downgrade),
        lambda _, before, after: epoch_of(after) >= epoch_of(before),
    ),
    # An upgrade bumps (X-UP-15 fixed).
    "EveryUpgradeBumpsTheEpoch": _of_conversions(
        "EveryUpgradeBumpsTheEpoch", (is_upgrade,), lambda _, before, after: epoch_of(after) > epoch_of(before)
    ),
    "EveryUpgradeKeepsAllMembers": _of_conversions("EveryUpgradeKeepsAllMembers", (is_upgrade,), _keeps_members),
    "EveryDowngradeKeepsTheOtherMembers": _of_conversions(
        "EveryDowngradeKeepsTheOtherMembers", (is_downgrade,), _keeps_others
    ),
    "NoStableDowngradeOwesPartitions": no_stable_downgrade_owes_partitions,
    "EveryConversionIsAllowed": _of_conversions("EveryConversionIsAllowed", (is_upgrade, is_downgrade), _is_allowed),
    "EverySyncReturnsTheCurrentAssignment": every_sync_returns_the_current_assignment,
    "NoLaggingMemberIsSynced": no_lagging_member_is_synced,
    # A group has a protocol when it is upgraded: its first rebalance is over (X-UP-07).
    "NoGroupIsUpgradedInItsFirstRebalance": _of_conversions(
        "NoGroupIsUpgradedInItsFirstRebalance",
        (is_upgrade,),
        lambda _, before, __: not (before.state == PREPARING and before.previous == EMPTY),
    ),
    "EveryMemberAskedToRejoinHasAJoinTimer": every_member_asked_to_rejoin_has_a_join_timer,
    "EveryMemberAskedToSyncHasASyncTimer": every_member_asked_to_sync_has_a_sync_timer,
    "EveryReplacedMemberIsFenced": every_replaced_member_is_fenced,
    "EveryMembershipEndsForAReason": every_membership_ends_for_a_reason,
    "EveryJoinAnswerHasTheCurrentGeneration": every_join_answer_has_the_current_generation,
    "NoRejectedJoinAffectsOtherClients": no_rejected_join_affects_other_clients,
    "AStaleSyncChangesNothing": a_stale_sync_changes_nothing,
}
