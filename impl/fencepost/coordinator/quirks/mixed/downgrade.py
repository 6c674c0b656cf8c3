"""Downgrades: when the classic group rebalances, at which generation it begins, and what its members have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fencepost.protocol.events import Request
from fencepost.protocol.rebalances import RebalanceCause
from fencepost.quirks import intended, quirk, varies

from ...classic import rebalance
from ...classic.draft import GroupDraft
from ...consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember, Share
from ...kernel.errors import InternalError
from ...kernel.step import Step
from ...mixed import downgrade


@quirk("fault_relabelled_instance_stays", of=downgrade.who_stay)
def misses_the_replaced(step: Step, group: ConsumerGroup, joiner: ConsumerMember) -> list[ConsumerMember]:
    """Kafka looks for the replaced member by its instance id. If it is called by another one now, it stays, and cannot
    be a member of a classic group (M-STATIC-13)."""
    others = intended(downgrade.who_stay)(step, group, joiner)
    if any(member.classic is None for member in others):
        raise InternalError
    return others


@quirk("old_downgrade_rebalances_by_subscription", of=downgrade.lacks_target)
def subscription_decides(step: Step, group: ConsumerGroup, done: downgrade.Replaced) -> bool:
    """Before 4.3 every join has computed a target, and a change of the subscription is what calls for another one
    (V-65)."""
    return done.changed


@quirk("fault_downgrade_owes", of=downgrade.owes)
def owes_nobody(step: Step, group: ConsumerGroup, members: Iterable[ConsumerMember]) -> bool:
    """Kafka does not look whether anybody waits for a part of its target. It has that in the Stable group, and is never
    told (X-DOWN-22)."""
    return False


@quirk("fault_downgrade_loses_bump", of=downgrade.generation_after_replacement)
def epoch_of_before(step: Step, group: ConsumerGroup, done: downgrade.Replaced) -> int:
    """Kafka takes the epoch from the group as it was before the request, although the log has a newer one
    (X-DOWN-23)."""
    return group.epoch


@quirk("fault_downgrade_loses_bump", of=downgrade.join_rebalance)
def answered_at_once(
    step: Step, request: Request, draft: GroupDraft, joiner: ConsumerMember, cause: RebalanceCause
) -> None:
    """The joiner is told that it has joined, and learns by its next request that the group rebalances (X-DOWN-23)."""
    rebalance.prepare(step, draft, cause, converted=True)
    downgrade.go_on(step, request, draft, joiner)


@quirk("fault_downgrade_loses_bump", of=downgrade.generation_told)
def member_epoch_told(step: Step, draft: GroupDraft, joiner: ConsumerMember) -> int:
    """The joiner is told its member epoch, which may be no generation of the group (X-DOWN-23)."""
    return joiner.epoch


@quirk("fault_downgrade_assigns_target", of=downgrade.share_of)
def assigns_target(
    step: Step, group: ConsumerGroup, member: ConsumerMember, heir_of: str
) -> Mapping[bytes, Collection[int]]:
    """Kafka assigns targets, whoever holds what at the moment: two members may have one partition (X-DOWN-04,
    INV-KIP-09)."""
    share = group.target.get(heir_of)
    return no_target(step) if share is None else share


@varies
def no_target(step: Step) -> Share:
    """Who has no target is assigned nothing (V-67)."""
    return NO_SHARE


@quirk("old_no_assignment_interval", of=no_target)
def fails_without_target(step: Step) -> Share:
    """Before 4.3 every join computes a target, and a log of theirs has one for everybody: these releases do not look
    (V-67)."""
    raise InternalError


@quirk("fault_downgrade_leaves_timers", of=downgrade.end_timers)
def timers_stay(step: Step, group: ConsumerGroup) -> None:
    """The timers of the consumer group stay armed, and go off in the classic one (X-DOWN-33, X-DOWN-06)."""
