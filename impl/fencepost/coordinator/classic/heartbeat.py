"""Heartbeat (5.1). It changes no group and writes nothing (C-HB-14), so it works on the frozen one."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import HeartbeatRequest, HeartbeatResponse
from fencepost.protocol.view import GroupState

from ..kernel import operations
from ..kernel.step import Step
from . import membership
from .group import ClassicGroup, schedule_classic_session_timeout

_NONE = HeartbeatResponse(ErrorCode.NONE)
_REBALANCE = HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS)


def heartbeat(step: Step, request: Request, body: HeartbeatRequest) -> None:
    """Restart the session of a member, and answer whether it has to join again (C-HB-05, C-HB-08…13).

    Errors are answered at once, other answers are never ahead of the log (F-RT-24).
    """
    group = step.memory.groups.get(body.group_id)
    if not isinstance(group, ClassicGroup):
        step.reply(request.id, HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID))  # C-HB-05
        return
    error = membership.invalid(group, body.member_id, body.group_instance_id)
    if error is None and body.generation_id != group.generation:
        error = ErrorCode.ILLEGAL_GENERATION  # C-HB-09
    if error is not None:
        step.reply(request.id, HeartbeatResponse(error))
        return
    schedule_classic_session_timeout(step, group, group.members[body.member_id])
    preparing = group.state is GroupState.PREPARING_REBALANCE
    operations.done(step, request, reply=_REBALANCE if preparing else _NONE)  # C-HB-11, C-HB-12
