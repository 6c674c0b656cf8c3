"""Classic members of a consumer group: identification, and whether a member has to join again (9.4)."""

from __future__ import annotations

from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.quirks import varies

from ..consumer import target
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember
from ..consumer.members import static_member
from ..consumer.reconcile import is_free
from ..kernel.errors import Rejected
from ..kernel.step import Step


def asking(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    """The member that sent a SyncGroup or a Heartbeat: it must exist, use the classic protocol, and be at this
    generation (X-SYNC-01…03, X-HB-01). Raises ``Rejected``."""
    if instance_id is not None:
        member = static_member(group, instance_id, member_id)
    elif member_id in group.members:
        member = group.members[member_id]
    else:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.classic is None:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != generation:
        raise Rejected(ErrorCode.ILLEGAL_GENERATION)
    return member


@varies
def is_behind(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether there is a newer target than the member's, or its rejoin would make one (X-SYNC-05, X-HB-03, LIV-14)."""
    if member.epoch < group.assignment_epoch:
        return True
    return group.assignment_epoch < group.epoch and target.allowed(step, group)


def should_rejoin(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a member that sends a request has to join again: it has to revoke something, can get more of its target,
    or is behind (X-HB-03, X-HB-07)."""
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS if not _waits(group, member):
            return True
    return is_behind(step, group, member)


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether other members still hold what the member lacks of its target."""
    return any(
        partition not in member.assigned.get(topic_id, {}) and not is_free(group, topic_id, partition)
        for topic_id, partitions in group.target.get(member.member_id, NO_SHARE).items()
        for partition in partitions
    )


def watch_session(step: Step, group_id: str, member: ConsumerMember) -> None:
    """Start the session timeout of the member, taken from its own JoinGroup (X-TMR-01)."""
    assert member.classic is not None
    key = TimerKey(TimerKind.CONSUMER_SESSION, group_id, member.member_id)
    step.timers.set(key, member.classic.session_timeout_ms)


def expect_join(step: Step, group_id: str, member: ConsumerMember) -> None:
    """Start the rebalance timeout within which the member has to join; repeated requests do not extend it
    (X-TMR-02)."""
    key = TimerKey(TimerKind.CONSUMER_JOIN, group_id, member.member_id)
    if step.timers.armed(key) is None:
        step.timers.set(key, member.rebalance_timeout)
