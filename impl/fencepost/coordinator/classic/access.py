"""A step and its classic groups: find a group to change it, store the result, watch a member."""

from __future__ import annotations

from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.quirks import varies

from ..kernel.step import Step
from .draft import GroupDraft
from .group import ClassicGroup, Member


def find(step: Step, group_id: str) -> GroupDraft | None:
    """The classic group of this name (C-ST-24), to be changed."""
    group = step.memory.groups.get(group_id)
    return GroupDraft(group) if isinstance(group, ClassicGroup) else None


def keep(step: Step, draft: GroupDraft) -> None:
    """Store the draft as the group of its name."""
    step.memory.exchange(draft.freeze())
    step.requests.park({number: draft.group_id if waits else None for number, waits in draft.parking.items()})


def of_incarnation(step: Step, group_id: str, incarnation: int) -> GroupDraft | None:
    """The group of this incarnation, even if it was upgraded since: it is kept until the upgrade is in the log."""
    befores = [change.before for change in step.memory.changes if change.group_id == group_id]
    for group in (step.memory.groups.get(group_id), *befores):
        if isinstance(group, ClassicGroup) and group.incarnation == incarnation:
            return GroupDraft(group)
    return None


def keep_incarnation(step: Step, draft: GroupDraft) -> None:
    """Store the draft where ``of_incarnation`` finds it; for a replaced group, reads see it (C-ADM-08)."""
    now = step.memory.groups.get(draft.group_id)
    if isinstance(now, ClassicGroup) and now.incarnation == draft.incarnation:
        keep(step, draft)
        return
    # A consumer group has replaced it: members do not see this rebalance.
    step.rebalances[:] = [each for each in step.rebalances if each.group_id != draft.group_id]
    step.memory.changes = tuple(
        change._replace(before=draft.freeze())
        if isinstance(change.before, ClassicGroup) and change.before.incarnation == draft.incarnation
        else change
        for change in step.memory.changes
    )


def arm_session(step: Step, group: GroupDraft | ClassicGroup, member: Member) -> None:
    """Start the session timeout of the member, within which it must send a request again (C-TMR-04)."""
    step.timers.set(TimerKey(TimerKind.SESSION, group.group_id, member.member_id), member.session_timeout)


@varies
def lose_timers(step: Step, group: ClassicGroup) -> None:
    """A group that a failed append removes loses its timers (C-TMR-12)."""
    name = group.group_id
    for kind in (TimerKind.JOIN, TimerKind.SYNC):  # a downgrade may complete its join phase at once (X-DOWN-22)
        step.timers.cancel(TimerKey(kind, name))
    for member_id in (*group.members, *sorted(group.pending_join)):
        step.timers.cancel(TimerKey(TimerKind.SESSION, name, member_id))
