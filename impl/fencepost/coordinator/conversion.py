"""From one kind of group to the other: an empty group gives way (C-JOIN-10, C-JOIN-15, M-VAL-20…22, F-ORD-16), one with
members is converted if it may be (M-VAL-23, M-VAL-24)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import JOIN_EPOCH, ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState

from . import records
from .consumer.errors import Refused
from .consumer.state import ConsumerGroup, new_group
from .mixed import upgrade
from .work import Step


def group_for_heartbeat(step: Step, body: ConsumerGroupHeartbeatRequest, written: list[Record]) -> ConsumerGroup:
    """M-VAL-20…24; the records of a group that gives way go to ``written``. Raises ``Refused``, ``InternalError``."""
    group = step.groups.get(body.group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if body.member_epoch != JOIN_EPOCH:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)  # M-VAL-20, M-VAL-24
    if group is not None:
        if group.state is not GroupState.EMPTY:
            return upgrade.upgraded(step, group, written)  # M-VAL-23
        written.append(records.tombstone(group.group_id))  # M-VAL-22, X-POL-05
    return new_group(body.group_id, step.incarnations, step.profile)  # M-VAL-21
