"""A consumer group takes the place of a classic one (9.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fencepost.hash_order import texts
from fencepost.protocol.consumer_records import ClassicMemberMetadata
from fencepost.protocol.embedded import (
    PROTOCOL_TYPE,
    LengthError,
    SchemaError,
    Subscription,
    decode_subscription,
    decode_topics,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.messages import JoinGroupResponse, SyncGroupResponse
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState

from ..classic import access, membership
from ..classic import records as classic_records
from ..classic.draft import GroupDraft
from ..classic.group import ClassicGroup, Member
from ..consumer import records, topics
from ..consumer.group import ConsumerGroup, ConsumerMember, Share, held
from ..kernel.errors import InternalError, Refused
from ..kernel.replay import Replay
from ..kernel.step import Step
from . import claims
from .embedded import assigned


def upgraded(step: Step, group: ClassicGroup, written: list[Record]) -> ConsumerGroup:
    """The consumer group that this one would be; the records that say so go to ``written``.

    X-UP-01…08, F-ORD-08, INV-CONV-01. Raises ``Refused`` and ``InternalError``.
    """
    settings, profile = step.settings, step.profile
    if (
        not settings.group_consumer_migration_policy.upgrades
        or group.protocol_type != PROTOCOL_TYPE
        or len(group.members) > settings.group_consumer_max_size
    ):
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)  # X-UP-02
    if not profile.fault_upgrade_without_protocol and any(
        member.metadata(group.protocol_name) is None for member in group.members.values()
    ):
        raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # X-UP-07 mended
    if profile.fault_upgrade_answers_before_checks:
        _answer_parked(step, group)
    in_order = texts(group.members)  # of several that cannot be converted Kafka tells the first
    members = _members(step, group, [group.members[member_id] for member_id in in_order])
    said = _records(step, group, members)
    work = Replay({}, step.quirks, step.incarnations, step.appliers)
    for record in said:
        work.apply(record)
    if profile.fault_upgrade_answers_before_checks:
        _watch(step, group)
    written += [classic_records.tombstone(group.group_id), *said]
    result = work.groups()[group.group_id]
    assert isinstance(result, ConsumerGroup)
    return result


def _under_way(step: Step, group_id: str) -> ClassicGroup | None:
    """The classic group that this request is about to replace, if it has members (an empty one just goes, M-VAL-22)."""
    group = step.groups.get(group_id)
    return group if isinstance(group, ClassicGroup) and group.state is not GroupState.EMPTY else None


def must_bump(step: Step, group_id: str) -> bool:
    """X-UP-15, LIV-16 mended: who was in the middle of a rebalance gets one."""
    return _under_way(step, group_id) is not None and not step.profile.fault_upgrade_without_bump


def accepted(step: Step, group_id: str) -> None:
    """No check is left: now tell those that wait (X-UP-03, X-UP-09 mended)."""
    group = _under_way(step, group_id)
    if group is not None and not step.profile.fault_upgrade_answers_before_checks:
        _answer_parked(step, group)
        _watch(step, group)


def _answer_parked(step: Step, group: ClassicGroup) -> None:
    """X-UP-03; a later failure does not take it back (M-HB-13)."""
    draft = GroupDraft(group)
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in list(draft.members.values()):
        left = membership.answer_join(step, draft, member, JoinGroupResponse(error, member_id=member.member_id))
        membership.answer_sync(step, draft, left, SyncGroupResponse(error))
    access.keep(step, draft)


def _watch(step: Step, group: ClassicGroup) -> None:
    """X-UP-08."""
    for member in group.members.values():
        step.set_timer(
            TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member.member_id),
            member.session_timeout,
        )


class _Read(NamedTuple):
    """A member, and what its bytes say: its assignment, and its subscription for the selected protocol."""

    member: Member
    share: Share
    subscription: Subscription


def _members(step: Step, group: ClassicGroup, members: list[Member]) -> list[ConsumerMember]:
    """X-UP-05."""
    found: list[_Read] = []
    taken: set[tuple[bytes, int]] = set()
    for member in members:
        found.append(_read(step, group, member))
        share = {(topic_id, each) for topic_id, numbers in found[-1].share.items() for each in numbers}
        if not taken.isdisjoint(share):
            raise InternalError  # two members have one partition (M-PE-02), told before what a later one is refused for
        taken |= share
    shares: Mapping[str, Share] = {each.member.member_id: each.share for each in found}
    if not step.profile.fault_upgrade_overlooks_owned:
        subscriptions = {each.member.member_id: each.subscription for each in found}
        shares = claims.taken_over(shares, subscriptions, step.topics)
    return [_member(step, group, each, shares[each.member.member_id]) for each in found]


def _read(step: Step, group: ClassicGroup, member: Member) -> _Read:
    """X-UP-06; Kafka does not foresee a member without metadata (X-UP-07), nor before 4.4 such a length (V-124)."""
    data = member.metadata(group.protocol_name)
    try:
        rows, user_data = decode_topics(member.assignment) if member.assignment else ([], None)
        if user_data:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)  # X-UP-02
        if data is None:
            raise InternalError
        subscription = decode_subscription(data)
        if not step.profile.fault_downgrade_reads_unread_metadata:
            for protocol in member.protocols:
                decode_subscription(protocol.metadata)  # X-DOWN-09, X-SYNC-07 mended
    except SchemaError as broken:
        if isinstance(broken, LengthError) and step.profile.fault_bad_subscription_is_thrown:
            raise InternalError from None
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND) from None
    return _Read(member, assigned(rows, step.topics), subscription)


def _member(step: Step, group: ClassicGroup, read: _Read, share: Share) -> ConsumerMember:
    """X-UP-05."""
    member, subscription = read.member, read.subscription
    known = 0 if step.profile.old_no_assignment_epochs else group.generation
    return ConsumerMember(
        member.member_id,
        member.instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout,
        frozenset(subscription.topics),
        classic=ClassicMemberMetadata(member.session_timeout, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=held(share.items(), known),
    )


def _records(step: Step, group: ClassicGroup, members: list[ConsumerMember]) -> list[Record]:
    """X-UP-10, without the tombstone of the classic group."""
    name, generation = group.group_id, group.generation
    names = frozenset[str]().union(*(member.topic_names for member in members))
    if step.profile.old_partition_metadata:
        before, metadata_hash = [records.partition_metadata(name, topics.metadata_rows(step.topics, names))], 0
    else:
        before, metadata_hash = [], topics.metadata_hash(step.functions.hash64, step.topics, names)
    return [
        *(records.member_metadata(name, member) for member in members),
        *before,
        records.group_epoch(name, generation, metadata_hash),
        *(
            records.target_member(
                name, member.member_id, {topic_id: tuple(each) for topic_id, each in member.assigned.items()}
            )
            for member in members
        ),
        records.target_epoch(name, generation, records.NO_TIMESTAMP),
        *(records.current_assignment(step, name, member) for member in members),
    ]
