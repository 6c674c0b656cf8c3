"""An append failed: memory returns to the state before the step (F-RT-08)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.rebalances import RebalanceEnded
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from .classic.group import ClassicGroup, cancel_group_timers
from .consumer import timers
from .consumer.group import ConsumerGroup
from .kernel import operations
from .kernel.persistent import edit
from .kernel.state import Group, next_epoch
from .kernel.step import Step


def report_undone(step: Step) -> None:
    """Report the rebalances that are undone with the records of the last step. A classic group that existed before that
    step keeps its rebalance, since its records are copies (F-RT-08)."""
    before: dict[str, Group | None] = {}
    for change in step.state.changes:
        if change.offset > step.state.base:
            before.setdefault(change.group_id, change.before)
    for name, old in before.items():
        now = step.state.groups.get(name)
        if isinstance(now, ConsumerGroup):
            undone = not isinstance(old, ConsumerGroup) or old.epoch < now.epoch
            generation = now.epoch
        else:
            undone = isinstance(now, ClassicGroup) and not isinstance(old, ClassicGroup)
            generation = _prepared(now) if isinstance(now, ClassicGroup) else 0
        if undone:
            step.rebalances.append(RebalanceEnded(group_id=name, generation=generation, state=None))


def _prepared(group: ClassicGroup) -> int:
    preparing = group.state is GroupState.PREPARING_REBALANCE
    return next_epoch(group.generation) if preparing else group.generation


@varies
def append_failed(step: Step, error: ErrorCode) -> None:
    """The records of the last step are not in the log: first the map of groups is restored, then the requests that wait
    for these records are answered."""
    base = step.state.base
    revert_groups(step, base)
    step.offsets.revert(base)
    step.log.start = base
    step.log.ends = tuple(end for end in step.log.ends if end <= base)
    operations.fail_since(step, base, error)


@varies
def revert_groups(step: Step, base: int) -> None:
    """Restore the map of groups as it was when the log ended at ``base``, with its timers (F-RT-08)."""
    lost = [change for change in step.memory.changes if change.offset > base]
    if not lost:
        return
    groups = edit(step.memory.groups)
    newest = {change.group_id: groups.get(change.group_id) for change in lost}
    for change in reversed(lost):
        now = groups.pop(change.group_id, None)
        step.requests.repark(now, change.before)
        if change.before is not None:
            groups[change.group_id] = change.before
        elif now is not None:
            step.memory.undone[now.incarnation] = now
        if isinstance(now, ClassicGroup) and not isinstance(change.before, ClassicGroup):
            if step.rules.group_timers_cancelled:
                cancel_group_timers(step, now)
            if isinstance(change.before, ConsumerGroup) and step.rules.downgrade_ends_timers:
                timers.restore_timers(step, change.before, None)  # X-DOWN-33
    step.memory.replace(groups, step.memory.changes[: -len(lost)])
    if step.rules.append_failure_restores_timers:
        for name, now in newest.items():
            old = groups.get(name)
            if isinstance(old, ConsumerGroup) and (now is None or isinstance(now, ConsumerGroup)):
                timers.restore_timers(step, old, now)  # M-HB-13, M-LEAVE-03, M-TMR-02
