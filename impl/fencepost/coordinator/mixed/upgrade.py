"""A consumer group replaces a classic one (9.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fencepost.hash_order import texts
from fencepost.protocol.consumer_records import ClassicMemberMetadata
from fencepost.protocol.embedded import (
    PROTOCOL_TYPE,
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
from fencepost.quirks import varies

from ..classic import access, membership
from ..classic import records as classic_records
from ..classic.draft import GroupDraft
from ..classic.group import ClassicGroup, Member
from ..consumer import metadata, records, topics
from ..consumer.group import ConsumerGroup, ConsumerMember, Share, held
from ..kernel.errors import InternalError, Refused
from ..kernel.replay import Replay
from ..kernel.step import Step
from . import claims
from .embedded import assigned, require_readable


def upgraded(step: Step, group: ClassicGroup, written: list[Record]) -> ConsumerGroup:
    """The consumer group that would replace this one; its records are added to ``written``.

    X-UP-01…08, F-ORD-08, INV-CONV-01. Raises ``Refused`` and ``InternalError``.
    """
    settings = step.settings
    if (
        not settings.group_consumer_migration_policy.upgrades
        or group.protocol_type != PROTOCOL_TYPE
        or len(group.members) > settings.group_consumer_max_size
    ):
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)  # X-UP-02
    require_protocol(step, group)
    return converted(step, group, written)


@varies
def require_protocol(step: Step, group: ClassicGroup) -> None:
    """In its first rebalance a group has no protocol that says how to read the subscriptions of its members, so the
    sender has to try again (X-UP-07). Raises ``Refused``."""
    if any(member.metadata(group.protocol_name) is None for member in group.members.values()):
        raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


@varies
def converted(step: Step, group: ClassicGroup, written: list[Record]) -> ConsumerGroup:
    """The group as its records define it, built from the bytes of the members (X-UP-04…06, X-UP-10).

    Raises ``Refused``, ``InternalError``.
    """
    in_order = texts(group.members)  # of several members that cannot be converted, Kafka reports the first
    members = _members(step, group, [group.members[member_id] for member_id in in_order])
    said = _records(step, group, members)
    work = Replay({}, step.quirks, step.memory.incarnations, step.appliers)
    for record in said:
        work.apply(record)
    written += [classic_records.tombstone(group.group_id), *said]  # F-ORD-08
    result = work.groups()[group.group_id]
    assert isinstance(result, ConsumerGroup)
    return result


def _under_way(step: Step, group_id: str) -> ClassicGroup | None:
    """The classic group that this request is about to replace, if it has members (an empty one is removed,
    M-VAL-22)."""
    group = step.memory.groups.get(group_id)
    return group if isinstance(group, ClassicGroup) and group.state is not GroupState.EMPTY else None


@varies
def must_bump(step: Step, group_id: str) -> bool:
    """Whether the request upgrades a group: the group may have been in a rebalance, and has one in its new kind
    (X-UP-15, LIV-16)."""
    return _under_way(step, group_id) is not None


@varies
def accepted(step: Step, group_id: str) -> None:
    """All checks have passed: answer the waiting requests now (X-UP-03, X-UP-09)."""
    group = _under_way(step, group_id)
    if group is not None:
        answer_parked(step, group)
        watch(step, group)


def answer_parked(step: Step, group: ClassicGroup) -> None:
    """Answer the requests that wait in the classic group: their members have to join again. A later failure does not
    undo this (X-UP-03, M-HB-13)."""
    draft = GroupDraft(group)
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in list(draft.members.values()):
        left = membership.answer_join(step, draft, member, JoinGroupResponse(error, member_id=member.member_id))
        membership.answer_sync(step, draft, left, SyncGroupResponse(error))
    access.keep(step, draft)


def watch(step: Step, group: ClassicGroup) -> None:
    """Set the session timers of a consumer group for the members (X-UP-08)."""
    for member in group.members.values():
        step.timers.set(
            TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member.member_id),
            member.session_timeout,
        )


class ReadMember(NamedTuple):
    """A member with the content of its bytes: its assignment, and its subscription for the selected protocol."""

    member: Member
    share: Share
    subscription: Subscription


def _members(step: Step, group: ClassicGroup, members: list[Member]) -> list[ConsumerMember]:
    """The members in the form of a consumer group. Raises ``Refused``, ``InternalError`` (X-UP-05, X-UP-06)."""
    found: list[ReadMember] = []
    taken: set[tuple[bytes, int]] = set()
    for member in members:
        found.append(_read(step, group, member))
        share = {(topic_id, each) for topic_id, numbers in found[-1].share.items() for each in numbers}
        if not taken.isdisjoint(share):
            raise InternalError  # two members have one partition (M-PE-02); it takes precedence over later refusals
        taken |= share
    shares = shares_of(step, found)
    return [_member(step, group, each, shares[each.member.member_id]) for each in found]


@varies
def shares_of(step: Step, found: Sequence[ReadMember]) -> Mapping[str, Share]:
    """By member id, the assignments, and partitions that cooperative members still own (X-UP-05)."""
    shares = {each.member.member_id: each.share for each in found}
    return claims.taken_over(shares, {each.member.member_id: each.subscription for each in found}, step.topics)


def _read(step: Step, group: ClassicGroup, member: Member) -> ReadMember:
    """The content of a member's bytes. Raises ``Refused`` if they are unreadable or contain user data (X-UP-06)."""
    try:
        rows, user_data = decode_topics(member.assignment) if member.assignment else ([], None)
        if user_data:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)  # X-UP-02
        subscription = decode_subscription(selected_metadata(step, group, member))
        require_readable(step, member.protocols)
    except SchemaError as broken:
        raise unreadable(step, broken) from None
    return ReadMember(member, assigned(rows, step.topics), subscription)


@varies
def selected_metadata(step: Step, group: ClassicGroup, member: Member) -> bytes:
    """The member's metadata for the protocol of the group, which has one by now (X-UP-07)."""
    said = member.metadata(group.protocol_name)
    assert said is not None
    return said


@varies
def unreadable(step: Step, broken: SchemaError) -> Refused | InternalError:
    """The error of an upgrade for bytes that cannot be read (X-UP-06)."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND)


def _member(step: Step, group: ClassicGroup, read: ReadMember, share: Share) -> ConsumerMember:
    """A classic member as a member of the consumer group: up to date with it, at its earlier generation (X-UP-05)."""
    member, subscription = read.member, read.subscription
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
        assigned=held(share.items(), group.generation),
    )


def _records(step: Step, group: ClassicGroup, members: list[ConsumerMember]) -> list[Record]:
    """All records of the group except the tombstone of the classic one (X-UP-10)."""
    name, generation = group.group_id, group.generation
    names = frozenset[str]().union(*(member.topic_names for member in members))
    facts = topics_as_known(step, name, names)
    return [
        *(records.member_metadata(name, member) for member in members),
        *facts.before,
        records.group_epoch(name, generation, facts.hash),
        *(
            records.target_member(
                name, member.member_id, {topic_id: tuple(each) for topic_id, each in member.assigned.items()}
            )
            for member in members
        ),
        records.target_epoch(name, generation, records.NO_TIMESTAMP),
        *(records.current_assignment(step, name, member) for member in members),
    ]


@varies
def topics_as_known(step: Step, group_id: str, names: Iterable[str]) -> metadata.Facts:
    """The topics as the new group knows them at first (X-UP-10, M-META-07)."""
    return metadata.Facts(topics.metadata_hash(step.functions.hash64, step.topics, names), True, [])
