"""Offset expiry: it deletes offsets that are too old, and empty groups that have none left (6.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.offset_records import OffsetCommitValue
from fencepost.protocol.view import GroupState

from ..classic.group import ClassicGroup
from ..groups import is_empty, known_topics, topics_of
from ..kernel import operations
from ..kernel.operations import FailedByTimeout
from ..kernel.state import Group
from ..kernel.step import Step
from .offset_appliers import offset_tombstones, write_offset_records

#: One timer for the whole coordinator.
KEY: Final = TimerKey(TimerKind.EXPIRY)
_NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class ExpiryRan(FailedByTimeout):
    """The records of one run of the expiry. If they are not in the log in time, the next run is one interval from then
    (O-EXP-26, F-RT-17)."""

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """Schedule another run, unless the partition now belongs to another broker."""
        if error is not ErrorCode.NOT_COORDINATOR:
            schedule(step)


def schedule(step: Step) -> None:
    """Schedule the next run in one interval from now (O-EXP-26, F-LOAD-07)."""
    step.timers.set(KEY, step.settings.offsets_retention_check_interval_ms)


def run(step: Step, delete_group: Callable[[Step, Group], None]) -> None:
    """Delete the offsets that are too old, and each empty group that has none left (O-EXP-20…25, C-ADM-11).
    ``delete_group`` writes the tombstones of the group itself."""
    for name, group in sorted(step.memory.groups.items()):
        if _expire(step, name, group) and is_empty(group):
            delete_group(step, group)
    schedule(step)
    operations.timer_done(step, ExpiryRan())


def _expire(step: Step, name: str, group: Group) -> bool:
    """Whether no offset is left and no transaction may add one (O-EXP-10…12, O-EXP-20, O-EXP-24)."""
    offsets = step.offsets.now.groups.get(name)
    if offsets is None:
        return True
    old = _condition(step, group) if offsets.committed else None
    if old is None:
        return False
    kept = topics_of(group)
    gone = [
        partition
        for partition, stored in sorted(offsets.committed.items())
        if partition[0] not in kept  # O-EXP-10
        and partition not in offsets.unstable  # O-EXP-11
        and old(stored.value)
    ]
    write_offset_records(step, offset_tombstones(name, gone))
    return len(gone) == len(offsets.committed) and not offsets.unstable


def _condition(step: Step, group: Group) -> Callable[[OffsetCommitValue], bool] | None:
    """Tells whether an offset of the group is too old; None if no offset can be, whatever its age (O-EXP-01…06). In an
    Empty classic group the age of every offset counts from the time when the group became Empty, also for offsets
    committed later (O-EXP-13, O-EXP-15). For an empty consumer group there is no such time (O-EXP-14)."""
    since: int | None = None
    if isinstance(group, ClassicGroup) and group.protocol_type is not None:
        if group.state is GroupState.EMPTY:  # O-EXP-02
            since = group.timestamp
        elif not _is_stable_of_known_topics(group):
            return None  # O-EXP-06
    now, retention = step.at_ms, step.settings.offsets_retention_ms

    def too_old(value: OffsetCommitValue) -> bool:
        if value.expire_timestamp != _NEVER:
            return now >= value.expire_timestamp  # O-EXP-01
        return now - (value.commit_timestamp if since is None else since) >= retention

    return too_old


def _is_stable_of_known_topics(group: ClassicGroup) -> bool:
    """O-EXP-03."""
    stable = group.state is GroupState.STABLE and group.protocol_type == PROTOCOL_TYPE
    return stable and known_topics(group) is not None  # O-EXP-03
