"""A classic group replaces a consumer group whose last member of the consumer protocol has gone (9.5).

*Two events do this.* The last members of the consumer protocol leave or are fenced (``by_departure``). Or the last one
is static, and a member of the classic protocol joins with its instance id (``by_replacement``). In both cases the
policy must allow it, and the members must fit into a classic group (X-DOWN-01, X-DOWN-20).

*The new group* is Stable, and its generation is the group epoch (X-DOWN-03). Each member keeps as its assignment all
partitions that it holds, also those that it has to revoke (X-DOWN-04). So nothing that it still consumes is given to
another member before the next rebalance.

*A rebalance* follows each departure, since the partitions of the members that left have no owner (X-DOWN-06). It
follows a replacement only if a member lacks a part of its target, because a Stable classic group never tells a member
that the part is free (X-DOWN-22). Otherwise the joiner is answered at once (X-DOWN-24).

*The records* are the tombstones of the consumer group, then the record of the classic one (X-DOWN-02). Like Kafka, this
changes memory and does not apply the records (X-DOWN-30): the new group is needed at once, since it begins a rebalance.
If the append fails, the map of groups is restored (F-RT-08).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.embedded import PROTOCOL_TYPE, SchemaError
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import JoinGroupResponse
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason, identities
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from ..classic import membership, rebalance
from ..classic import records as classic_records
from ..classic.group import ClassicGroup, ClassicMember, GroupDraft, keep_group, schedule_classic_session_timeout
from ..classic.join import GroupCreated
from ..consumer import records, timers
from ..consumer.consumer_appliers import give_way
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerGroupMember
from ..consumer.reconcile import Reconciled, maybe_reconcile
from ..consumer.target import stored_target
from ..kernel import operations
from ..kernel.errors import Rejected
from ..kernel.step import Step
from .classic_member import ClassicJoined
from .embedded import encoded


class Replaced(NamedTuple):
    """The replacement of the last member of the consumer protocol by a member of the classic protocol.

    ``epoch`` is the group epoch after the request, ``owned`` the partitions that the joiner claims to own (None: no
    claim), ``changed`` whether the subscription changed, ``reason`` the reason that the client gives.
    """

    old: ConsumerGroupMember
    new: ConsumerGroupMember
    owned: tuple[TopicPartitions, ...] | None
    epoch: int
    changed: bool
    reason: str


def _allowed(step: Step, group: ConsumerGroup, leaving: Collection[str], size: int) -> bool:
    """Whether only classic members remain, no more than a classic group may have, and the policy allows downgrades."""
    others = [member for each in leaving if (member := group.members.get(each)) is not None and member.classic is None]
    return (
        len(group.members) - group.classic_members == len(others)
        and step.settings.group_consumer_migration_policy.downgrades
        and size <= step.settings.group_max_size
    )


def is_due(step: Step, group: ConsumerGroup, leaving: Collection[str]) -> bool:
    """Whether a departure downgrades the group (X-DOWN-01)."""
    left = len(group.members) - len(leaving)
    return left > 0 and _allowed(step, group, leaving, left)


def is_last(step: Step, group: ConsumerGroup, instance_id: str | None) -> ConsumerGroupMember | None:
    """The member of this instance, if a JoinGroup in its name downgrades the group (X-DOWN-20)."""
    mapped = None if instance_id is None else group.static_members.get(instance_id)
    member = None if mapped is None else group.members.get(mapped)
    if member is None or member.classic is not None:
        return None
    return member if _allowed(step, group, (member.member_id,), len(group.members)) else None


def by_departure(step: Step, group: ConsumerGroup, leaving: Collection[str], cause: RebalanceCause) -> None:
    """The remaining members form a classic group, which rebalances to share the partitions of the others
    (X-DOWN-02…07).

    Raises ``Rejected``, ``InternalError``.
    """
    members = [member for member in group.members.values() if member.member_id not in leaving]
    draft = _group(step, group, members, group.epoch, {})
    _exchange(step, group, draft, records.removed_group(group))
    rebalance.prepare(step, draft, cause, converted=True)  # X-DOWN-06
    keep_group(step, draft)


def by_replacement(
    step: Step, request: Request, group: ConsumerGroup, done: Replaced, written: Sequence[Record]
) -> None:
    """The joiner takes the place of the last member of the consumer protocol, in a classic group (X-DOWN-21…24).

    Either a new assignment is needed, and the joiner waits for it with all others, or all members keep what they have,
    and the joiner is answered at once. ``written``: the records of the request so far. Raises ``Rejected``,
    ``InternalError``.
    """
    others = remaining_members(step, group, done.new)
    rebalances = _lacks_target(step, group, done) or _awaits_target(step, group, others)  # X-DOWN-22
    joiner, current = Reconciled(done.new, ()) if rebalances else _reconciled(step, group, done)
    replaced_ids = {joiner.member_id: done.old.member_id}
    removed = records.removed_group(group, {old_id: new_id for new_id, old_id in replaced_ids.items()})
    generation = done.epoch if step.rules.downgrade_keeps_bump else group.epoch  # X-DOWN-23
    draft = _group(step, group, [*others, joiner], generation, replaced_ids)
    _exchange(step, group, draft, [*written, *current, *removed])
    if rebalances:
        join_rebalance(step, request, draft, joiner, _cause(done))
    else:
        answer_joiner(step, request, draft, joiner)


def _cause(done: Replaced) -> RebalanceCause:
    return RebalanceCause(
        RebalanceReason.STATIC_MEMBER_REPLACED,
        identities([done.new]),
        replaced=done.old.member_id,
        client_reason=done.reason,
    )


@varies
def remaining_members(step: Step, group: ConsumerGroup, joiner: ConsumerGroupMember) -> list[ConsumerGroupMember]:
    """The members that the joiner does not replace; all of them use the classic protocol (X-DOWN-20)."""
    return [member for member in group.members.values() if member.instance_id != joiner.instance_id]


def _lacks_target(step: Step, group: ConsumerGroup, done: Replaced) -> bool:
    """Whether there is no target for the group as it is after this request (X-DOWN-22)."""
    return done.changed if step.rules.downgrade_follows_subscription else group.assignment_epoch < done.epoch


def _awaits_target(step: Step, group: ConsumerGroup, members: Iterable[ConsumerGroupMember]) -> bool:
    """Whether one of them still waits for a part of its target: in a Stable classic group it would not learn when that
    part is free (X-DOWN-22)."""
    return step.rules.downgrade_waits_for_targets and not all(_has_its_target(group, member) for member in members)


@varies
def join_rebalance(
    step: Step, request: Request, draft: GroupDraft, joiner: ConsumerGroupMember, cause: RebalanceCause
) -> None:
    """Park the joiner in the first rebalance of the classic group, like any member that joins (X-DOWN-23)."""
    draft.put(draft.members[joiner.member_id]._replace(join=request.id))
    rebalance.prepare(step, draft, cause, converted=True)
    keep_group(step, draft)
    operations.done(step, request, callback=GroupCreated(draft.group_id, draft.incarnation))


def answer_joiner(step: Step, request: Request, draft: GroupDraft, joiner: ConsumerGroupMember) -> None:
    """The joiner gets its generation when that is in the log, then fetches its assignment (X-DOWN-24)."""
    keep_group(step, draft)
    assert joiner.classic is not None
    reply = JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=draft.generation if step.rules.downgrade_keeps_bump else joiner.epoch,  # X-DOWN-23
        protocol_type=PROTOCOL_TYPE,
        protocol_name=joiner.classic.supported_protocols[0].name,
        member_id=joiner.member_id,
    )
    operations.done(step, request, reply=reply, callback=ClassicJoined(draft.group_id, joiner.member_id, None, None))


def _reconciled(step: Step, group: ConsumerGroup, done: Replaced) -> Reconciled:
    """The joiner with as much of its target as it can have now."""
    target = stored_target(step, group, done.new)
    return maybe_reconcile(step, group, done.new, target, done.owned, changed=done.changed)


def _has_its_target(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether the member has exactly its target (X-DOWN-22)."""
    held = {topic_id: set(epochs) for topic_id, epochs in member.assigned.items() if epochs}
    share = group.target.get(member.member_id, NO_SHARE)
    aimed_at = {topic_id: set(partitions) for topic_id, partitions in share.items() if partitions}
    return member.reconciled_to(group.assignment_epoch) and held == aimed_at


def _classic(member: ConsumerGroupMember) -> ClassicMember:
    """The member in the form of a classic group, without an assignment (X-DOWN-04)."""
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout,
        member.classic.session_timeout_ms,
        member.classic.supported_protocols,
    )


def _group(
    step: Step,
    group: ConsumerGroup,
    members: Iterable[ConsumerGroupMember],
    generation: int,
    replaced_ids: dict[str, str],
) -> GroupDraft:
    """The classic group of these members, Stable, with its assignments (X-DOWN-03, X-DOWN-04).

    ``replaced_ids``: by member id, the member that it replaces. Raises ``Rejected``.
    """
    draft = GroupDraft(
        ClassicGroup(
            group.group_id,
            step.memory.new_incarnation(),
            GroupState.STABLE,
            timestamp=step.at_ms,
            generation=generation,
            protocol_type=PROTOCOL_TYPE,
        )
    )
    by_id = {member.member_id: member for member in members}
    for member in by_id.values():
        draft.put(_classic(member))
        if member.instance_id is not None:
            draft.map_instance(member.instance_id, member.member_id)
    older = [member_id for member_id in draft.members if member_id not in replaced_ids] or list(draft.members)
    draft.leader = older[0] if len(older) == 1 else step.choices.leader(group.group_id, older)
    membership.adopt(step, draft)
    for each in list(draft.members.values()):
        share = share_of(step, group, by_id[each.member_id], replaced_ids.get(each.member_id, each.member_id))
        try:
            assignment = encoded(share, step.topics, each.metadata(draft.protocol_name) or b"")
            draft.put(each._replace(assignment=assignment))
        except SchemaError:
            raise Rejected(ErrorCode.GROUP_ID_NOT_FOUND) from None  # X-DOWN-09
    return draft


@varies
def share_of(
    step: Step, group: ConsumerGroup, member: ConsumerGroupMember, replaced_id: str
) -> Mapping[bytes, Collection[int]]:
    """The assignment of the member in the classic group: all that it holds, also what it has to revoke (X-DOWN-04)."""
    held, going = member.assigned, member.revoking
    return {topic_id: {*held.get(topic_id, ()), *going.get(topic_id, ())} for topic_id in (*held, *going)}


def _exchange(step: Step, group: ConsumerGroup, draft: GroupDraft, written: Sequence[Record]) -> None:
    """Replace the consumer group by the classic group in the log, in memory and in the timers (X-DOWN-05, X-DOWN-06,
    X-DOWN-30)."""
    assignments = {member.member_id: member.assignment for member in draft.members.values()}
    step.log.records += [*written, classic_records.group_record(draft, assignments)]
    give_way(step, group.group_id, draft.freeze())
    for member in draft.members.values():
        schedule_classic_session_timeout(step, draft, member)
    if step.rules.downgrade_ends_timers:
        _end_timers(step, group)


def _end_timers(step: Step, group: ConsumerGroup) -> None:
    """Cancel the timers of the consumer group, and of a classic group that it once was (X-DOWN-33, C-TMR-12)."""
    for kind in (TimerKind.JOIN, TimerKind.SYNC):
        step.timers.cancel(TimerKey(kind, group.group_id))
    for member_id in group.members:
        timers.cancel_timers(step, group.group_id, member_id)
