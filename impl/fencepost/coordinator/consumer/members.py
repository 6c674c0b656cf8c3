"""The member that a heartbeat or a JoinGroup comes from (M-FENCE-*, M-STATIC-*).

A full group is checked first. Then the member is found or created, and its epoch must be accepted. A static member may
take the place of another one with its instance id. At last the member gets the values of the request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from fencepost.protocol.consumer_records import ClassicMemberMetadata
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.embedded import PROTOCOL_TYPE, Subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import JoinGroupRequest, Protocol
from fencepost.protocol.records import Record

from ..kernel.errors import Rejected
from ..kernel.step import Step
from . import records
from .group import ConsumerGroup, ConsumerGroupMember, Holding


class Found(NamedTuple):
    """The current member, or a new one. ``replaced`` is the static member whose place it takes (M-STATIC-03)."""

    member: ConsumerGroupMember
    replaced: ConsumerGroupMember | None = None


class HeartbeatClaim(NamedTuple):
    """The identity that a heartbeat claims, and the partitions that it claims to own (None: no claim)."""

    member_id: str
    epoch: int
    owned: Iterable[TopicPartitions] | None


def reject_if_group_is_full(step: Step, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """A full group accepts no member that has no place in it yet (M-VAL-25, M-VAL-30). Raises ``Rejected``."""
    if len(group.members) < step.settings.group_consumer_max_size:
        return
    returns = step.rules.static_member_has_place and instance_id in group.static_members  # M-VAL-28
    if member_id not in group.members and not returns:
        raise Rejected(ErrorCode.GROUP_MAX_SIZE_REACHED)


def reject_if_protocol_is_not_supported(
    group: ConsumerGroup, protocol_type: str, protocols: tuple[Protocol, ...]
) -> None:
    """All classic members must support one of the protocols of a JoinGroup; a name that is listed twice counts twice
    (X-JOIN-04, C-JOIN-72). Raises ``Rejected``."""
    supported = any(group.support.get(protocol.name, 0) == group.classic_members for protocol in protocols)
    if protocol_type != PROTOCOL_TYPE or not supported:
        raise Rejected(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def get_or_create_member(step: Step, group: ConsumerGroup, body: ConsumerGroupHeartbeatRequest) -> Found:
    """The member of a heartbeat. A member without an id gets one (M-VAL-26). Raises ``Rejected``."""
    member_id = body.member_id or step.choices.uuid()  # M-VAL-26
    claim = HeartbeatClaim(member_id, body.member_epoch, body.topic_partitions)
    if body.instance_id is None:
        return get_or_create_dynamic_member(step, group, claim)
    return get_or_create_static_member(step, group, body.instance_id, claim)


def get_or_create_dynamic_member(step: Step, group: ConsumerGroup, claim: HeartbeatClaim) -> Found:
    """The member of this id, or a new one (M-FENCE-01…07). Raises ``Rejected``; the member stays as it is
    (M-FENCE-08)."""
    member_id, epoch, _ = claim
    member = group.members.get(member_id)
    if member is None:
        if epoch != JOIN_EPOCH:
            raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)
        return Found(ConsumerGroupMember(member_id))
    check_epoch(step, member, claim)
    return Found(member)


def get_or_create_static_member(step: Step, group: ConsumerGroup, instance_id: str, claim: HeartbeatClaim) -> Found:
    """The member of this instance, a new one, or one that takes its place (M-STATIC-01…06, M-STATIC-15). Raises
    ``Rejected``."""
    member_id, epoch, _ = claim
    mapped = group.static_members.get(instance_id)
    holder = None if mapped is None else group.members.get(mapped)
    if epoch != JOIN_EPOCH:
        member = static_member(group, instance_id, member_id)
        check_epoch(step, member, claim)
        return Found(member)
    if mapped is None:
        return Found(group.members.get(member_id) or ConsumerGroupMember(member_id))  # M-STATIC-01
    if holder is None:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)  # M-STATIC-13
    if holder.epoch != STATIC_LEAVE_EPOCH and holder.classic is None:
        if holder.member_id == member_id and step.rules.static_member_may_rejoin:
            check_epoch(step, holder, claim)  # like any member that joins again (M-STATIC-02, M-FENCE-07)
            return Found(holder)
        raise Rejected(ErrorCode.UNRELEASED_INSTANCE_ID)
    has_place = holder.member_id != member_id and member_id in group.members
    if has_place and step.rules.present_member_replaces_none:  # its partitions would lose their owner (M-STATIC-15)
        raise Rejected(ErrorCode.UNRELEASED_INSTANCE_ID)
    return _replacing(holder, member_id)


def get_or_create_classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, *, fresh: bool
) -> Found:
    """The member of a JoinGroup. ``fresh``: the request had no id and got this one.

    X-JOIN-06…08, X-JOIN-12. Raises ``Rejected``.
    """
    if instance_id is None:
        return Found(group.members.get(member_id) or ConsumerGroupMember(member_id))
    if fresh and instance_id not in group.static_members:
        return Found(ConsumerGroupMember(member_id))
    if not fresh:
        return Found(static_member(group, instance_id, member_id))
    holder = group.members.get(group.static_members[instance_id])
    if holder is None:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)  # M-STATIC-13
    return _replacing(holder, member_id)


def _replacing(holder: ConsumerGroupMember, member_id: str) -> Found:
    """M-STATIC-03."""
    return Found(holder._replace(member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH), holder)


def static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerGroupMember:
    """The member of the instance, which must be the sender (M-STATIC-04, M-STATIC-05, M-LEAVE-02)."""
    mapped = group.static_members.get(instance_id)
    member = None if mapped is None else group.members.get(mapped)
    if member is None:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.member_id != member_id:
        raise Rejected(ErrorCode.FENCED_INSTANCE_ID)
    return member


def check_epoch(step: Step, member: ConsumerGroupMember, claim: HeartbeatClaim) -> None:
    """A known member may join again at any time; otherwise its epoch must be accepted (M-FENCE-03…07)."""
    if claim.epoch != JOIN_EPOCH or not step.rules.known_member_may_join:
        reject_wrong_epoch(member, claim)


def reject_wrong_epoch(member: ConsumerGroupMember, claim: HeartbeatClaim) -> None:
    """The epoch must be that of the member, or the one before if the answer with the new one may have been lost
    (M-FENCE-03…06); an epoch that was never stored is too new (F-CONS-05). Raises ``Rejected``."""
    epoch = claim.epoch
    if epoch > member.epoch:
        raise Rejected(ErrorCode.FENCED_MEMBER_EPOCH)
    if epoch < member.epoch and (epoch != member.previous_epoch or not _within(claim.owned, member.assigned)):
        raise Rejected(ErrorCode.FENCED_MEMBER_EPOCH)


def _within(owned: Iterable[TopicPartitions] | None, assigned: Holding) -> bool:
    if owned is None:
        return False
    return all(number in assigned.get(row.topic_id, {}) for row in owned for number in row.partitions)


def updated_member(
    request: Request, body: ConsumerGroupHeartbeatRequest, member: ConsumerGroupMember
) -> ConsumerGroupMember:
    """The member with the values of its heartbeat; values that are not sent stay (M-HB-01)."""
    names = body.subscribed_topic_names
    return member._replace(
        instance_id=member.instance_id if body.instance_id is None else body.instance_id,
        rack_id=member.rack_id if body.rack_id is None else body.rack_id,
        rebalance_timeout=member.rebalance_timeout if body.rebalance_timeout_ms == -1 else body.rebalance_timeout_ms,
        assignor=member.assignor if body.server_assignor is None else body.server_assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        regex=member.regex if body.subscribed_topic_regex is None else body.subscribed_topic_regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def updated_classic_member(
    request: Request, body: JoinGroupRequest, member: ConsumerGroupMember, subscription: Subscription, timeout: int
) -> ConsumerGroupMember:
    """The member with the values of its JoinGroup; the preferred assignor stays (X-JOIN-11, X-JOIN-13). ``timeout``:
    its rebalance timeout in ms."""
    return member._replace(
        instance_id=member.instance_id if body.group_instance_id is None else body.group_instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        rebalance_timeout=member.rebalance_timeout if timeout == -1 else timeout,
        topic_names=frozenset(subscription.topics),
        regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMemberMetadata(body.session_timeout_ms, body.protocols),
    )


def owned_partitions(
    step: Step, body: ConsumerGroupHeartbeatRequest, member: ConsumerGroupMember
) -> Iterable[TopicPartitions] | None:
    """The partitions that the member claims to own, None without a claim. The join of a known member may be older than
    its last assignment, so its "I own nothing" counts as no claim (M-FENCE-07). From a member that is new, or replaces
    one that left (M-REC-24), it is true."""
    there = member.epoch > JOIN_EPOCH and member.state is not MemberState.UNKNOWN  # M-REC-06
    joins_again = body.member_epoch == JOIN_EPOCH and there
    return None if joins_again and step.rules.join_confirms_nothing else body.topic_partitions


def member_records(step: Step, group: ConsumerGroup, found: Found, new: ConsumerGroupMember) -> list[Record]:
    """The records of a member with new values. A static member first takes over the place of the one with its instance
    id (M-STATIC-10, F-ORD-10). A member whose values are the same needs no record (M-HB-02)."""
    name, (old, replaced) = group.group_id, found
    written: list[Record] = []
    if replaced is not None:
        written = [
            *records.removed_member(name, replaced.member_id),
            records.member_metadata(name, old),
            records.target_member(name, old.member_id, group.target.get(replaced.member_id, {})),
            records.current_assignment(step.rules, name, old),
        ]  # F-ORD-10
    if new != old:
        written.append(records.member_metadata(name, new))
    return written
