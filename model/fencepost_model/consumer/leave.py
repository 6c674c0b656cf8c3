"""Leave, fence and expiry of members of a consumer group (rule book, 7.8, 7.9)."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.consumer_messages import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.consumer_records import ConsumerGroupRegularExpressionKey
from fencepost.protocol.errors import ErrorCode

from ..mixed.downgrade import downgrade, must_downgrade
from ..widths import next_epoch
from .derive import used_regexes
from .group_step import GroupStep
from .refusal import Refused
from .state import REBALANCE, Expire, Held, Member


def leave(t: GroupStep, body: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """Handle epoch -1 or -2 (M-LEAVE-02). The member's epoch is not checked. Raises Refused."""
    member = find_leaving_member(t, body.member_id, body.instance_id)
    if body.member_epoch == STATIC_LEAVE_EPOCH:
        t.rule("M-LEAVE-05")
        t.write_current(
            member._replace(epoch=STATIC_LEAVE_EPOCH, assigned=without_assignment_epochs(member), revoking=())
        )
        epoch = STATIC_LEAVE_EPOCH
    else:
        fence_members(t, [member])
        epoch = LEAVE_EPOCH
    t.rule("M-RSP-04")
    return ConsumerGroupHeartbeatResponse(ErrorCode.NONE, member_id=body.member_id, member_epoch=epoch)


def without_assignment_epochs(member: Member) -> Held:
    """Return A with assignment epochs 0, so a replacement may commit with any epoch (M-PE-07)."""
    return tuple([(topic, number, 0) for topic, number, _ in member.assigned])


def find_leaving_member(t: GroupStep, member_id: str, instance: str | None) -> Member:
    """Return the member that leaves. Raises Refused."""
    mapped: str | None = member_id
    if instance is not None:
        mapped = t.group.held_by(instance)
    member = None if mapped is None else t.group.member(mapped)
    if member is None:  # an instance id may map to a missing member (M-STATIC-13)
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "M-LEAVE-02")
    if mapped != member_id:
        raise Refused(ErrorCode.FENCED_INSTANCE_ID, "M-LEAVE-02")
    return member


def fence_members(t: GroupStep, leavers: Iterable[Member]) -> None:
    """Remove the members and bump the group epoch; no target is computed (M-LEAVE-03, F-ORD-07, M-TGT-07)."""
    gone = {member.member_id for member in leavers}
    if must_downgrade(t, gone):
        t.rule("X-DOWN-01", "X-DOWN-06")
        downgrade(t, t.group, gone, None)
        t.rebalances = True
        return
    t.rule("M-LEAVE-03")
    for member_id in sorted(gone):
        t.write_member_tombstones(member_id)
        t.cancel_timers(member_id)
    rest = tuple([member for member in t.group.members if member.member_id not in gone])
    used = used_regexes(rest)
    for regex in sorted(used_regexes([m for m in t.group.members if m.member_id in gone])):
        if regex not in used:
            t.write(ConsumerGroupRegularExpressionKey(t.group_id, regex), None)
    epoch = next_epoch(t.group.epoch)
    t.write_epoch(epoch, t.topics(rest))
    if not rest and t.variant.consumer.empty_group_reaches_target:
        t.rule("M-LEAVE-08")
        t.write_target_epoch(epoch, 0)


def expired_member(t: GroupStep, step: Expire) -> Member | None:
    """Return the member whose timer expired, or None if the timer has no effect any more (M-TMR-01, 02)."""
    member = t.group.member(step.member_id)
    if member is None or (step.kind == REBALANCE and member.epoch != step.epoch):
        return None
    t.rule("M-LEAVE-07")
    return member
