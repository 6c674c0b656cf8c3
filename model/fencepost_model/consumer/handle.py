"""One step on one consumer group: a heartbeat, a timer of a member, or resolved regexes."""

from __future__ import annotations

from typing import TypeAlias

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode

from .group_step import GroupStep
from .heartbeat import heartbeat
from .leave import expired_member, fence_members, leave
from .refusal import Refused
from .regex import resolve
from .state import RETRY_MS, ConsumerHeartbeat, Expire, Resolve, Timer

Step: TypeAlias = ConsumerHeartbeat | Expire | Resolve


def run_step(group_step: GroupStep, step: Step) -> ConsumerGroupHeartbeatResponse | None:
    """Run the step on one group. Returns the answer if it is a request. A refusal writes nothing."""
    if isinstance(step, ConsumerHeartbeat):
        return answer_heartbeat(group_step, step)
    if group_step.fresh:
        return None
    if isinstance(step, Expire):
        member = expired_member(group_step, step)
        if member is not None:
            try:
                fence_members(group_step, [member])
            except Refused as refused:
                group_step.rule(refused.rule)
                if refused.error is ErrorCode.UNKNOWN_SERVER_ERROR:  # not X-DOWN-09, which Kafka expects
                    group_step.failed = True
                    group_step.armed = {Timer(step.kind, step.member_id): RETRY_MS}  # F-RT-17
    elif not step.failed:
        resolve(group_step, step.resolution)
    return None


def answer_heartbeat(group_step: GroupStep, request: ConsumerHeartbeat) -> ConsumerGroupHeartbeatResponse:
    """Return the answer to a heartbeat. An error leaves no records."""
    body = request.body
    try:
        group_step.denied_topics = request.denied_topics
        if group_step.fresh and body.member_epoch != 0:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, "M-VAL-20" if body.member_epoch > 0 else "M-LEAVE-01")
        if group_step.fresh:
            group_step.rule("M-VAL-21")
        return leave(group_step, body) if body.member_epoch < 0 else heartbeat(group_step, request)
    except Refused as refused:
        group_step.rule(refused.rule)
        group_step.records.clear()
        group_step.armed.clear()
        group_step.rebalance_epochs.clear()
        return ConsumerGroupHeartbeatResponse(refused.error)
