"""The change from one kind of group to the other: an empty group is replaced (C-JOIN-10, C-JOIN-15, M-VAL-20…22,
F-ORD-16), one with members is converted if that is allowed (M-VAL-23, M-VAL-24)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import JOIN_EPOCH, ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from .classic import records
from .classic.group import ClassicGroup
from .classic.join import Predecessor
from .consumer.group import ConsumerGroup, new_group
from .consumer.group_heartbeat import Opened
from .consumer.records import removed_group
from .kernel.errors import Refused
from .kernel.state import Group
from .kernel.step import Step
from .mixed import upgrade


def for_heartbeat(step: Step, body: ConsumerGroupHeartbeatRequest) -> Opened:
    """The consumer group for a heartbeat, created or converted if necessary (M-VAL-20…24). Raises ``Refused``,
    ``InternalError``."""
    name, written = body.group_id, list[Record]()
    group = step.memory.groups.get(name)
    if isinstance(group, ConsumerGroup):
        return Opened(group, written, False)
    if body.member_epoch != JOIN_EPOCH:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)  # M-VAL-20, M-VAL-24
    if isinstance(group, ClassicGroup):
        if group.state is not GroupState.EMPTY:
            result = upgrade.upgraded(step, group, written)
            return Opened(result, written, upgrade.must_bump(step, name), converted=True)  # M-VAL-23
        written.append(records.tombstone(name))  # M-VAL-22, X-POL-05
    generation = 0 if group is None else left_off(step, group)
    fresh = new_group(step, name, step.memory.incarnations, generation)  # M-VAL-21
    return Opened(fresh, written, generation > 0)  # M-VAL-22: a record must say where its count starts


@varies
def left_off(step: Step, group: Group) -> int:
    """The generation or epoch of an empty group. The group that replaces it continues from there, so that no member
    gets the same one twice (C-JOIN-16, M-VAL-22, INV-CONV-01)."""
    if isinstance(group, ConsumerGroup):
        return group.epoch
    assert isinstance(group, ClassicGroup)
    return group.generation


def for_join(step: Step, group: ConsumerGroup) -> Predecessor:
    """The generation and the tombstones for a classic group that replaces an empty consumer group (C-JOIN-10)."""
    return Predecessor(left_off(step, group), removed_group(group))
