"""An append failed: memory goes back to what it was before the step (F-RT-08)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode

from .classic import access
from .classic.group import ClassicGroup
from .consumer import timers
from .consumer.group import ConsumerGroup
from .kernel import completion, reads
from .kernel.step import Step


def append_failed(step: Step, error: ErrorCode) -> None:
    """The records of the step just made are not in the log: first the map of groups goes back, then those are told that
    wait for these records."""
    base = step.state.base
    _revert_groups(step, base)
    step.start = base
    step.ends = tuple(end for end in step.ends if end <= base)
    step.lingering = step.state.lingering_base
    completion.fail_since(step, base, error)


def _revert_groups(step: Step, base: int) -> None:
    lost = [change for change in step.changes if change.offset > base]
    if not lost:
        return
    groups = dict(step.groups)
    newest = {change.group_id: groups.get(change.group_id) for change in lost}
    for change in reversed(lost):
        now = groups.pop(change.group_id, None)
        step.repark(now, change.before)
        if change.before is not None:
            groups[change.group_id] = change.before
        if isinstance(now, ClassicGroup) and not isinstance(change.before, ClassicGroup):
            access.lose_timers(step, now)
            if isinstance(change.before, ConsumerGroup) and not step.profile.fault_downgrade_leaves_timers:
                timers.bring_back(step, change.before, None)  # all were cancelled; X-DOWN-33 mended
        if change.before is not None:
            step.relisted += tuple((base, entry) for entry in reads.exchanged(change.group_id, change.before, now))
    step.replace_groups(groups, step.changes[: -len(lost)])
    for name, now in newest.items():
        old = groups.get(name)
        if isinstance(now, ClassicGroup) or step.profile.fault_failed_append_loses_timers:
            continue
        if isinstance(old, ConsumerGroup):
            assert now is None or isinstance(now, ConsumerGroup)
            timers.bring_back(step, old, now)
