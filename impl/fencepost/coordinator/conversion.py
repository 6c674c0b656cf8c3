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
from .state import ClassicGroup
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
    return new_group(body.group_id, step.incarnations, step.profile, _left_off(step, body.group_id))  # M-VAL-21


def must_bump(step: Step, group_id: str) -> bool:
    """M-VAL-22 mended: a record must say from where a new group counts on."""
    return _left_off(step, group_id) > 0


def _left_off(step: Step, group_id: str) -> int:
    """The generation of the empty classic group that a consumer group replaces; 0 if it counts anew."""
    group = step.groups.get(group_id)
    if step.profile.fault_empty_group_counts_anew or not isinstance(group, ClassicGroup):
        return 0
    return group.generation if group.state is GroupState.EMPTY else 0
