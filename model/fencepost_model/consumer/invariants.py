"""Safety of consumer groups, checked on one state (rule book, 12.2).

An invariant about changes compares the state with the previous one. Under ``intended`` all hold; faults of Kafka that
break one are named there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fencepost.protocol.consumer_messages import STATIC_LEAVE_EPOCH

from ..machines import C_STABLE, C_UNRELEASED, C_UNREVOKED
from ..promises import PROMISES, GroupView, MemberView
from .derive import used_regexes
from .state import ConsumerGroup, Member, Partition

Check = Callable[[ConsumerGroup], bool]
Change = Callable[[ConsumerGroup, ConsumerGroup], bool]


def held(member: Member) -> frozenset[Partition]:
    return frozenset((topic, number) for topic, number, _ in (*member.assigned, *member.revoking))


def view_of(group: ConsumerGroup) -> GroupView:
    """Return what promises see of the group."""
    members = [
        MemberView(
            member.member_id,
            member.epoch,
            {(topic, number) for topic, number, _ in member.assigned},
            {(topic, number) for topic, number, _ in member.revoking},
        )
        for member in group.members
    ]
    return GroupView(group.epoch, group.assignment_epoch, members)


def targets_are_disjoint(group: ConsumerGroup) -> bool:
    given = [each for _, target in group.target for each in target]
    ids = {member.member_id for member in group.members}
    return len(given) == len(set(given)) and all(member_id in ids for member_id, _ in group.target)


def reconciled_members_have_targets(group: ConsumerGroup) -> bool:
    """Return whether every member STABLE or UNRELEASED at the assignment epoch has A ⊆ T and R = ∅."""
    for member in group.members:
        if member.epoch == group.assignment_epoch and member.state in (C_STABLE, C_UNRELEASED):
            target = group.target_of(member.member_id) or ()
            if member.revoking or not {(topic, number) for topic, number, _ in member.assigned} <= set(target):
                return False
    return True


def revoking_is_unrevoked(group: ConsumerGroup) -> bool:
    return all(
        (member.state == C_UNREVOKED) == bool(member.revoking)
        for member in group.members
        if member.epoch != STATIC_LEAVE_EPOCH
    )


def instances_have_one_member(group: ConsumerGroup) -> bool:
    names = [member.instance for member in group.members if member.instance is not None]
    return len(names) == len(set(names))


def instances_are_of_members(group: ConsumerGroup) -> bool:
    """Return whether each instance id maps to the member that has it. (M-STATIC-13 breaks this.)"""
    mine = {(member.instance, member.member_id) for member in group.members if member.instance is not None}
    return set(group.statics) == mine


def assignment_epochs_reached(group: ConsumerGroup) -> bool:
    return all(
        0 <= epoch <= member.epoch
        for member in group.members
        if member.epoch > 0
        for _, _, epoch in (*member.assigned, *member.revoking)
    )


def resolved_are_used(group: ConsumerGroup) -> bool:
    used = used_regexes(group.members)
    return all(row.regex in used for row in group.regexes)


def epochs_never_decrease(before: ConsumerGroup, after: ConsumerGroup) -> bool:
    """Return whether group and assignment epoch do not fall, and a member's epoch only to -2 or by replacement."""
    if after.epoch < before.epoch or after.assignment_epoch < before.assignment_epoch:
        return False
    for member in after.members:
        old = before.member(member.member_id)
        if old is not None and member.epoch < old.epoch and member.epoch != STATIC_LEAVE_EPOCH:
            return False
    return True


def taken_only_if_free(before: ConsumerGroup, after: ConsumerGroup) -> bool:
    """Return whether each partition that entered a member's A was free, held by that member, or by the one it
    replaces."""
    holder = {each: member for member in before.members for each in held(member)}
    for member in after.members:
        for topic, number, _ in member.assigned:
            old = holder.get((topic, number))
            if old is None or old.member_id == member.member_id:
                continue
            if old.instance is None or old.instance != member.instance or after.member(old.member_id) is not None:
                return False
    return True


def _kept(promise_id: str) -> Check:
    return lambda group: PROMISES[promise_id].holds(view_of(group))


STATES: Final[dict[str, Check]] = {
    **{name: _kept(name) for name in PROMISES},
    "INV-KIP-05": targets_are_disjoint,
    "INV-KIP-06": reconciled_members_have_targets,
    "INV-KIP-07": revoking_is_unrevoked,
    "INV-KIP-14": instances_have_one_member,
    "INV-KIP-16": assignment_epochs_reached,
}
CHANGES: Final[dict[str, Change]] = {"INV-KIP-04": epochs_never_decrease, "INV-KIP-09": taken_only_if_free}
#: Invariants that hold if this fault is fixed (M-STATIC-13, M-STATIC-15).
FIXED: Final[dict[str, tuple[str, Check]]] = {
    "INV-KIP-14": ("fault_relabelled_instance_stays", instances_are_of_members),
    "INV-KIP-18": ("fault_replacement_merges_members", resolved_are_used),
}


def broken(before: ConsumerGroup | None, after: ConsumerGroup) -> list[str]:
    """Return the rules that a state or the step to it breaks."""
    found = [rule for rule, check in STATES.items() if not check(after)]
    if before is not None:
        found += [rule for rule, change in CHANGES.items() if not change(before, after)]
    return found
