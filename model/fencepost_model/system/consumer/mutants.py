"""One guard removed at a time: the overrides of ``spec/MCConsumerMutants.tla``, applied to the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.events import Topic

from ... import machines
from ...consumer import ConsumerHeartbeat, Member, Successor
from ...consumer import handle as machine
from ...consumer import heartbeat as heartbeats
from ...consumer import leave as leaving
from ...consumer.found import Found
from ...consumer.group_step import GroupStep
from ...consumer.reconcile import Context, Goal, reconcile
from ...consumer.rows import without_epochs
from ...consumer.state import REBALANCE, Timer
from ...offsets import checks
from . import closed
from .coordinator import Coordinator, Result
from .state import Group, pairs

Patches = list[tuple[Any, str, Any]]
Reconcile = Callable[[Context, Member, Goal], Member]


def _patch(owner: Any, name: str, replacement: Callable[..., Any]) -> Callable[[], Patches]:
    return lambda: [(owner, name, replacement)]


def _reconciles(change: Callable[[Reconcile, Context, Member, Goal], Member]) -> Callable[[], Patches]:
    """Change reconciliation (7.6); ``change`` gets the right one."""

    def patches() -> Patches:
        return [(heartbeats, "reconcile", lambda context, member, goal: change(reconcile, context, member, goal))]

    return patches


def _takes_held_partitions(right: Reconcile, context: Context, member: Member, goal: Goal) -> Member:
    return right(context, member, goal._replace(epochs={}))


def _never_must_revoke(right: Reconcile, context: Context, member: Member, goal: Goal) -> Member:
    return right(context, member, goal._replace(owned=frozenset()))


def _always_confirms(right: Reconcile, context: Context, member: Member, goal: Goal) -> Member:
    if member.state == machines.C_UNREVOKED:
        member = member._replace(state=machines.C_UNRELEASED)  # advances whatever is reported (M-REC-05)
    return right(context, member, goal)


def _keeps_revoked_partitions(right: Reconcile, context: Context, member: Member, goal: Goal) -> Member:
    after = right(context, member, goal)
    return after._replace(assigned=tuple(sorted({*after.assigned, *member.assigned})))


def _revokes_forever(right: Reconcile, context: Context, member: Member, goal: Goal) -> Member:
    after = right(context, member, goal)
    return after if after.state == machines.C_UNREVOKED else after._replace(revoking=member.revoking)


def _at_group_epoch(change: Callable[[Reconcile, int, Context, Member, Goal], Member]) -> Callable[[], Patches]:
    """Change a reconciliation that knows the group epoch, which it must not use."""

    def patches() -> Patches:
        bump = heartbeats.maybe_bump_group_epoch
        epoch = 0

        def maybe_bump_group_epoch(t: GroupStep, members: tuple[Member, ...], bumps: bool) -> tuple[int, bool]:
            nonlocal epoch
            epoch, refreshed = bump(t, members, bumps)
            return epoch, refreshed

        def reconciles(context: Context, member: Member, goal: Goal) -> Member:
            return change(reconcile, epoch, context, member, goal)

        return [(heartbeats, "maybe_bump_group_epoch", maybe_bump_group_epoch), (heartbeats, "reconcile", reconciles)]

    return patches


def _group_epoch_as_target(right: Reconcile, epoch: int, context: Context, member: Member, goal: Goal) -> Member:
    return right(context, member, goal._replace(epoch=epoch))


def _granted_at_group_epoch(right: Reconcile, epoch: int, context: Context, member: Member, goal: Goal) -> Member:
    after = right(context, member, goal)
    had = {(topic, number) for topic, number, _ in member.assigned}
    granted = [(t, n, e if (t, n) in had else epoch) for t, n, e in after.assigned]
    return after._replace(assigned=tuple(granted))


def _includes_assignment_if_full() -> Patches:
    """Answer only full requests with the assignment (M-RSP-01)."""

    def heartbeat(t: GroupStep, request: ConsumerHeartbeat) -> ConsumerGroupHeartbeatResponse:
        answer = heartbeats.heartbeat(t, request)
        return answer if request.body.subscribed_topic_names is not None else replace(answer, assignment=None)

    return [(machine, "heartbeat", heartbeat)]


def _expires_without_bump() -> Patches:
    """Remove a member without a bump (M-EPOCH-04)."""
    right = Coordinator.expire_session

    def expire(self: Coordinator, group: Group, member_id: str, existing: int) -> Result:
        result = right(self, group, member_id, existing)
        before = group.hard
        silent = result.group.hard._replace(group_epoch=before.group_epoch, assignment_epoch=before.assignment_epoch)
        return result._replace(group=result.group._replace(hard=silent, blocked=group.blocked))

    return [(Coordinator, "expire_session", expire)]


def _only_free_partitions(right: Reconcile, context: Context, member: Member, goal: Goal) -> Member:
    """A member cannot get back what it has just given up (M-REC-21)."""
    has_revoked = goal.owned is not None and goal.owned.isdisjoint(without_epochs(member.revoking))
    return right(context, member._replace(revoking=()) if has_revoked else member, goal)


def _new_member_does_not_bump() -> Patches:
    """A new member does not bump the epoch (M-HB-03)."""
    right = heartbeats.maybe_bump_group_epoch
    return [(heartbeats, "maybe_bump_group_epoch", lambda t, members, bump: right(t, members, False))]


def _grown_topic_does_not_bump() -> Patches:
    """A grown topic does not bump the epoch (M-HB-04)."""
    right = heartbeats.maybe_bump_group_epoch

    def maybe_bump_group_epoch(t: GroupStep, members: tuple[Member, ...], bump: bool) -> tuple[int, bool]:
        variant = t.variant
        t.variant = replace(variant, consumer=replace(variant.consumer, has_metadata=lambda t, topics: True))
        try:
            return right(t, members, bump)
        finally:
            t.variant = variant

    return [(heartbeats, "maybe_bump_group_epoch", maybe_bump_group_epoch)]


def _present_may_be_replaced() -> Patches:
    """Another process takes the place of a member that is present (M-STATIC-02)."""
    right = heartbeats.find_member

    def find_member(t: GroupStep, body: ConsumerGroupHeartbeatRequest, member_id: str) -> Found:
        mapped = None if body.instance_id is None else t.group.held_by(body.instance_id)
        holder = None if mapped in (None, member_id) else t.group.member(mapped)
        if body.member_epoch == 0 and holder is not None:
            return heartbeats.replace_member(t, holder, member_id)
        return right(t, body, member_id)

    return [(heartbeats, "find_member", find_member)]


def _any_process_may_leave() -> Patches:
    """A process may leave for the one that replaced it (M-LEAVE-02)."""
    right = leaving.find_leaving_member

    def find_leaving_member(t: GroupStep, member_id: str, instance: str | None) -> Member:
        mapped = None if instance is None else t.group.held_by(instance)
        return right(t, mapped or member_id, instance)

    return [(leaving, "find_leaving_member", find_leaving_member)]


def _rebalance_timers_stay() -> Patches:
    """The rebalance timer is not cancelled when the member has revoked (M-TMR-04)."""
    right = heartbeats.bump_and_reconcile

    def bump_and_reconcile(t: GroupStep, *args: Any, **options: Any) -> tuple[Member, bool]:
        after = right(t, *args, **options)
        timer = Timer(REBALANCE, after[0].member_id)
        if t.armed.get(timer, 0) is None:
            del t.armed[timer]
        return after

    return [(heartbeats, "bump_and_reconcile", bump_and_reconcile)]


def _any_previous_epoch_is_current() -> Patches:
    """The previous epoch passes, whatever the request owns (M-FENCE-04)."""
    right = heartbeats.validate_member_epoch

    def validate_member_epoch(t: GroupStep, member: Member, body: ConsumerGroupHeartbeatRequest) -> None:
        if body.member_epoch != member.previous:
            right(t, member, body)

    return [(heartbeats, "validate_member_epoch", validate_member_epoch)]


def _revoking_may_always_commit() -> Patches:
    """Partitions to be revoked have no assignment epochs (M-PE-08)."""
    right = checks._held_since

    def held_since(member: Member, by: checks.Committer) -> bool:
        unbounded = tuple((topic, number, 0) for topic, number, _ in member.revoking)
        return right(member._replace(revoking=unbounded), by)

    return [(checks, "_held_since", held_since)]


def _keeps_its_epoch() -> Patches:
    """A replacement keeps the epoch of the member that is away (M-STATIC-03)."""
    right = heartbeats.replace_member

    def replace_member(t: GroupStep, old: Member, member_id: str) -> Found:
        found = right(t, old, member_id)
        return found._replace(member=found.member._replace(epoch=old.epoch))

    return [(heartbeats, "replace_member", replace_member)]


def _instance_stays_mapped() -> Patches:
    """The instance id of a member that is gone stays mapped (M-LEAVE-04)."""
    right = Coordinator._after

    def after(self: Coordinator, before: Group, found: Successor) -> Group:
        group = right(self, before, found)
        mapped = {**dict(before.hard.instances), **dict(group.hard.instances)}
        return group._replace(hard=group.hard._replace(instances=pairs(mapped)))

    return [(Coordinator, "_after", after)]


def _replaced_consumer_stays() -> Patches:
    """A replaced member stays (M-STATIC-03)."""
    right = heartbeats.replace_member

    def replace_member(t: GroupStep, old: Member, member_id: str) -> Found:
        found = right(t, old, member_id)
        t.records = [record for record in t.records if record.value is not None]
        return found

    return [(heartbeats, "replace_member", replace_member)]


def _no_interval_begins() -> Patches:
    """No interval begins (M-TGT-08)."""
    right = GroupStep.write_target_epoch
    return [(GroupStep, "write_target_epoch", lambda self, epoch, timestamp: right(self, epoch, 0))]


def _answer_with_previous_epoch() -> Patches:
    """The epoch in the answer is that before the heartbeat (M-RSP-02)."""

    def heartbeat(t: GroupStep, request: ConsumerHeartbeat) -> ConsumerGroupHeartbeatResponse:
        before = t.group.member(request.body.member_id)
        answer = heartbeats.heartbeat(t, request)
        return replace(answer, member_epoch=before.epoch) if before is not None and before.epoch > 0 else answer

    return [(machine, "heartbeat", heartbeat)]


def _target_reached_keeps_epoch(right: Reconcile, context: Context, member: Member, goal: Goal) -> Member:
    """A member that has its target keeps its old epoch (M-REC-02)."""
    is_settled = member.state == machines.C_STABLE and member.epoch > 0
    has_target = {*without_epochs(member.assigned)} == {*goal.target}
    return member if is_settled and has_target else right(context, member, goal)


def _unlisted_partitions_are_released(right: Reconcile, context: Context, member: Member, goal: Goal) -> Member:
    """A heartbeat that does not list owned partitions confirms (M-REC-10, M-REC-18)."""
    lists_nothing = goal.owned is None and member.state != machines.C_UNREVOKED
    return right(context, member, goal._replace(owned=frozenset()) if lists_nothing else goal)


def _loaded_without_rebalance_timers() -> Patches:
    """A load sets no rebalance timers (M-TMR-02, F-LOAD-05)."""
    right = Coordinator.load
    return [(Coordinator, "load", lambda self, hard, blocked: right(self, hard, blocked)._replace(rebalance_timers=()))]


def _emptied_group_keeps_hash() -> Patches:
    """An emptied group keeps its hash (M-META-07)."""
    right = GroupStep.topics

    def topics(self: GroupStep, members: Iterable[Member]) -> tuple[Topic, ...]:
        return right(self, tuple(members) or self.group.members)

    return [(GroupStep, "topics", topics)]


CONSUMER_MUTANTS: Final[dict[str, Callable[[], Patches]]] = {
    "Obtainable <- TakesHeldPartitions": _reconciles(_takes_held_partitions),
    "MustRevoke <- NeverMustRevoke": _reconciles(_never_must_revoke),
    "Confirms <- AlwaysConfirms": _reconciles(_always_confirms),
    "Kept <- KeepsRevokedPartitions": _reconciles(_keeps_revoked_partitions),
    "StillRevoking <- RevokesForever": _reconciles(_revokes_forever),
    "TargetEpoch <- GroupEpochAsTarget": _at_group_epoch(_group_epoch_as_target),
    "GrantEpoch <- GrantedAtGroupEpoch": _at_group_epoch(_granted_at_group_epoch),
    "EpochVerdict <- AnyEpochIsCurrent": _patch(heartbeats, "validate_member_epoch", lambda t, member, body: None),
    "IncludesAssignment <- IncludesAssignmentIfFull": _includes_assignment_if_full,
    "OlderEpochMayCommit <- AnyOlderEpochMayCommit": _patch(checks, "_held_since", lambda member, by: True),
    "OlderEpochMayCommit <- NoOlderEpochMayCommit": _patch(checks, "_held_since", lambda member, by: False),
    "SentAtOnce <- AllSentAtOnce": _patch(closed, "sent_at_once", lambda answers: answers),
    "Loaded <- LoadedEmpty": _patch(Coordinator, "load", lambda self, hard, blocked: Group()),
    "SessionExpired <- ExpiresWithoutBump": _expires_without_bump,
    "Obtainable <- OnlyFreePartitions": _reconciles(_only_free_partitions),
    "MustBump <- NewMemberDoesNotBump": _new_member_does_not_bump,
    "MustBump <- GrownTopicDoesNotBump": _grown_topic_does_not_bump,
    "MayBeReplaced <- PresentMayBeReplaced": _present_may_be_replaced,
    "MayLeave <- AnyProcessMayLeave": _any_process_may_leave,
    "AwayAssignment <- AwayKeepsEpochs": _patch(leaving, "without_assignment_epochs", lambda member: member.assigned),
    "WaitForOpenBatches <- NoAnswerWaits": _patch(closed, "waits_for_open_batches", lambda is_open, answers: False),
    "RebalanceTimers <- RebalanceTimersStay": _rebalance_timers_stay,
    "IsArmedFor <- ArmedForAnyEpoch": _patch(machine, "expired_member", lambda t, step: t.group.member(step.member_id)),
    "EpochVerdict <- AnyPreviousEpochIsCurrent": _any_previous_epoch_is_current,
    "OlderEpochMayCommit <- RevokingMayAlwaysCommit": _revoking_may_always_commit,
    "ReplacementEpoch <- KeepsItsEpoch": _keeps_its_epoch,
    "WithoutMember <- InstanceStaysMapped": _instance_stays_mapped,
    "WithoutReplaced <- ReplacedConsumerStays": _replaced_consumer_stays,
    "WithTarget <- NoIntervalBegins": _no_interval_begins,
    "Answer <- AnswerWithPreviousEpoch": _answer_with_previous_epoch,
    "Reconciled <- TargetReachedKeepsEpoch": _reconciles(_target_reached_keeps_epoch),
    "Loaded <- LoadedWithoutRebalanceTimers": _loaded_without_rebalance_timers,
    "MustRevoke <- UnlistedPartitionsAreReleased": _reconciles(_unlisted_partitions_are_released),
    "MetadataHash <- EmptiedGroupKeepsHash": _emptied_group_keeps_hash,
    "ExpectsAnswer <- ExpectsAnswerForever": _patch(closed, "expects_answer", lambda endpoint, waits: True),
}
