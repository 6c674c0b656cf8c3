"""One guard removed at a time: the overrides of ``spec/MCMixedMutants.tla``, applied to the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Final

from fencepost.protocol.consumer_records import ClassicMemberMetadata
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupResponse
from fencepost.protocol.records import GroupMetadataValue
from fencepost.protocol.settings import MigrationPolicy

from ...classic.draft import Draft
from ...consumer import handle as machine
from ...consumer import leave as leaving
from ...consumer import work as working
from ...consumer.group_step import GroupStep
from ...consumer.state import SYNC, ConsumerGroup, Member, Partition
from ...mixed import downgrade, requests, upgrade
from ...mixed import join as joining
from ...mixed.embedded import Wanted
from ...offsets import checks
from ...offsets.checks import Checked, Committer
from ...variant import Variant
from ..consumer.state import Heartbeat
from ..values import SyncReply, SyncRequest
from . import closed
from . import machine as system_machine
from .coordinator import Coordinator, Done
from .machine import Log, Machine, Memory
from .properties import target_partitions
from .state import Request

Patches = list[tuple[Any, str, Any]]


def _patch(owner: Any, name: str, replacement: Callable[..., Any]) -> Callable[[], Patches]:
    return lambda: [(owner, name, replacement)]


def _sync_returns_target() -> Patches:
    """SyncGroup returns the target, even if others hold parts of it (X-SYNC-06)."""
    right = Coordinator.get

    def get(self: Coordinator, memory: Memory, client: int, request: Request, new_id: str) -> Iterator[Done]:
        group = memory.group
        for done in right(self, memory, client, request, new_id):
            if isinstance(group, ConsumerGroup) and isinstance(request, SyncRequest):
                meant = SyncReply("SyncGroup", "NONE", target_partitions(group.target_of(request.member_id)))
                yield done._replace(
                    replies=tuple((to, meant if reply.error == "NONE" else reply) for to, reply in done.replies)
                )
            else:
                yield done

    return [(Coordinator, "get", get)]


def _nothing_reported_owned() -> Patches:
    """Every join counts as that of an eager member (X-JOIN-11)."""
    right = joining.confirmed_partitions

    def confirmed_partitions(t: GroupStep, member_id: str, wanted: Wanted) -> frozenset[Partition] | None:
        return None if right(t, member_id, wanted) is None else frozenset()

    return [(joining, "confirmed_partitions", confirmed_partitions)]


def _any_generation() -> Patches:
    """The generation is not checked (X-SYNC-03, X-HB-01)."""
    right = requests.validate_generation
    return [(requests, "validate_generation", lambda found, generation: right(found, found.epoch))]


def _converted_without_partitions() -> Patches:
    """A member is converted without its partitions (X-UP-05)."""
    right = upgrade._converted
    return [(upgrade, "_converted", lambda *asked: right(*asked)._replace(assigned=(), claims=frozenset()))]


def _no_timers() -> Patches:
    """An upgrade starts no session timers (X-UP-08)."""

    def upgraded(t: GroupStep, draft: Draft) -> None:
        upgrade.upgrade(t, draft)
        t.armed.clear()

    return [(working, "upgrade", upgraded)]


def _downgrades_with(change: Callable[[GroupMetadataValue], GroupMetadataValue]) -> Callable[[], Patches]:
    """Change the record, and so the group, of a downgrade when members leave."""

    def patches() -> Patches:
        def going(t: GroupStep, group: ConsumerGroup, gone: Collection[str], joiner: Any) -> None:
            downgrade.downgrade(t, group, gone, joiner)
            record = t.records[-1]
            assert isinstance(record.value, GroupMetadataValue)
            assert t.classic is not None
            value = change(record.value)
            t.records[-1] = replace(record, value=value)
            given = {member.member_id: member.assignment for member in value.members}
            members = tuple(member._replace(assignment=given[member.member_id]) for member in t.classic.members)
            t.classic = t.classic._replace(generation=value.generation, members=members)

        return [(leaving, "downgrade", going)]

    return patches


def _without_assignments(value: GroupMetadataValue) -> GroupMetadataValue:
    """A member is converted without an assignment (X-DOWN-04)."""
    return replace(value, members=tuple(replace(member, assignment=b"") for member in value.members))


def _stays_stable() -> Patches:
    """The group stays Stable after a downgrade (X-DOWN-06)."""
    right = leaving.fence_members

    def fence_members(t: GroupStep, leavers: Any) -> None:
        right(t, leavers)
        t.rebalances = False

    return [(owner, "fence_members", fence_members) for owner in (leaving, machine, requests)]


def _always_may_downgrade() -> Patches:
    """The policy of downgrades is not asked (X-POL)."""

    def must_downgrade(t: GroupStep, leavers: Collection[str], *, joiners: int = 0) -> bool:
        settings = t.settings
        t.settings = replace(settings, group_consumer_migration_policy=MigrationPolicy.BIDIRECTIONAL)
        try:
            return downgrade.must_downgrade(t, leavers, joiners=joiners)
        finally:
            t.settings = settings

    return [(owner, "must_downgrade", must_downgrade) for owner in (leaving, joining)]


def _no_member_must_join_before_sync() -> Patches:
    """A lagging member is answered (X-SYNC-05)."""
    right = requests._sync

    def sync(groups: Any, step: GroupStep, *args: Any) -> None:
        variant = step.variant
        step.variant = replace(variant, mixed=replace(variant.mixed, is_behind=lambda step, found: False))
        try:
            right(groups, step, *args)
        finally:
            step.variant = variant

    return [(requests, "_sync", sync)]


def _every_group_has_a_protocol() -> Patches:
    """A group is upgraded in its first rebalance (X-UP-07)."""

    def upgraded(t: GroupStep, draft: Draft) -> None:
        if draft.protocol_name is None:
            draft.protocol_name = draft.select_protocol()
        upgrade.upgrade(t, draft)

    return [(working, "upgrade", upgraded)]


def _no_loaded_subscriptions() -> Patches:
    """A load forgets which members are classic (X-UP-05)."""
    right = Machine.load

    def load(self: Machine, log: Log, *, blocked: bool = False) -> Memory:
        memory = right(self, log, blocked=blocked)
        if not isinstance(memory.group, ConsumerGroup):
            return memory
        members = tuple(member._replace(classic=None) for member in memory.group.members)
        return memory._replace(group=memory.group._replace(members=members))

    return [(Machine, "load", load)]


def _no_sync_timer_is_set() -> Patches:
    """A member that has joined gets no sync timer (X-TMR-03)."""
    right = joining.join

    def join(*args: Any) -> joining.Joined:
        joined = right(*args)
        return joined._replace(timers={timer: at for timer, at in joined.timers.items() if timer.kind != SYNC})

    return [(requests, "join", join)]


def _classic_member_error_without_instance() -> Patches:
    """The instance id is not checked (X-SYNC-01, X-HB-01)."""
    right = requests.find_member
    return [
        (requests, "find_member", lambda group, member_id, instance, rule: right(group, member_id, None, rule)),
    ]


def _classic_member_error_of_any_member() -> Patches:
    """A member of the consumer protocol passes too (X-SYNC-02, X-HB-01)."""
    right = requests.validate_generation
    unknown = ClassicMemberMetadata(0, ())

    def validate_generation(found: Member, generation: int) -> ClassicMemberMetadata:
        return right(found if found.classic else found._replace(classic=unknown), generation)

    return [(requests, "validate_generation", validate_generation)]


def _mapping_stays() -> Patches:
    """An instance id stays mapped to the member that was replaced (M-STATIC-03)."""
    right = Coordinator.get

    def get(self: Coordinator, memory: Memory, client: int, request: Request, new_id: str) -> Iterator[Done]:
        before = {member.instance: member.member_id for member in memory.group.members if member.instance}
        for done in right(self, memory, client, request, new_id):
            group = done.memory.group
            if isinstance(group, ConsumerGroup) and isinstance(request, Heartbeat) and request.epoch == 0:
                statics = tuple((instance, before.get(instance, name)) for instance, name in group.statics)
                yield done._replace(memory=done.memory._replace(group=group._replace(statics=statics)))
            else:
                yield done

    return [(Coordinator, "get", get)]


def _no_rebalance_timer() -> Patches:
    """No rebalance timer is set (M-TMR-02)."""
    return [(GroupStep, "arm_rebalance", lambda self, member: None)]


def _parked_syncs_stay() -> Patches:
    """An upgrade answers parked JoinGroups only (X-UP-03)."""
    busy = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    def answer_parked_requests(draft: Draft) -> None:
        for member in list(draft.members.values()):
            draft.answer_join(member, busy)

    return [(working, "answer_parked_requests", answer_parked_requests)]


def _old_timers_stay() -> Patches:
    """Join and sync timers outlive a change of protocol (M-STATIC-10)."""
    right = system_machine._may_act

    def may_act(timer: Any, members: dict[str, bool]) -> bool:
        return timer[0] in system_machine.MEMBER_TIMERS or right(timer, members)

    return [(system_machine, "_may_act", may_act)]


def _upgraded_at_epoch_one() -> Patches:
    """An upgrade starts at epoch 1 (X-UP-04)."""

    def upgraded(t: GroupStep, draft: Draft) -> None:
        generation, draft.generation = draft.generation, 1
        try:
            upgrade.upgrade(t, draft)
        finally:
            draft.generation = generation

    return [(working, "upgrade", upgraded)]


def _any_epoch_may_commit() -> Patches:
    """Every member of a consumer group may commit (O-COMMIT-32)."""
    original = checks._consumer

    def checked(variant: Variant, group: ConsumerGroup, by: Committer) -> Checked:
        member = group.member(by.member_id)
        return original(variant, group, by if member is None else by._replace(epoch=member.epoch))

    return [(checks, "_consumer", checked)]


MIXED_MUTANTS: Final[dict[str, Callable[[], Patches]]] = {
    "SyncAssignment <- SyncReturnsTarget": _sync_returns_target,
    "ReportedOwned <- NothingReportedOwned": _nothing_reported_owned,
    "EpochMayCommit <- AnyEpochMayCommit": _any_epoch_may_commit,
    "EpochMayCommit <- OnlyCurrentEpochMayCommit": _patch(checks, "_held_since", lambda member, by: False),
    "ClassicMemberError <- AnyGeneration": _any_generation,
    "ConvertedPartitions <- ConvertedWithoutPartitions": _converted_without_partitions,
    "StartedSessionTimers <- NoTimers": _no_timers,
    "AnswerParkedRequests <- ParkedRequestsStay": _patch(working, "answer_parked_requests", lambda draft: None),
    "DowngradedEpoch <- StartsAtGenerationOne": _downgrades_with(lambda value: replace(value, generation=1)),
    "ClassicMemberOf <- ConvertedWithoutAssignment": _downgrades_with(_without_assignments),
    "RebalanceAfterDowngrade <- StaysStable": _stays_stable,
    "MayDowngrade <- AlwaysMayDowngrade": _always_may_downgrade,
    "MustJoinBeforeSync <- NoMemberMustJoinBeforeSync": _no_member_must_join_before_sync,
    "HasNoProtocol <- EveryGroupHasAProtocol": _every_group_has_a_protocol,
    "LoadedSubscriptions <- NoLoadedSubscriptions": _no_loaded_subscriptions,
    "WithJoinTimer <- NoTimerIsSet": _patch(requests, "arm_join_timer", lambda step, groups, found: None),
    "WithSyncTimer <- NoTimerIsSet": _no_sync_timer_is_set,
    "ClassicMemberError <- ClassicMemberErrorWithoutInstance": _classic_member_error_without_instance,
    "ClassicMemberError <- ClassicMemberErrorOfAnyMember": _classic_member_error_of_any_member,
    "Mapping <- MappingStays": _mapping_stays,
    "RebalanceTimers <- NoRebalanceTimer": _no_rebalance_timer,
    "AnswerParkedRequests <- ParkedSyncsStay": _parked_syncs_stay,
    "CanGetMore <- FreedPartitionsAreIgnored": _patch(requests, "_target_is_free", lambda step, found: False),
    "WithoutOldTimers <- OldTimersStay": _old_timers_stay,
    "UpgradedEpoch <- UpgradedAtEpochOne": _upgraded_at_epoch_one,
    "OwesPartitions <- NothingIsOwed": _patch(joining, "is_owed_partitions", lambda t, member: False),
}

#: The replacement of ``ExpectsAnswer`` here; it has the same name in the other closed systems.
EXPECTS_ANSWER_FOREVER: Final[Patches] = [(closed, "expects_answer", lambda endpoint, is_parked: True)]
