"""Reports of the rebalances of consumer groups: each begins with a new group epoch, and ends when every member has its
target at that epoch."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.consumer_view import ConsumerGroupState
from fencepost.protocol.events import TimerKind
from fencepost.protocol.rebalances import (
    GroupType,
    RebalanceCause,
    RebalanceEnded,
    RebalanceReason,
    RebalanceStarted,
    identities,
)

from ..kernel.group_configs import consumer_session_timeout
from ..kernel.step import Step
from .group import ConsumerGroup, ConsumerGroupMember, find_consumer_group

_EXPIRED = {
    TimerKind.CONSUMER_SESSION: RebalanceReason.SESSION_EXPIRED,
    TimerKind.CONSUMER_REBALANCE: RebalanceReason.REBALANCE_TIMEOUT,
    TimerKind.CONSUMER_JOIN: RebalanceReason.JOIN_TIMEOUT,
    TimerKind.CONSUMER_SYNC: RebalanceReason.SYNC_TIMEOUT,
}


def started(step: Step, group_id: str, epoch: int, cause: RebalanceCause, *, converted: bool = False) -> None:
    """The records of a new group epoch are written. ``converted``: the group was a classic group until now."""
    report = RebalanceStarted(
        group_id=group_id, group_type=GroupType.CONSUMER, generation=epoch, cause=cause, converted=converted
    )
    step.rebalances.append(report)


def maybe_ended(step: Step, group_id: str) -> None:
    """A record of a member is written: it may be the last one that the group waited for, or that it had (M-ST-01)."""
    group = find_consumer_group(step, group_id)
    if group is not None and group.state in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
        step.rebalances.append(RebalanceEnded(group_id=group_id, generation=group.epoch, state=group.state))


def expired(step: Step, group: ConsumerGroup, member: ConsumerGroupMember, kind: TimerKind) -> RebalanceCause:
    """A timer of this kind put the member out of the group (M-TMR-01…03, X-TMR-01…03)."""
    timeout = member.rebalance_timeout
    if kind is TimerKind.CONSUMER_SESSION:
        classic = member.classic
        timeout = consumer_session_timeout(step, group.group_id) if classic is None else classic.session_timeout_ms
    return RebalanceCause(_EXPIRED[kind], identities([member]), timeout_ms=timeout)


def topics_changed(group: ConsumerGroup) -> RebalanceCause:
    """A look at the topics found them different (M-HB-04)."""
    known = group.by_topic.counts
    names = tuple(sorted(name for name in group.changed_topics if name in known))
    return RebalanceCause(RebalanceReason.TOPICS_CHANGED, topics=names)


def regex_changed(topics: Iterable[str]) -> RebalanceCause:
    """A resolution found other topics than the one before (M-RX-05)."""
    return RebalanceCause(RebalanceReason.REGEX_CHANGED, topics=tuple(sorted(topics)))


def update_of(
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    replaced: ConsumerGroupMember | None,
    *,
    bump: bool,
    subscribes_anew: bool,
    client_reason: str = "",
) -> RebalanceCause:
    """Why a request of a member that joins or stays began an epoch. ``bump``: the request called for it, whatever the
    topics are like (M-HB-03); otherwise the group has found its topics changed, if only since this member subscribes to
    others. ``subscribes_anew``: the member has another subscription than before. ``replaced``: the
    static member whose place it takes. A member that converts its classic group changes its protocol by that."""
    topics = topics_changed(group)
    changes = subscribes_anew and (replaced is not None or member.member_id in group.members)
    if not bump and (topics.topics or not changes):
        return topics
    if replaced is not None:
        reason = RebalanceReason.STATIC_MEMBER_REPLACED
    elif member.member_id not in group.members:
        reason = RebalanceReason.MEMBER_JOINED
    elif subscribes_anew:
        reason = RebalanceReason.MEMBER_UPDATED
    else:
        reason = RebalanceReason.ASSIGNOR_CHANGED  # nothing else calls for an epoch (M-HB-03, M-HB-14)
    return RebalanceCause(
        reason,
        identities([member]),
        replaced="" if replaced is None else replaced.member_id,
        client_reason=client_reason,
    )
