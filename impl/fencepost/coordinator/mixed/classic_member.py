"""Heartbeat and SyncGroup of a classic member to a consumer group (9.4), and what the log does for its requests.

Heartbeat answers whether the member has to join again. SyncGroup only fetches its assignment; no member assigns.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.embedded import PROTOCOL_TYPE, SchemaError
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import HeartbeatRequest, HeartbeatResponse, SyncGroupRequest, SyncGroupResponse
from fencepost.quirks import varies

from ..consumer import target
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerGroupMember
from ..consumer.members import static_member
from ..consumer.reconcile import is_free
from ..kernel import operations
from ..kernel.errors import Rejected, operation_error
from ..kernel.operations import AppendCallback
from ..kernel.replies import error_response
from ..kernel.state import Operation
from ..kernel.step import Step
from .embedded import encoded


def asking(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerGroupMember:
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
def is_behind(step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether there is a newer target than the member's, or its rejoin would make one (X-SYNC-05, X-HB-03, LIV-14)."""
    if member.epoch < group.assignment_epoch:
        return True
    return group.assignment_epoch < group.epoch and target.allowed(step, group)


def should_rejoin(step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether a member that sends a request has to join again: it has to revoke something, can get more of its target,
    or is behind (X-HB-03, X-HB-07)."""
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS if not _waits(group, member):
            return True
    return is_behind(step, group, member)


def _waits(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether other members still hold what the member lacks of its target."""
    return any(
        partition not in member.assigned.get(topic_id, {}) and not is_free(group, topic_id, partition)
        for topic_id, partitions in group.target.get(member.member_id, NO_SHARE).items()
        for partition in partitions
    )


def watch_session(step: Step, group_id: str, member: ConsumerGroupMember) -> None:
    """Start the session timeout of the member, taken from its own JoinGroup (X-TMR-01)."""
    assert member.classic is not None
    key = TimerKey(TimerKind.CONSUMER_SESSION, group_id, member.member_id)
    step.timers.set(key, member.classic.session_timeout_ms)


def expect_join(step: Step, group_id: str, member: ConsumerGroupMember) -> None:
    """Start the rebalance timeout within which the member has to join; repeated requests do not extend it
    (X-TMR-02)."""
    key = TimerKey(TimerKind.CONSUMER_JOIN, group_id, member.member_id)
    if step.timers.armed(key) is None:
        step.timers.set(key, member.rebalance_timeout)


def heartbeat(step: Step, request: Request, body: HeartbeatRequest, group: ConsumerGroup) -> None:
    """Restart the session of the member, and answer whether it has to join again (X-HB-01…07).

    It writes nothing, and an answer other than an error is never ahead of the log (F-RT-24).
    """
    try:
        member = asking(group, body.member_id, body.group_instance_id, body.generation_id)
    except Rejected as rejected:
        step.reply(request.id, HeartbeatResponse(rejected.error))
        return
    watch_session(step, group.group_id, member)  # X-HB-02
    error = ErrorCode.NONE
    if should_rejoin(step, group, member):
        error = ErrorCode.REBALANCE_IN_PROGRESS
        expect_join(step, group.group_id, member)  # X-HB-04
    operations.done(step, request, reply=HeartbeatResponse(error))


class AnsweredByOperation(AppendCallback):
    """Only the operation knows the request: a late append is answered with an error, and the changes stay."""

    __slots__ = ()

    def timed_out(self, step: Step, number: int, operation: Operation) -> None:
        """Answer the sender that it took too long; the callback still runs later (F-RT-07)."""
        if not operation.answered:
            assert operation.request is not None
            step.reply(number, error_response(operation.request, operation_error(ErrorCode.REQUEST_TIMED_OUT)))


@dataclass(frozen=True, slots=True)
class ClassicJoined(AnsweredByOperation):
    """A JoinGroup to a consumer group, with the timers of its member in ms, None after a downgrade (X-JOIN-20)."""

    group_id: str
    member_id: str
    session_timeout: int | None
    sync_timeout: int | None

    def replicated(self, step: Step, request: Request) -> None:
        """The member has joined: set its session and sync timers; it no longer has to join (X-JOIN-20, X-DOWN-24)."""
        name, member_id = self.group_id, self.member_id
        step.timers.cancel(TimerKey(TimerKind.CONSUMER_JOIN, name, member_id))
        if self.session_timeout is not None and self.sync_timeout is not None:
            step.timers.set(TimerKey(TimerKind.CONSUMER_SESSION, name, member_id), self.session_timeout)
            step.timers.set(TimerKey(TimerKind.CONSUMER_SYNC, name, member_id), self.sync_timeout)


@dataclass(frozen=True, slots=True)
class ClassicSynced(AnsweredByOperation):
    """A SyncGroup to a consumer group, its member as it was then, and the protocol in the request (X-SYNC-06)."""

    group_id: str
    member: ConsumerGroupMember
    protocol_type: str | None
    protocol_name: str | None

    def replicated(self, step: Step, request: Request) -> None:
        """Answer with the assignment from the time of the request, with the current topic names (X-SYNC-06)."""
        member = self.member
        assert member.classic is not None
        step.timers.cancel(TimerKey(TimerKind.CONSUMER_SYNC, self.group_id, member.member_id))
        watch_session(step, self.group_id, member)
        try:
            assignment = encoded(member.assigned, step.topics, member.classic.supported_protocols[0].metadata)
        except SchemaError:
            if step.rules.all_metadata_read:  # else a member with such a protocol can only come from another's log
                step.reply(request.id, SyncGroupResponse(ErrorCode.UNKNOWN_SERVER_ERROR))  # X-SYNC-07, X-DOWN-09
            return
        step.reply(
            request.id,
            SyncGroupResponse(
                ErrorCode.NONE,
                protocol_type=self.protocol_type,
                protocol_name=self.protocol_name,
                assignment=assignment,
            ),
        )


def sync(step: Step, request: Request, body: SyncGroupRequest, group: ConsumerGroup) -> None:
    """Answer with the member's assignment when all earlier writes are in the log (X-SYNC-01…06)."""
    try:
        member = _checked(step, body, group)
    except Rejected as rejected:
        step.reply(request.id, SyncGroupResponse(rejected.error))
        return
    done = ClassicSynced(group.group_id, member, body.protocol_type, body.protocol_name)
    if not operations.waits(step, request, done):
        done.replicated(step, request)


def _checked(step: Step, body: SyncGroupRequest, group: ConsumerGroup) -> ConsumerGroupMember:
    """The member that sent the request, if it may fetch its assignment (X-SYNC-01…05). Raises ``Rejected``."""
    member = asking(group, body.member_id, body.group_instance_id, body.generation_id)
    assert member.classic is not None
    name = member.classic.supported_protocols[0].name
    if body.protocol_type not in (None, PROTOCOL_TYPE) or body.protocol_name not in (None, name):
        raise Rejected(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)  # X-SYNC-04
    if is_behind(step, group, member) and member.state is not MemberState.UNREVOKED_PARTITIONS:
        expect_join(step, group.group_id, member)
        raise Rejected(ErrorCode.REBALANCE_IN_PROGRESS)  # X-SYNC-05
    return member
