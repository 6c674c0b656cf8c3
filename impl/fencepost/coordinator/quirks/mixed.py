"""Deviations of Kafka in groups with members of both protocols."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fencepost.protocol.embedded import LengthError, SchemaError
from fencepost.protocol.events import Request
from fencepost.protocol.rebalances import RebalanceCause
from fencepost.quirks import Next, quirk

from ..classic import rebalance
from ..classic.group import ClassicGroup, ClassicMember, GroupDraft
from ..consumer import records
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerGroupMember, Share
from ..consumer.group_epoch import TopicsLook
from ..kernel.errors import InternalError, Rejected
from ..kernel.step import Step
from ..mixed import classic_member, downgrade, upgrade
from .consumer import partitions_of

# Classic members: permission to join, trust in their claims, and when they have to join again


@quirk("old_classic_members_follow_group_epoch", of=classic_member.is_behind)
def group_epoch_counts(_: Next[bool], step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Before 4.3 every join computes a target, so the group epoch says whether there is a newer one (V-61)."""
    return member.epoch < group.epoch


@quirk("fault_classic_members_starve", of=classic_member.is_behind)
def waits_for_others(_: Next[bool], step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Kafka asks no member to join before there is a newer target, but with classic members only a join computes one: a
    group of classic members alone keeps its old assignment for ever (X-HB-03, LIV-14)."""
    return member.epoch < group.assignment_epoch


# Downgrades: whether the classic group rebalances, its first generation, and the assignments of its members


@quirk("fault_relabelled_instance_stays", of=downgrade.remaining_members)
def misses_the_replaced(
    call_next: Next[list[ConsumerGroupMember]], step: Step, group: ConsumerGroup, joiner: ConsumerGroupMember
) -> list[ConsumerGroupMember]:
    """Kafka looks up the replaced member by its instance id. If another member has that id now, the replaced one stays,
    and cannot be a member of a classic group (M-STATIC-13)."""
    others = call_next(step, group, joiner)
    if any(member.classic is None for member in others):
        raise InternalError
    return others


@quirk("fault_downgrade_loses_bump", of=downgrade.join_rebalance)
def answered_at_once(
    _: Next[None], step: Step, request: Request, draft: GroupDraft, joiner: ConsumerGroupMember, cause: RebalanceCause
) -> None:
    """The join is answered as done, and the joiner learns by its next request that the group rebalances (X-DOWN-23)."""
    rebalance.prepare(step, draft, cause, converted=True)
    downgrade.answer_joiner(step, request, draft, joiner)


@quirk("fault_downgrade_assigns_target", of=downgrade.share_of)
def assigns_target(
    _: Next[Mapping[bytes, Collection[int]]],
    step: Step,
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    replaced_id: str,
) -> Mapping[bytes, Collection[int]]:
    """Kafka assigns the targets, whatever each member currently holds: two members may have one partition (X-DOWN-04,
    INV-KIP-09)."""
    share = group.target.get(replaced_id)
    if share is None and not step.rules.has_assignment_interval:
        raise InternalError  # every join computed a target, so the release does not check (V-67)
    return NO_SHARE if share is None else share


# The metadata bytes of members, and when they are read


@quirk("fault_upgrade_without_protocol", of=upgrade.selected_metadata)
def fails_without_metadata(call_next: Next[bytes], step: Step, group: ClassicGroup, member: ClassicMember) -> bytes:
    """Kafka does not expect a member without metadata for the protocol, so it fails to convert a group in its first
    rebalance (X-UP-07)."""
    if member.metadata(group.protocol_name) is None:
        raise InternalError
    return call_next(step, group, member)


@quirk("fault_bad_subscription_is_thrown", of=upgrade.unreadable)
def lengths_are_thrown(
    call_next: Next[Rejected | InternalError], step: Step, broken: SchemaError
) -> Rejected | InternalError:
    """Kafka does not expect an impossible length, so the error is an internal one (X-UP-06, V-124)."""
    return InternalError() if isinstance(broken, LengthError) else call_next(step, broken)


# Upgrades: when waiting members are answered, and what happens to their assignments


@quirk("fault_upgrade_answers_before_checks", of=upgrade.convert)
def answers_first(call_next: Next[upgrade.Upgrade], step: Step, group: ClassicGroup) -> upgrade.Upgrade:
    """Kafka answers the waiting members before it reads their subscriptions, and sets their timers before it checks
    whether there is room for the new member. If the upgrade is refused then, the group is still a classic one, but its
    members have been answered as if it were not (X-UP-03, X-UP-06, X-UP-09)."""
    upgrade.answer_parked(step, group)
    result = call_next(step, group)
    upgrade.watch(step, group)
    return result


@quirk("fault_upgrade_overlooks_owned", of=upgrade.shares_of)
def believes_assignments(
    _: Next[Mapping[str, Share]], step: Step, found: Sequence[upgrade.ReadMember]
) -> Mapping[str, Share]:
    """Kafka takes over the assignments only. Partitions whose assignment a rebalance in progress has cleared are given
    to other members, while a cooperative member still has them (X-UP-05, C-JOIN-42, INV-KIP-01)."""
    return {each.member.member_id: each.share for each in found}


@quirk("old_partition_metadata", of=upgrade.topics_as_known)
def writes_partitions(_: Next[TopicsLook], step: Step, group_id: str, names: Iterable[str]) -> TopicsLook:
    """4.0 keeps a record of the topics, and writes it even if it is empty (V-34, V-66)."""
    return TopicsLook(0, True, [records.partition_metadata(group_id, partitions_of(step.topics, names))])
