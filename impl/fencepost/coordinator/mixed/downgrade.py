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
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from ..classic import access as classic_access
from ..classic import protocols, rebalance
from ..classic import records as classic_records
from ..classic.draft import GroupDraft
from ..classic.group import ClassicGroup, Member
from ..classic.join import GroupCreated
from ..consumer import access, records, target, timers, update
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember
from ..kernel import operations
from ..kernel.causes import identities
from ..kernel.errors import Refused
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
    """Whether only classic members are left, as many as a classic group may have, and the policy downgrades groups."""
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


def is_last(step: Step, group: ConsumerGroup, instance_id: str | None) -> ConsumerMember | None:
    """The member of this instance, if a JoinGroup in its name downgrades the group (X-DOWN-20)."""
    mapped = None if instance_id is None else group.static_members.get(instance_id)
    member = None if mapped is None else group.members.get(mapped)
    if member is None or member.classic is not None:
        return None
    return member if _allowed(step, group, (member.member_id,), len(group.members)) else None


def by_departure(step: Step, group: ConsumerGroup, leaving: Collection[str], cause: RebalanceCause) -> None:
    """Those who stay are a classic group, which rebalances to share what the others had (X-DOWN-02…07).

    Raises ``Refused``, ``InternalError``."""
    written = records.removed_group(group)
    members = [member for member in group.members.values() if member.member_id not in leaving]
    draft = _group(step, group, members, group.epoch, {})
    _exchange(step, group, draft, written)
    rebalance.prepare(step, draft, cause, converted=True)  # X-DOWN-06
    classic_access.keep(step, draft)


def by_replacement(step: Step, request: Request, group: ConsumerGroup, done: Replaced, written: list[Record]) -> None:
    """The joiner takes the place of the last member of the consumer protocol, in a classic group (X-DOWN-21…24).

    Either somebody has to assign anew, and the joiner waits for that with all others, or everybody goes on with what
    it has, and the joiner is told at once. Raises ``Refused``, ``InternalError``."""
    others = who_stay(step, group, done.new)
    rebalances = lacks_target(step, group, done) or owes(step, group, others)  # X-DOWN-22
    joiner = done.new if rebalances else _reconciled(step, group, done, written)
    heirs = {joiner.member_id: done.old.member_id}
    written += records.removed_group(group, {old_id: new_id for new_id, old_id in heirs.items()})
    draft = _group(step, group, [*others, joiner], generation_after_replacement(step, group, done), heirs)
    _exchange(step, group, draft, written)
    if rebalances:
        join_rebalance(step, request, draft, joiner, _cause(request, done))
    else:
        go_on(step, request, draft, joiner)


def _cause(request: Request, done: Replaced) -> RebalanceCause:
    assert isinstance(request.body, JoinGroupRequest)
    return RebalanceCause(
        RebalanceReason.STATIC_MEMBER_REPLACED,
        identities([done.new]),
        replaced=done.old.member_id,
        client_reason=request.body.reason or "",
    )


@varies
def who_stay(step: Step, group: ConsumerGroup, joiner: ConsumerMember) -> list[ConsumerMember]:
    """The members whose place the joiner does not take; all of them are of the classic protocol (X-DOWN-20)."""
    return [member for member in group.members.values() if member.instance_id != joiner.instance_id]


@varies
def lacks_target(step: Step, group: ConsumerGroup, done: Replaced) -> bool:
    """Whether there is no target for the group as it is after this request (X-DOWN-22)."""
    return group.assignment_epoch < done.epoch


@varies
def owes(step: Step, group: ConsumerGroup, members: Iterable[ConsumerMember]) -> bool:
    """Whether one of them still waits for a part of its target: in a Stable classic group nobody would tell it when
    that is free (X-DOWN-22)."""
    return not all(_has_its_target(group, member) for member in members)


@varies
def generation_after_replacement(step: Step, group: ConsumerGroup, done: Replaced) -> int:
    """The classic group goes on from the epoch that this request may have begun (X-DOWN-23)."""
    return done.epoch


@varies
def join_rebalance(
    step: Step, request: Request, draft: GroupDraft, joiner: ConsumerMember, cause: RebalanceCause
) -> None:
    """The joiner is parked in the first rebalance of the classic group, like anybody that joins (X-DOWN-23)."""
    draft.put(draft.members[joiner.member_id]._replace(join=request.id))
    rebalance.prepare(step, draft, cause, converted=True)
    classic_access.keep(step, draft)
    operations.done(step, request, callback=GroupCreated(draft.group_id, draft.incarnation))


def go_on(step: Step, request: Request, draft: GroupDraft, joiner: ConsumerMember) -> None:
    """The joiner is told its generation when that is in the log, and fetches its assignment (X-DOWN-24)."""
    classic_access.keep(step, draft)
    assert joiner.classic is not None
    reply = JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=generation_told(step, draft, joiner),
        protocol_type=PROTOCOL_TYPE,
        protocol_name=joiner.classic.supported_protocols[0].name,
        member_id=joiner.member_id,
    )
    operations.done(step, request, reply=reply, callback=ClassicJoined(draft.group_id, joiner.member_id, None, None))


@varies
def generation_told(step: Step, draft: GroupDraft, joiner: ConsumerMember) -> int:
    """The generation of the group (X-DOWN-23)."""
    return draft.generation


def _reconciled(step: Step, group: ConsumerGroup, done: Replaced, written: list[Record]) -> ConsumerMember:
    """The joiner with as much of its target as it can have now; a record that says so goes to ``written``."""
    goal = target.Target(group.assignment_epoch, target.stored(step, group, done.new), [])
    joiner = update.reconciled(step, group, done.new, goal, done.owned, changed=done.changed)
    if joiner != done.new:
        written.append(records.current_assignment(step, group.group_id, joiner))
    return joiner


def _has_its_target(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether the member has all of its target and nothing else (X-DOWN-22)."""
    held = {topic_id: set(epochs) for topic_id, epochs in member.assigned.items() if epochs}
    share = group.target.get(member.member_id, NO_SHARE)
    aimed_at = {topic_id: set(partitions) for topic_id, partitions in share.items() if partitions}
    return member.reconciled_to(group.assignment_epoch) and held == aimed_at


def _classic(member: ConsumerMember) -> Member:
    """The member as a classic group has it, without an assignment (X-DOWN-04)."""
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
    """The classic group that these members are, Stable, with its assignments (X-DOWN-03, X-DOWN-04).

    ``heirs``: whose place a member takes, by its id. Raises ``Refused``."""
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
    older = [member_id for member_id in draft.members if member_id not in heirs] or list(draft.members)
    draft.leader = older[0] if len(older) == 1 else step.choices.leader(group.group_id, older)
    protocols.adopt(step, draft)
    for each in list(draft.members.values()):
        share = share_of(step, group, by_id[each.member_id], heirs.get(each.member_id, each.member_id))
        try:
            assignment = encoded(share, step.topics, each.metadata(draft.protocol_name) or b"")
            draft.put(each._replace(assignment=assignment))
        except SchemaError:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND) from None  # X-DOWN-09
    return draft


@varies
def share_of(step: Step, group: ConsumerGroup, member: ConsumerMember, heir_of: str) -> Mapping[bytes, Collection[int]]:
    """What the member is assigned in the classic group: all that it holds, what it is to revoke as well (X-DOWN-04)."""
    held, going = member.assigned, member.revoking
    return {topic_id: {*held.get(topic_id, ()), *going.get(topic_id, ())} for topic_id in (*held, *going)}


def _exchange(step: Step, group: ConsumerGroup, draft: GroupDraft, written: list[Record]) -> None:
    """Put the classic group in the place of the consumer group: in the log, in memory, in the timers (X-DOWN-05,
    X-DOWN-06, X-DOWN-30)."""
    assignments = {member.member_id: member.assignment for member in draft.members.values()}
    step.log.records += [*written, classic_records.group_record(draft, assignments)]
    access.give_way(step, group.group_id, draft.freeze())
    for member in draft.members.values():
        classic_access.arm_session(step, draft, member)
    end_timers(step, group)


@varies
def end_timers(step: Step, group: ConsumerGroup) -> None:
    """The timers of the consumer group, and of a classic group that it once was, are over (X-DOWN-33, C-TMR-12)."""
    for kind in (TimerKind.JOIN, TimerKind.SYNC):
        step.timers.cancel(TimerKey(kind, group.group_id))
    for member_id in group.members:
        timers.unwatch(step, group.group_id, member_id)
