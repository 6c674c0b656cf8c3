"""One guard removed at a time: the overrides of ``spec/MCMixedMutants.tla``, applied to the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Final

from fencepost.protocol.records import GroupMetadataValue
from fencepost.protocol.settings import MigrationPolicy

from ...classic.draft import Draft
from ...consumer import group as machine
from ...consumer import leave as leaving
from ...consumer import work as working
from ...consumer.group_step import GroupStep
from ...consumer.state import ConsumerGroup, Partition
from ...mixed import downgrade, requests, upgrade
from ...mixed import join as joining
from ...mixed.embedded import Wanted
from ...offsets import checks
from ...offsets.checks import Checked, Committer
from ...variant import Variant
from ..values import SyncReply, SyncRequest
from . import client
from .coordinator import Coordinator, Done
from .machine import Memory
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
}

#: The replacement of ``ExpectsAnswer`` here; it has the same name in the other closed systems.
EXPECTS_ANSWER_FOREVER: Final[Patches] = [(client, "expects_answer", lambda endpoint, is_parked: True)]
