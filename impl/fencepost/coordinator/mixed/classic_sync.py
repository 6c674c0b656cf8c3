"""SyncGroup of a classic member to a consumer group (9.4): it only fetches its assignment; no member assigns."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.embedded import PROTOCOL_TYPE, SchemaError
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import SyncGroupRequest, SyncGroupResponse
from fencepost.quirks import varies

from ..consumer.group import ConsumerGroup, ConsumerMember
from ..kernel import operations
from ..kernel.errors import Rejected
from ..kernel.step import Step
from . import classic_member as classic
from .callbacks import AnsweredByOperation
from .embedded import encoded


@dataclass(frozen=True, slots=True)
class ClassicSynced(AnsweredByOperation):
    """A SyncGroup to a consumer group, its member as it was then, and the protocol in the request (X-SYNC-06)."""

    group_id: str
    member: ConsumerMember
    protocol_type: str | None
    protocol_name: str | None

    def replicated(self, step: Step, request: Request) -> None:
        """Answer with the assignment from the time of the request, with the current topic names (X-SYNC-06)."""
        member = self.member
        assert member.classic is not None
        step.timers.cancel(TimerKey(TimerKind.CONSUMER_SYNC, self.group_id, member.member_id))
        classic.watch_session(step, self.group_id, member)
        try:
            assignment = encoded(member.assigned, step.topics, member.classic.supported_protocols[0].metadata)
        except SchemaError:
            answer_unreadable(step, request)
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


@varies
def answer_unreadable(step: Step, request: Request) -> None:
    """Answer a member whose first protocol has no readable version for its assignment. Such a member can only come from
    a log that another coordinator has written: here its join is refused (X-SYNC-07, X-DOWN-09)."""
    step.reply(request.id, SyncGroupResponse(ErrorCode.UNKNOWN_SERVER_ERROR))


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


def _checked(step: Step, body: SyncGroupRequest, group: ConsumerGroup) -> ConsumerMember:
    """The member that sent the request, if it may fetch its assignment (X-SYNC-01…05). Raises ``Rejected``."""
    member = classic.asking(group, body.member_id, body.group_instance_id, body.generation_id)
    assert member.classic is not None
    name = member.classic.supported_protocols[0].name
    if body.protocol_type not in (None, PROTOCOL_TYPE) or body.protocol_name not in (None, name):
        raise Rejected(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)  # X-SYNC-04
    if classic.is_behind(step, group, member) and member.state is not MemberState.UNREVOKED_PARTITIONS:
        classic.expect_join(step, group.group_id, member)
        raise Rejected(ErrorCode.REBALANCE_IN_PROGRESS)  # X-SYNC-05
    return member
