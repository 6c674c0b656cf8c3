"""Timers of the members of a consumer group (M-TMR-*)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fencepost.protocol.consumer_messages import STATIC_LEAVE_EPOCH
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind

from ..kernel.group_configs import consumer_session_timeout
from ..kernel.operations import FailedByTimeout
from ..kernel.persistent import exchanged
from ..kernel.step import Step
from .group import ConsumerGroup, ConsumerGroupMember

#: The timers that may be set for a member of a consumer group, and may end its membership (M-LEAVE-03).
KINDS: Final = (
    TimerKind.CONSUMER_SESSION,
    TimerKind.CONSUMER_REBALANCE,
    TimerKind.CONSUMER_JOIN,
    TimerKind.CONSUMER_SYNC,
)
#: The delay before a timer whose work failed fires again, in ms (M-TMR-08).
RETRY_MS = 500


@dataclass(frozen=True, slots=True)
class TimerRan(FailedByTimeout):
    """The run of a member's timer, with the epoch at which it was set. The timer is set again if its records are not in
    the log in time (M-TMR-08)."""

    key: TimerKey
    epoch: int

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """The records of the timer are not in the log, so set it again, unless the partition was lost."""
        if error is not ErrorCode.NOT_COORDINATOR:
            retry(step, self.key, self.epoch)


def schedule_session_timeout(step: Step, group_id: str, member_id: str) -> None:
    """Fence the member unless it sends a request within its session timeout (M-TMR-01, M-HB-09)."""
    step.timers.set(TimerKey(TimerKind.CONSUMER_SESSION, group_id, member_id), consumer_session_timeout(step, group_id))


def schedule_rebalance_timeout(step: Step, group_id: str, member: ConsumerGroupMember) -> None:
    """Fence the member unless it revokes its partitions in time (M-TMR-02, M-TMR-05). The timer acts only if the member
    still has this epoch when it fires."""
    key = TimerKey(TimerKind.CONSUMER_REBALANCE, group_id, member.member_id)
    step.timers.set(key, member.rebalance_timeout, epoch=member.epoch)


def cancel_timers(step: Step, group_id: str, member_id: str) -> None:
    """Cancel all timers of the member."""
    for kind in KINDS:
        step.timers.cancel(TimerKey(kind, group_id, member_id))


def retry(step: Step, key: TimerKey, epoch: int) -> None:
    """The records of the timer were not appended, so it fires again a little later (M-TMR-08); it replaces a timer that
    was set since."""
    step.timers.set(key, RETRY_MS, epoch=epoch)


def schedule_or_cancel_rebalance_timeout(step: Step, group_id: str, member: ConsumerGroupMember) -> None:
    """Set or cancel the rebalance timer after a heartbeat changed the assignment of the member (M-TMR-02). No other
    member has this timer (M-TMR-06, M-TMR-07, X-JOIN-21)."""
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        schedule_rebalance_timeout(step, group_id, member)
    else:
        step.timers.cancel(TimerKey(TimerKind.CONSUMER_REBALANCE, group_id, member.member_id))


def restore_timers(step: Step, before: ConsumerGroup, now: ConsumerGroup | None) -> None:
    """The records that changed the group from ``before`` to ``now`` are lost, so its members get the timers of
    ``before`` back; timers that were cancelled start again at full length (M-HB-13).

    The join and sync timers of classic members do not come back: a member that left is silent, and its session ends.
    """
    name = before.group_id
    for member_id, member in before.members.items() if now is None else exchanged(before.members, now.members):
        if now is not None and now.members.get(member_id) == member:
            continue
        session = TimerKey(TimerKind.CONSUMER_SESSION, name, member_id)
        if step.timers.armed(session) is None:
            own = member.classic
            step.timers.set(session, consumer_session_timeout(step, name) if own is None else own.session_timeout_ms)
        rebalance = TimerKey(TimerKind.CONSUMER_REBALANCE, name, member_id)
        armed = step.timers.armed(rebalance)
        kept = armed is not None and armed.epoch == member.epoch
        if member.epoch != STATIC_LEAVE_EPOCH and not (kept and member.state is MemberState.UNREVOKED_PARTITIONS):
            schedule_or_cancel_rebalance_timeout(step, name, member)


def schedule_after_load(step: Step, group: ConsumerGroup) -> None:
    """Set the timers of all members after a load (F-LOAD-04, F-LOAD-05); join and sync timers do not come back
    (X-TMR-04)."""
    for member in group.members.values():
        schedule_session_timeout(step, group.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            schedule_rebalance_timeout(step, group.group_id, member)
