"""One guard removed at a time: the overrides of ``spec/MCConsumerMutants.tla``, applied to the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse

from ... import machines
from ...consumer import ConsumerHeartbeat, Member
from ...consumer import group as machine
from ...consumer import heartbeat as heartbeats
from ...consumer.group_step import GroupStep
from ...consumer.reconcile import Context, Goal, reconcile
from ...offsets import checks
from . import closed
from .coordinator import Coordinator, Result
from .state import Group

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
    "ExpectsAnswer <- ExpectsAnswerForever": _patch(closed, "expects_answer", lambda endpoint, waits: True),
}
