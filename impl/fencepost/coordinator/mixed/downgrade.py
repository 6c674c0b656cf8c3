"""A classic group takes the place of a consumer group whose last member of the consumer protocol has gone (9.5).

Kafka changes memory here and does not apply the records (X-DOWN-30): the new group is needed at once, since it goes
into a rebalance. If the append fails, the map of groups goes back (F-RT-08).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.embedded import PROTOCOL_TYPE, SchemaError
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import JoinGroupResponse
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState

from ..classic import access as classic_access
from ..classic import protocols, rebalance
from ..classic import records as classic_records
from ..classic.draft import GroupDraft
from ..classic.group import ClassicGroup, Member
from ..classic.join import GroupCreated
from ..consumer import access, records, target, timers, update
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember
from ..kernel import operations
from ..kernel.errors import InternalError, Refused
from ..kernel.step import Step
from .callbacks import ClassicJoined
from .embedded import encoded


class Replaced(NamedTuple):
    """The last member of the consumer protocol is replaced by one of the classic protocol.

    ``epoch`` is the group epoch after the request, ``owned`` what the joiner says that it owns (None: not said),
    ``changed`` whether the subscription did."""

    old: ConsumerMember
    new: ConsumerMember
    owned: tuple[TopicPartitions, ...] | None
    epoch: int
    changed: bool


def _allowed(step: Step, group: ConsumerGroup, leaving: Collection[str], size: int) -> bool:
    return (
        all(member.classic is not None for member in group.members.values() if member.member_id not in leaving)
        and step.settings.group_consumer_migration_policy.downgrades
        and size <= step.settings.group_max_size
    )


def is_due(step: Step, group: ConsumerGroup, leaving: Collection[str]) -> bool:
    """X-DOWN-01."""
    left = len(group.members) - len(leaving)
    return left > 0 and _allowed(step, group, leaving, left)


def is_last(step: Step, group: ConsumerGroup, instance_id: str | None) -> ConsumerMember | None:
    """X-DOWN-20: the member of this instance, if a JoinGroup in its name downgrades the group."""
    mapped = None if instance_id is None else group.static_members.get(instance_id)
    member = None if mapped is None else group.members.get(mapped)
    if member is None or member.classic is not None:
        return None
    return member if _allowed(step, group, (member.member_id,), len(group.members)) else None


def by_departure(step: Step, group: ConsumerGroup, leaving: Collection[str]) -> None:
    """X-DOWN-02…07. Raises ``Refused``, ``InternalError``."""
    written = records.removed_group(group)
    members = [member for member in group.members.values() if member.member_id not in leaving]
    draft = _group(step, group, members, group.epoch, {})
    _exchange(step, group, draft, written)
    rebalance.prepare(step, draft)  # X-DOWN-06
    classic_access.keep(step, draft)


def by_replacement(step: Step, request: Request, group: ConsumerGroup, done: Replaced, written: list[Record]) -> None:
    """X-DOWN-21…24. Raises ``Refused``, ``InternalError``."""
    profile, name = step.profile, group.group_id
    stale = group.assignment_epoch < done.epoch
    rebalances = done.changed if profile.old_downgrade_rebalances_by_subscription else stale  # X-DOWN-22
    joiner = done.new
    others = [member for member in group.members.values() if member.instance_id != joiner.instance_id]
    if not profile.fault_downgrade_owes:
        rebalances = rebalances or not all(_has_its_target(group, member) for member in others)
    if not rebalances:
        goal = target.Target(group.assignment_epoch, target.stored(step, group, joiner), [])
        joiner = update.reconciled(step, group, done.new, goal, done.owned, changed=done.changed)
        if joiner != done.new:
            written.append(records.current_assignment(step, name, joiner))
    new_id = joiner.member_id
    written += records.removed_group(group, {done.old.member_id: new_id})
    if any(member.classic is None for member in others):
        raise InternalError  # the replaced one is called by another instance id now (M-STATIC-13)
    epoch = group.epoch if profile.fault_downgrade_loses_bump else done.epoch  # X-DOWN-23
    draft = _group(step, group, [*others, joiner], epoch, {new_id: done.old.member_id})
    _exchange(step, group, draft, written)
    if rebalances and not profile.fault_downgrade_loses_bump:  # X-DOWN-23 mended: it waits like any other
        draft.put(draft.members[new_id]._replace(join=request.id))
        rebalance.prepare(step, draft)
        classic_access.keep(step, draft)
        operations.done(step, request, callback=GroupCreated(name, draft.incarnation))
        return
    if rebalances:
        rebalance.prepare(step, draft)
    classic_access.keep(step, draft)
    assert joiner.classic is not None
    generation = joiner.epoch if profile.fault_downgrade_loses_bump else draft.generation
    reply = JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=generation,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=joiner.classic.supported_protocols[0].name,
        member_id=new_id,
    )
    operations.done(step, request, reply=reply, callback=ClassicJoined(name, new_id, None, None))


def _has_its_target(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """X-DOWN-22 mended: in a Stable classic group nobody would tell it of what it still waits for."""
    held = {topic_id: set(epochs) for topic_id, epochs in member.assigned.items() if epochs}
    share = group.target.get(member.member_id, NO_SHARE)
    aimed_at = {topic_id: set(partitions) for topic_id, partitions in share.items() if partitions}
    return member.reconciled_to(group.assignment_epoch) and held == aimed_at


def _classic(member: ConsumerMember) -> Member:
    """X-DOWN-04, without the assignment."""
    assert member.classic is not None
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout,
        member.classic.session_timeout_ms,
        member.classic.supported_protocols,
    )


def _group(
    step: Step, group: ConsumerGroup, members: Iterable[ConsumerMember], generation: int, heirs: dict[str, str]
) -> GroupDraft:
    """X-DOWN-03, X-DOWN-04; ``heirs`` take the target of another id."""
    step.incarnations += 1
    draft = GroupDraft(
        ClassicGroup(
            group.group_id,
            step.incarnations,
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
    older = [member_id for member_id in draft.members if member_id not in heirs] or list(draft.members)
    draft.leader = older[0] if len(older) == 1 else step.choices.leader(group.group_id, older)
    protocols.adopt(step, draft)
    for each in list(draft.members.values()):
        share = _share(step, group, by_id[each.member_id], heirs.get(each.member_id, each.member_id))
        try:
            assignment = encoded(share, step.topics, each.metadata(draft.protocol_name) or b"")
            draft.put(each._replace(assignment=assignment))
        except SchemaError:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND) from None  # X-DOWN-09
    return draft


def _share(step: Step, group: ConsumerGroup, member: ConsumerMember, heir_of: str) -> Mapping[bytes, Collection[int]]:
    """What the member is assigned in the classic group (X-DOWN-04): its target, or mended, what it holds (A ∪ R)."""
    if not step.profile.fault_downgrade_assigns_target:
        held, going = member.assigned, member.revoking
        return {topic_id: {*held.get(topic_id, ()), *going.get(topic_id, ())} for topic_id in (*held, *going)}
    share = group.target.get(heir_of)
    if share is None and step.profile.old_no_assignment_interval:
        raise InternalError  # a log of theirs has a target for everybody, so these releases do not look
    return share or NO_SHARE


def _exchange(step: Step, group: ConsumerGroup, draft: GroupDraft, written: list[Record]) -> None:
    """The records, the map of groups, the timers (X-DOWN-05, X-DOWN-06, X-DOWN-30)."""
    assignments = {member.member_id: member.assignment for member in draft.members.values()}
    step.records += [*written, classic_records.group_record(draft, assignments)]
    access.give_way(step, group.group_id, draft.freeze())
    for member in draft.members.values():
        classic_access.arm_session(step, draft, member)
    if not step.profile.fault_downgrade_leaves_timers:  # X-DOWN-33 mended
        for kind in (TimerKind.JOIN, TimerKind.SYNC):
            step.cancel_timer(TimerKey(kind, group.group_id))
        for member_id in group.members:
            timers.unwatch(step, group.group_id, member_id)
