"""Heartbeat of a classic member to a consumer group (9.4)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import HeartbeatRequest, HeartbeatResponse

from ..consumer.group import ConsumerGroup
from ..kernel import operations
from ..kernel.errors import Rejected
from ..kernel.step import Step
from . import classic_member as classic


def heartbeat(step: Step, request: Request, body: HeartbeatRequest, group: ConsumerGroup) -> None:
    """Restart the session of the member, and answer whether it has to join again (X-HB-01…07).

    It writes nothing, and an answer other than an error is never ahead of the log (F-RT-24).
    """
    try:
        member = classic.asking(group, body.member_id, body.group_instance_id, body.generation_id)
    except Rejected as rejected:
        step.reply(request.id, HeartbeatResponse(rejected.error))
        return
    classic.watch_session(step, group.group_id, member)  # X-HB-02
    error = ErrorCode.NONE
    if classic.should_rejoin(step, group, member):
        error = ErrorCode.REBALANCE_IN_PROGRESS
        classic.expect_join(step, group.group_id, member)  # X-HB-04
    operations.done(step, request, reply=HeartbeatResponse(error))
