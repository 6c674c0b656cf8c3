"""Deviations of Kafka in groups with members of both protocols."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.embedded import LengthError, SchemaError, Subscription
from fencepost.protocol.events import Request
from fencepost.protocol.messages import Protocol
from fencepost.protocol.rebalances import RebalanceCause
from fencepost.quirks import Next, quirk, varies

from ..classic import rebalance
from ..classic.group import ClassicGroup, ClassicMember, GroupDraft
from ..consumer import records
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember, Share
from ..consumer.group_epoch import TopicsLook
from ..kernel.errors import InternalError, Rejected
from ..kernel.step import Step
from ..mixed import classic_join, classic_member, downgrade, embedded, upgrade
from ..mixed.embedded import owned_rows
from .consumer.topics import partitions_of

# Classic members: permission to join, trust in their claims, and when they have to join again


@quirk("old_disabled_policy_accepts_joins", of=classic_join.require_accepting)
def accepts_under_any_policy(_: Next[None], step: Step) -> None:
    """Before 4.3, except 4.2.2, the policy is checked only where a group would change its kind (X-POL-04, V-60)."""


@quirk("fault_join_generation_ignored", of=classic_join.owned_by)
def believes_any_generation(
    _: Next[tuple[TopicPartitions, ...] | None],
    step: Step,
    group: ConsumerGroup,
    member_id: str,
    subscription: Subscription,
) -> tuple[TopicPartitions, ...] | None:
    """Kafka does not check the generation, nor whether the member is known. A JoinGroup that arrives late frees
    partitions that the member got since, and a fenced member does not get an error: a partition has two owners for a
    while (X-JOIN-06, X-JOIN-12, INV-KIP-09)."""
    return owned_rows(subscription.owned_partitions, step.topics)


@quirk("old_classic_members_follow_group_epoch", of=classic_member.is_behind)
def group_epoch_counts(_: Next[bool], step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Before 4.3 every join computes a target, so the group epoch says whether there is a newer one (V-61)."""
    return member.epoch < group.epoch


@quirk("fault_classic_members_starve", of=classic_member.is_behind)
def waits_for_others(_: Next[bool], step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Kafka asks no member to join before there is a newer target, but with classic members only a join computes one: a
    group of classic members alone keeps its old assignment for ever (X-HB-03, LIV-14)."""
    return member.epoch < group.assignment_epoch


# Downgrades: whether the classic group rebalances, its first generation, and the assignments of its members


@quirk("fault_relabelled_instance_stays", of=downgrade.remaining_members)
def misses_the_replaced(
    call_next: Next[list[ConsumerMember]], step: Step, group: ConsumerGroup, joiner: ConsumerMember
) -> list[ConsumerMember]:
    """Kafka looks up the replaced member by its instance id. If another member has that id now, the replaced one stays,
    and cannot be a member of a classic group (M-STATIC-13)."""
    others = call_next(step, group, joiner)
    if any(member.classic is None for member in others):
        raise InternalError
    return others


@quirk("old_downgrade_rebalances_by_subscription", of=downgrade.lacks_target)
def subscription_decides(_: Next[bool], step: Step, group: ConsumerGroup, done: downgrade.Replaced) -> bool:
    """Before 4.3 every join has computed a target, and only a change of the subscription requires another one
    (V-65)."""
    return done.changed


@quirk("fault_downgrade_owes", of=downgrade.awaits_target)
def owes_nobody(_: Next[bool], step: Step, group: ConsumerGroup, members: Iterable[ConsumerMember]) -> bool:
    """Kafka does not check whether a member still waits for a part of its target. The member has that part in the
    Stable group, and is never notified (X-DOWN-22)."""
    return False


@quirk("fault_downgrade_loses_bump", of=downgrade.generation_after_replacement)
def epoch_of_before(_: Next[int], step: Step, group: ConsumerGroup, done: downgrade.Replaced) -> int:
    """Kafka takes the epoch from the group as it was before the request, although the log has a newer one
    (X-DOWN-23)."""
    return group.epoch


@quirk("fault_downgrade_loses_bump", of=downgrade.join_rebalance)
def answered_at_once(
    _: Next[None], step: Step, request: Request, draft: GroupDraft, joiner: ConsumerMember, cause: RebalanceCause
) -> None:
    """The join is answered as done, and the joiner learns by its next request that the group rebalances (X-DOWN-23)."""
    rebalance.prepare(step, draft, cause, converted=True)
    downgrade.answer_joiner(step, request, draft, joiner)


@quirk("fault_downgrade_loses_bump", of=downgrade.generation_in_response)
def member_epoch_told(_: Next[int], step: Step, draft: GroupDraft, joiner: ConsumerMember) -> int:
    """The joiner gets its member epoch, which may not be a generation of the group (X-DOWN-23)."""
    return joiner.epoch


@quirk("fault_downgrade_assigns_target", of=downgrade.share_of)
def assigns_target(
    _: Next[Mapping[bytes, Collection[int]]], step: Step, group: ConsumerGroup, member: ConsumerMember, replaced_id: str
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
def fails_without_target(_: Next[Share], step: Step) -> Share:
    """Before 4.3 every join computes a target, and a log of such a release has one for every member, so the release
    does not check (V-67)."""
    raise InternalError


@quirk("fault_downgrade_leaves_timers", of=downgrade.end_timers)
def timers_stay(_: Next[None], step: Step, group: ConsumerGroup) -> None:
    """The timers of the consumer group stay set, and fire in the classic one (X-DOWN-33, X-DOWN-06)."""


# The metadata bytes of members, and when they are read


@quirk("fault_downgrade_reads_unread_metadata", of=embedded.require_readable)
def reads_no_further(_: Next[None], step: Step, protocols: Iterable[Protocol]) -> None:
    """Kafka reads only what it needs at once: for a JoinGroup the first protocol, for an upgrade the selected one. A
    later downgrade or a SyncGroup may fail on the others (X-DOWN-09, X-SYNC-07)."""


@quirk("fault_downgrade_reads_unread_metadata", of=classic_member.answer_unreadable)
def never_answered(_: Next[None], step: Step, request: Request) -> None:
    """A converted member may have bytes that cannot be read, which Kafka does not expect when it answers: the request
    is never answered (X-SYNC-07)."""


@quirk("old_malformed_join_is_internal", of=classic_join.unreadable)
def fails_by_malformed(_: Next[Rejected | InternalError], step: Step) -> Rejected | InternalError:
    """Before 4.4, except 4.2.2, no JoinGroup to a consumer group expects bytes that cannot be read (V-125)."""
    return InternalError()


@quirk("fault_upgrade_without_protocol", of=upgrade.require_protocol)
def needs_no_protocol(_: Next[None], step: Step, group: ClassicGroup) -> None:
    """Kafka does not check whether a protocol is selected yet (X-UP-07)."""


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


@quirk("fault_upgrade_answers_before_checks", of=upgrade.release_classic_members)
def all_were_told(_: Next[None], step: Step, group: ClassicGroup) -> None:
    """All members have been answered already (X-UP-03)."""


@quirk("fault_upgrade_without_bump", of=upgrade.upgrade_bumps)
def goes_on_at_its_generation(_: Next[bool], step: Step) -> bool:
    """An upgrade by a member that continues a classic one begins no epoch: partitions that the interrupted rebalance
    would have distributed are assigned to no member (X-UP-15, LIV-16)."""
    return False


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
