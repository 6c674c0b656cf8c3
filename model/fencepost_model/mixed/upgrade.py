"""The conversion of a classic group to a consumer group (rule book, 9.2)."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.consumer_records import ClassicMemberMetadata
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupResponse, SyncGroupResponse
from fencepost.protocol.records import GroupMetadataKey

from ..classic.draft import Draft
from ..classic.state import Member as ClassicMember
from ..classic.subscription import CONSUMER
from ..consumer.group_step import GroupStep
from ..consumer.refusal import Refused
from ..consumer.state import Converted, Member, Partition, Target
from ..embedded import BadBytes, BadLength
from .embedded import read_assignment, read_subscription


def may_upgrade(t: GroupStep, d: Draft) -> bool:
    """Return whether the group may be upgraded, apart from its bytes (X-UP-02)."""
    return (
        t.settings.group_consumer_migration_policy.upgrades
        and d.protocol_type == CONSUMER
        and len(d.members) <= t.settings.group_consumer_max_size
    )


def upgrade(t: GroupStep, d: Draft) -> None:
    """Convert the group on a fresh turn, whose group is then the converted one (X-UP-02…08). Raises Refused.

    The caller answers the parked requests, once the whole request has succeeded (X-UP-03).
    """
    if t.variant.mixed.upgrade_needs_protocol and not all(_offers(d, each) for each in d.members.values()):
        raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "X-UP-07")
    converted: list[Converted] = []
    # not the exceptions: one raised from here would keep this frame alive
    errors: dict[str, tuple[ErrorCode, str]] = {}
    for _, classic in sorted(d.members.items()):
        try:
            converted.append(_converted(t, d, classic))
        except Refused as refused:
            errors[refused.error.name] = refused.error, refused.rule
    shared = [each for own in converted for each in own.assigned]
    if len(shared) != len(set(shared)):
        errors[ErrorCode.UNKNOWN_SERVER_ERROR.name] = ErrorCode.UNKNOWN_SERVER_ERROR, "X-UP-06"
    if errors:  # the first in the order of a hash map
        raise Refused(*errors[t.chooser.pick("refusal", sorted(errors))])
    t.rule("X-UP-04", "X-UP-05", "X-UP-10")
    brought = t.variant.mixed.brought_partitions(converted)
    epoch = d.generation if t.variant.consumer.stores_assignment_epochs else 0
    members = [
        own.member._replace(assigned=tuple([(*each, epoch) for each in brought[own.member.member_id]]))
        for own in converted
    ]
    t.write(GroupMetadataKey(t.group_id), None)
    prefix = len(t.records)
    for member in members:
        t.write_member(member)
    t.write_epoch(d.generation, t.topics(members), new=True)
    for member in members:
        t.write_target(member.member_id, brought[member.member_id])
    t.write_target_epoch(d.generation, 0)
    for member in members:
        t.write_current(member)
    t.apply_upgrade(prefix)
    for member in members:
        t.arm_member_session(member)  # X-UP-08


def answer_parked_requests(d: Draft) -> None:
    """Answer all parked requests REBALANCE_IN_PROGRESS (X-UP-03)."""
    d.rule("X-UP-03")
    for member in list(d.members.values()):
        now = d.answer_join(
            member, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
        )
        d.answer_sync(now, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))


def brought_partitions(converted: Sequence[Converted]) -> dict[str, Target]:
    """Return the partitions that each member brings (X-UP-05): its assignment, and its claims to unassigned
    partitions. Of several claims the one with the latest generation counts (C-JOIN-42)."""
    owners = {each: own.member.member_id for own in converted for each in own.assigned}
    for own in sorted(converted, key=lambda own: (-own.generation, own.member.member_id)):
        for each in own.claims:
            owners.setdefault(each, own.member.member_id)
    brought: dict[str, list[Partition]] = {own.member.member_id: [] for own in converted}
    for each, member_id in sorted(owners.items()):
        brought[member_id].append(each)
    return {member_id: tuple(partitions) for member_id, partitions in brought.items()}


def _offers(d: Draft, member: ClassicMember) -> bool:
    """Return whether the member offers the group's selected protocol (X-UP-07)."""
    return any(each.name == d.protocol_name for each in member.protocols)


def _converted(t: GroupStep, d: Draft, member: ClassicMember) -> Converted:
    """Convert a member (X-UP-05). Raises Refused for the first of several reasons: the assignment is read before the
    metadata."""
    try:
        assigned, custom = read_assignment(member.assignment, t.environment.image)
    except BadBytes as broken:
        raise _unreadable(t, broken) from None
    if custom:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, "X-UP-02")
    if not _offers(d, member):
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "X-UP-07")
    try:
        wanted = read_subscription(d.metadata(member), t.environment.image)
        if t.variant.mixed.checks_all_metadata:  # a downgrade may need any of them (X-DOWN-09)
            for protocol in member.protocols:
                read_subscription(protocol.metadata, t.environment.image)
    except BadBytes as broken:
        raise _unreadable(t, broken) from None
    new = Member(
        member.member_id,
        member.instance,
        wanted.rack,
        member.client_id,
        member.client_host,
        member.rebalance_timeout,
        wanted.names,
        classic=ClassicMemberMetadata(member.session_timeout, member.protocols),
        epoch=d.generation,
        previous=d.generation,
    )
    return Converted(new, assigned, wanted.owned, -1 if wanted.generation is None else wanted.generation)


def _unreadable(t: GroupStep, broken: BadBytes) -> Refused:
    """Return the error for bytes that cannot be read (X-UP-06)."""
    bad_length = isinstance(broken, BadLength)
    return Refused(t.variant.mixed.bad_length if bad_length else ErrorCode.GROUP_ID_NOT_FOUND, "X-UP-06")
