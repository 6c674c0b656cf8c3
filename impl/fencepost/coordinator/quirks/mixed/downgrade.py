"""Downgrades: whether the classic group rebalances, its first generation, and the assignments of its members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fencepost.protocol.events import Request
from fencepost.protocol.rebalances import RebalanceCause
from fencepost.quirks import intended, quirk, varies

from ...classic import rebalance
from ...classic.group import GroupDraft
from ...consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember, Share
from ...kernel.errors import InternalError
from ...kernel.step import Step
from ...mixed import downgrade


@quirk("fault_relabelled_instance_stays", of=downgrade.remaining_members)
def misses_the_replaced(step: Step, group: ConsumerGroup, joiner: ConsumerMember) -> list[ConsumerMember]:
    """Kafka looks up the replaced member by its instance id. If another member has that id now, the replaced one stays,
    and cannot be a member of a classic group (M-STATIC-13)."""
    others = intended(downgrade.remaining_members)(step, group, joiner)
    if any(member.classic is None for member in others):
        raise InternalError
    return others


@quirk("old_downgrade_rebalances_by_subscription", of=downgrade.lacks_target)
def subscription_decides(step: Step, group: ConsumerGroup, done: downgrade.Replaced) -> bool:
    """Before 4.3 every join has computed a target, and only a change of the subscription requires another one
    (V-65)."""
    return done.changed


@quirk("fault_downgrade_owes", of=downgrade.awaits_target)
def owes_nobody(step: Step, group: ConsumerGroup, members: Iterable[ConsumerMember]) -> bool:
    """Kafka does not check whether a member still waits for a part of its target. The member has that part in the
    Stable group, and is never notified (X-DOWN-22)."""
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
    """The join is answered as done, and the joiner learns by its next request that the group rebalances (X-DOWN-23)."""
    rebalance.prepare(step, draft, cause, converted=True)
    downgrade.answer_joiner(step, request, draft, joiner)


@quirk("fault_downgrade_loses_bump", of=downgrade.generation_in_response)
def member_epoch_told(step: Step, draft: GroupDraft, joiner: ConsumerMember) -> int:
    """The joiner gets its member epoch, which may not be a generation of the group (X-DOWN-23)."""
    return joiner.epoch


@quirk("fault_downgrade_assigns_target", of=downgrade.share_of)
def assigns_target(
    step: Step, group: ConsumerGroup, member: ConsumerMember, replaced_id: str
) -> Mapping[bytes, Collection[int]]:
    """Kafka assigns the targets, whatever each member currently holds: two members may have one partition (X-DOWN-04,
    INV-KIP-09)."""
    share = group.target.get(replaced_id)
    return no_target(step) if share is None else share


@varies
def no_target(step: Step) -> Share:
    """A member without a target gets an empty assignment (V-67)."""
    return NO_SHARE


@quirk("old_no_assignment_interval", of=no_target)
def fails_without_target(step: Step) -> Share:
    """Before 4.3 every join computes a target, and a log of such a release has one for every member, so the release
    does not check (V-67)."""
    raise InternalError


@quirk("fault_downgrade_leaves_timers", of=downgrade.end_timers)
def timers_stay(step: Step, group: ConsumerGroup) -> None:
    """The timers of the consumer group stay set, and fire in the classic one (X-DOWN-33, X-DOWN-06)."""
