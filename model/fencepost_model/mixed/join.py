"""JoinGroup to a consumer group with members (rule book, 9.3)."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from fencepost.protocol.consumer_records import ClassicMemberMetadata
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse
from fencepost.protocol.settings import MigrationPolicy

from ..classic.subscription import CONSUMER
from ..consumer.found import Found
from ..consumer.group_step import GroupStep
from ..consumer.heartbeat import bump_and_reconcile, check_capacity, replace_member
from ..consumer.refusal import Refused
from ..consumer.rows import without_epochs
from ..consumer.state import JOIN, SESSION, SYNC, Member, Partition, Timer
from ..embedded import BadBytes
from .downgrade import downgrade, is_owed_partitions, must_downgrade
from .embedded import Wanted, read_subscription


class Joined(NamedTuple):
    """The answer, its timers (X-JOIN-20), and whether a new classic group rebalances at once."""

    body: JoinGroupResponse
    timers: dict[Timer, int | None]
    rebalances: bool = False


def join(t: GroupStep, request: Request, body: JoinGroupRequest, new_id: str) -> Joined:
    """Handle a JoinGroup (X-JOIN-02…20). Raises Refused."""
    check_join(t, body, body.member_id or new_id)
    member_id = body.member_id or new_id
    if body.group_instance_id is None and not body.member_id and request.version >= 4:
        t.rule("X-JOIN-05")
        return Joined(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id), {})
    holder = None if body.group_instance_id is None else t.group.held_by(body.group_instance_id)
    before = None if holder is None else t.group.member(holder)
    found = find_member(t, body, member_id)
    wanted = None
    try:
        wanted = read_subscription(body.protocols[0].metadata, t.environment.image)
        if t.variant.mixed.checks_all_metadata:
            for protocol in body.protocols[1:]:
                t.rule("X-DOWN-09")
                read_subscription(protocol.metadata, t.environment.image)
    except BadBytes:
        raise Refused(t.variant.mixed.malformed_join, "X-JOIN-09") from None
    owned: frozenset[Partition] | None = wanted.owned
    if body.member_id and t.variant.mixed.checks_generation:
        owned = confirmed_partitions(t, body.member_id, wanted)
    updated = found.member._replace(
        instance=body.group_instance_id if body.group_instance_id is not None else found.member.instance,
        rack=wanted.rack if wanted.rack is not None else found.member.rack,
        rebalance_timeout=body.rebalance_timeout_ms,
        names=wanted.names,
        regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMemberMetadata(body.session_timeout_ms, body.protocols),
    )
    t.rule("X-JOIN-10", "X-JOIN-11")
    is_downgrade = before is not None and before.classic is None and must_downgrade(t, {before.member_id}, joiners=1)
    rest = [each for each in t.group.members if each is not before]
    owes_partitions = t.variant.mixed.pays_what_it_owes and any(is_owed_partitions(t, each) for each in rest)
    after, behind = bump_and_reconcile(
        t, found, updated, owned, is_join=True, is_downgrade=is_downgrade, owes_partitions=owes_partitions
    )
    timers: dict[Timer, int | None] = {Timer(JOIN, member_id): None}
    if is_downgrade and before is not None:
        t.rule("X-DOWN-20", "X-DOWN-21")
        if before.instance != updated.instance:  # M-STATIC-13: Kafka leaves out a member with the joiner's instance id
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "X-DOWN-20")
        share = t.variant.mixed.downgraded_assignment(t, t.group, after, before.member_id)
        group = t.updated_group()
        assert group is not None
        downgrade(t, group, {before.member_id} - {member_id}, (after, share))
    else:
        timers[Timer(SESSION, member_id)] = body.session_timeout_ms
        timers[Timer(SYNC, member_id)] = body.rebalance_timeout_ms
    answer = JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=after.epoch,
        protocol_type=CONSUMER,
        protocol_name=body.protocols[0].name,
        leader="",
        member_id=member_id,
        members=(),
    )
    return Joined(answer, timers, is_downgrade and behind)


def check_join(t: GroupStep, body: JoinGroupRequest, member_id: str) -> None:
    """Check policy, capacity and protocols (X-POL-04, X-JOIN-03, 04). Raises Refused."""
    policy = t.settings.group_consumer_migration_policy
    if policy is MigrationPolicy.DISABLED and t.variant.mixed.disabled_policy_refuses:
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "X-POL-04")
    check_capacity(t, member_id, body.group_instance_id)
    classic = [member.classic for member in t.group.members if member.classic is not None]
    # a name listed twice counts twice
    counts = Counter(own.name for each in classic for own in each.supported_protocols)
    if body.protocol_type != CONSUMER or all(counts[each.name] != len(classic) for each in body.protocols):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "X-JOIN-04")


def confirmed_partitions(t: GroupStep, member_id: str, wanted: Wanted) -> frozenset[Partition] | None:
    """Return the owned partitions of a member in step (X-JOIN-06, 10, 12). None if the list confirms nothing
    (M-REC-18), as it was written before the answer with the current epoch. Raises Refused."""
    generation, owned = wanted.generation, wanted.owned
    member = t.group.member(member_id)
    assigned = frozenset(() if member is None else without_epochs(member.assigned))
    revoking = frozenset(() if member is None else without_epochs(member.revoking))
    if (generation is None and owned <= assigned | revoking) or (member is not None and generation == member.epoch):
        return owned
    if member is not None and generation == member.previous and owned <= assigned:
        return None
    raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "X-JOIN-12")


def find_member(t: GroupStep, body: JoinGroupRequest, member_id: str) -> Found:
    """Return the member of the request (X-JOIN-06…08). Epochs are not checked."""
    instance = body.group_instance_id
    known = t.group.member(member_id) or Member(member_id)
    if instance is None:
        t.rule("X-JOIN-06")
        return Found(known)
    mapped = t.group.held_by(instance)
    if mapped is None:
        if body.member_id:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "X-JOIN-08")
        t.rule("X-JOIN-07")
        return Found(known)
    holder = t.group.member(mapped)
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "M-STATIC-13")
    if not body.member_id:
        t.rule("X-JOIN-07")
        return replace_member(t, holder, member_id)
    if mapped != member_id:
        raise Refused(ErrorCode.FENCED_INSTANCE_ID, "X-JOIN-08")
    return Found(holder)
