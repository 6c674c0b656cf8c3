"""The group of a ConsumerGroupHeartbeat: a known consumer group, a new one, or one that replaces a classic one (9.2).

An empty classic group is removed by its tombstone. One with members is upgraded if that is allowed: the records of a
consumer group are made from the bytes of its members. Nothing changes before the heartbeat has passed all checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fencepost.hash_order import texts
from fencepost.protocol.consumer_messages import JOIN_EPOCH, ConsumerGroupHeartbeatRequest, TopicPartitions
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

from ..classic import records as classic_records
from ..classic.group import ClassicGroup, ClassicMember, GroupDraft, answer_join, answer_sync, keep_group
from ..consumer import records
from ..consumer.group import ConsumerGroup, ConsumerGroupMember, Share, new_group
from ..consumer.group_epoch import TopicsLook
from ..kernel.errors import InternalError, Rejected
from ..kernel.replay_context import Replay
from ..kernel.rules import Rules
from ..kernel.state import Group
from ..kernel.step import Step
from ..kernel.topics import metadata_hash
from .embedded import assigned, owned_rows, require_readable


class OpenedGroup(NamedTuple):
    """The group of a heartbeat. If it did not exist, or was of another kind: the records that create it, and whether
    the new group has to begin an epoch (M-VAL-22, X-UP-15). ``upgraded``: the classic group with members that it
    replaces."""

    group: ConsumerGroup
    records: Sequence[Record] = ()
    must_bump: bool = False
    upgraded: ClassicGroup | None = None


class Upgrade(NamedTuple):
    """The consumer group that replaces a classic one, and the records that say so."""

    group: ConsumerGroup
    records: Sequence[Record]


def get_or_create_consumer_group(step: Step, body: ConsumerGroupHeartbeatRequest) -> OpenedGroup:
    """The consumer group for a heartbeat, created or upgraded if necessary (M-VAL-20…24). Raises ``Rejected``,
    ``InternalError``."""
    name = body.group_id
    group = step.memory.groups.get(name)
    if isinstance(group, ConsumerGroup):
        return OpenedGroup(group)
    if body.member_epoch != JOIN_EPOCH:
        raise Rejected(ErrorCode.GROUP_ID_NOT_FOUND)  # M-VAL-20, M-VAL-24
    removed: list[Record] = []
    if isinstance(group, ClassicGroup):
        if group.state is not GroupState.EMPTY:
            upgraded = upgrade(step, group)
            must_bump = step.rules.upgrade_bumps  # the group may have been in a rebalance (X-UP-15, LIV-16)
            return OpenedGroup(upgraded.group, upgraded.records, must_bump, group)  # M-VAL-23
        removed = [classic_records.tombstone(name)]  # M-VAL-22, X-POL-05
    generation = 0 if group is None else left_off(step.rules, group)
    fresh = new_group(step.rules, name, step.memory.incarnations, generation)  # M-VAL-21
    return OpenedGroup(fresh, removed, generation > 0)  # M-VAL-22: a record must say where its count starts


def left_off(rules: Rules, group: Group) -> int:
    """The generation or epoch of an empty group. The group that replaces it continues from there, so that no member
    gets the same one twice (C-JOIN-16, M-VAL-22, INV-CONV-01)."""
    return group.current_epoch if rules.epochs_continue else 0


def upgrade(step: Step, group: ClassicGroup) -> Upgrade:
    """The consumer group that would replace this one (X-UP-01…08, F-ORD-08, INV-CONV-01). Raises ``Rejected`` and
    ``InternalError``."""
    settings = step.settings
    if (
        not settings.group_consumer_migration_policy.upgrades
        or group.protocol_type != PROTOCOL_TYPE
        or len(group.members) > settings.group_consumer_max_size
    ):
        raise Rejected(ErrorCode.GROUP_ID_NOT_FOUND)  # X-UP-02
    return convert(step, group)


def _require_protocol(group: ClassicGroup) -> None:
    """In its first rebalance a group has no protocol that says how to read the subscriptions of its members, so the
    sender has to try again (X-UP-07). Raises ``Rejected``."""
    if any(member.metadata(group.protocol_name) is None for member in group.members.values()):
        raise Rejected(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


@varies
def convert(step: Step, group: ClassicGroup) -> Upgrade:
    """The group as its records define it, built from the bytes of the members (X-UP-04…07, X-UP-10).

    Raises ``Rejected``, ``InternalError``.
    """
    if step.rules.upgrade_needs_protocol:
        _require_protocol(group)
    in_order = texts(group.members)  # of several members that cannot be converted, Kafka reports the first
    members = _members(step, group, [group.members[member_id] for member_id in in_order])
    written = _records(step, group, members)
    replayed = Replay({}, step.rules, step.memory.incarnations, step.appliers)
    for record in written:
        replayed.apply(record)
    result = replayed.groups()[group.group_id]
    if not isinstance(result, ConsumerGroup):
        raise InternalError
    return Upgrade(result, [classic_records.tombstone(group.group_id), *written])  # F-ORD-08


def release_classic_members(step: Step, group: ClassicGroup) -> None:
    """All checks have passed: watch the members in their new group, and answer their waiting requests (X-UP-03,
    X-UP-09)."""
    if step.rules.upgrade_answers_last:
        watch(step, group)
        answer_parked(step, group)


def answer_parked(step: Step, group: ClassicGroup) -> None:
    """Answer the requests that wait in the classic group: their members have to join again. A later failure does not
    undo this (X-UP-03, M-HB-13)."""
    draft = GroupDraft(group)
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in list(draft.members.values()):
        left = answer_join(step, draft, member, JoinGroupResponse(error, member_id=member.member_id))
        answer_sync(step, draft, left, SyncGroupResponse(error))
    keep_group(step, draft)


def watch(step: Step, group: ClassicGroup) -> None:
    """Set the session timers of a consumer group for the members (X-UP-08)."""
    for member in group.members.values():
        step.timers.set(
            TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member.member_id),
            member.session_timeout,
        )


class ReadMember(NamedTuple):
    """A member with the content of its bytes: its assignment, its subscription for the selected protocol, and the
    partitions that it claims to own."""

    member: ClassicMember
    share: Share
    subscription: Subscription
    owned: Sequence[TopicPartitions]


def _members(step: Step, group: ClassicGroup, members: list[ClassicMember]) -> list[ConsumerGroupMember]:
    """The members in the form of a consumer group. Raises ``Rejected``, ``InternalError`` (X-UP-05, X-UP-06)."""
    found: list[ReadMember] = []
    assigned_before: set[tuple[bytes, int]] = set()
    for member in members:
        found.append(_read(step, group, member))
        share = {(topic_id, each) for topic_id, numbers in found[-1].share.items() for each in numbers}
        if not assigned_before.isdisjoint(share):
            raise InternalError  # two members have one partition (M-PE-02); it takes precedence over later refusals
        assigned_before |= share
    shares = shares_of(step, found)
    return [_member(step, group, each, shares[each.member.member_id]) for each in found]


@varies
def shares_of(step: Step, found: Sequence[ReadMember]) -> Mapping[str, Share]:
    """By member id, the assignments, and partitions that cooperative members still own (X-UP-05)."""
    shares = {each.member.member_id: each.share for each in found}
    return taken_over(shares, found)


def taken_over(shares: Mapping[str, Share], found: Iterable[ReadMember]) -> Mapping[str, Share]:
    """The assignments that an upgrade takes over, by member id: ``shares``, and claimed partitions that are unassigned.

    X-UP-05 fixed, C-JOIN-42. A partition that several members claim belongs to the one with the highest generation,
    then with the smallest member id.
    """
    result = {member_id: dict(share) for member_id, share in shares.items()}
    assigned_before = {(topic_id, each) for share in shares.values() for topic_id in share for each in share[topic_id]}
    for read in sorted(found, key=lambda each: (-each.subscription.generation_id, each.member.member_id)):
        share = result[read.member.member_id]
        for row in read.owned:
            free = [each for each in row.partitions if (row.topic_id, each) not in assigned_before]
            if free:
                share[row.topic_id] = tuple(sorted((*share.get(row.topic_id, ()), *free)))
                assigned_before |= {(row.topic_id, each) for each in free}
    return result


def _read(step: Step, group: ClassicGroup, member: ClassicMember) -> ReadMember:
    """The content of a member's bytes. Raises ``Rejected`` if they are unreadable or contain user data (X-UP-06)."""
    try:
        rows, user_data = decode_topics(member.assignment) if member.assignment else ([], None)
        if user_data:
            raise Rejected(ErrorCode.GROUP_ID_NOT_FOUND)  # X-UP-02
        subscription = decode_subscription(selected_metadata(step, group, member))
        require_readable(step.rules, member.protocols)
    except SchemaError as broken:
        raise unreadable(step, broken) from None
    owned = owned_rows(subscription.owned_partitions, step.topics)
    return ReadMember(member, assigned(rows, step.topics), subscription, owned)


@varies
def selected_metadata(step: Step, group: ClassicGroup, member: ClassicMember) -> bytes:
    """The member's metadata for the protocol of the group, which has one by now (X-UP-07)."""
    said = member.metadata(group.protocol_name)
    assert said is not None
    return said


@varies
def unreadable(step: Step, broken: SchemaError) -> Rejected | InternalError:
    """The error of an upgrade for bytes that cannot be read (X-UP-06)."""
    return Rejected(ErrorCode.GROUP_ID_NOT_FOUND)


def _member(step: Step, group: ClassicGroup, read: ReadMember, share: Share) -> ConsumerGroupMember:
    """A classic member as a member of the consumer group: up to date with it, at its earlier generation (X-UP-05)."""
    member, subscription = read.member, read.subscription
    return ConsumerGroupMember(
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
        assigned={topic_id: dict.fromkeys(numbers, group.generation) for topic_id, numbers in share.items()},
    )


def _records(step: Step, group: ClassicGroup, members: list[ConsumerGroupMember]) -> list[Record]:
    """All records of the group except the tombstone of the classic one (X-UP-10)."""
    name, generation = group.group_id, group.generation
    names = frozenset[str]().union(*(member.topic_names for member in members))
    topics = topics_as_known(step, name, names)
    return [
        *(records.member_metadata(name, member) for member in members),
        *topics.before,
        records.group_epoch(name, generation, topics.hash),
        *(
            records.target_member(
                name, member.member_id, {topic_id: tuple(each) for topic_id, each in member.assigned.items()}
            )
            for member in members
        ),
        records.target_epoch(name, generation, records.NO_TIMESTAMP),
        *(records.current_assignment(step.rules, name, member) for member in members),
    ]


@varies
def topics_as_known(step: Step, group_id: str, names: Iterable[str]) -> TopicsLook:
    """The topics as the new group knows them at first (X-UP-10, M-META-07)."""
    return TopicsLook(metadata_hash(step.functions.hash64, step.topics, names), True, [])
