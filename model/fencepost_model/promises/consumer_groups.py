"""The promises about consumer groups (rule book, 12.2): in every state, and in every step."""

from __future__ import annotations

from collections.abc import Hashable, Set
from typing import Any, Final

from fencepost.protocol.consumer_messages import STATIC_LEAVE_EPOCH

from ..machines import C_STABLE, C_UNRELEASED, C_UNREVOKED
from .instances import instances_map_to_their_members, one_member_per_instance
from .promise import Promise
from .views import GroupStep, GroupView, MemberView

# ---- ownership ---------------------------------------------------------------------------------------------------


def _one_holder(group: GroupView) -> str:
    holders: dict[Hashable, str] = {}
    for member in group.members:
        for rows in (member.assigned, member.revoking):
            for each in rows:
                other = holders.setdefault(each, member.member_id)
                if other != member.member_id:
                    return f"{other} and {member.member_id} both hold partition {each}"
    return ""


def _assigned_or_revoking(group: GroupView) -> str:
    for member in group.members:
        if both := member.assigned & member.revoking:
            return f"{member.member_id} is assigned and has to revoke {sorted(map(str, both))}"
    return ""


def _one_target(group: GroupView) -> str:
    ids = {member.member_id for member in group.members}
    targets: dict[Hashable, str] = {}
    for member_id, target in group.target.items():
        if member_id not in ids:
            return f"{member_id} has a target and is not a member"
        for each in target:
            other = targets.setdefault(each, member_id)
            if other != member_id:
                return f"partition {each} is in the targets of {other} and {member_id}"
    return ""


def _reconciled_within_target(group: GroupView) -> str:
    for member in group.members:
        if member.epoch != group.assignment_epoch or member.state not in (C_STABLE, C_UNRELEASED):
            continue
        more = (member.assigned - {*group.target.get(member.member_id, ())}) | member.revoking
        if more:
            return f"{_at(member)} is {member.state} and has {sorted(map(str, more))} beside its target"
    return ""


def _unrevoked_has_to_revoke(group: GroupView) -> str:
    for member in group.members:
        away = member.epoch == STATIC_LEAVE_EPOCH
        if not away and (member.state == C_UNREVOKED) != bool(member.revoking):
            return f"{_at(member)} is {member.state} with {len(member.revoking)} partitions to revoke"
    return ""


def _given_only_if_free(step: GroupStep) -> str:
    return _given(step, {(member.instance, member.member_id) for member in step.before.members})


def _given_by_the_map_of_instances(step: GroupStep) -> str:
    """The rest of the promise if a member may be replaced through an instance id that it had before (M-STATIC-13)."""
    return _given(step, {*step.before.instances})


def _given(step: GroupStep, instances: Set[tuple[str | None, str]]) -> str:
    """Return which partition a member is given too early. ``instances``: through which instance ids a member may be
    replaced."""
    holders = {
        each: member.member_id for member in step.before.members for each in (*member.assigned, *member.revoking)
    }
    stay = {member.member_id for member in step.after.members}
    for member in step.after.members:
        for each in member.assigned:
            owner = holders.get(each, member.member_id)
            if owner == member.member_id:
                continue
            is_replacement = member.instance is not None and (member.instance, owner) in instances
            if not is_replacement or owner in stay:
                return f"{member.member_id} is assigned partition {each}, which {owner} still held"
    return ""


# ---- epochs ------------------------------------------------------------------------------------------------------


def _epochs_in_order(group: GroupView) -> str:
    if group.assignment_epoch > group.epoch:
        return f"assignment epoch {group.assignment_epoch} of group epoch {group.epoch}"
    for member in group.members:
        if member.epoch > group.assignment_epoch:
            return f"{_at(member)}, the assignment at {group.assignment_epoch}"
    return ""


def _epochs_never_decrease(step: GroupStep) -> str:
    before, after = step.before, step.after
    if after.epoch < before.epoch or after.assignment_epoch < before.assignment_epoch:
        old, new = (f"{group.epoch}, {group.assignment_epoch}" for group in (before, after))
        return f"epochs {old} become {new}"
    known = {member.member_id: member for member in before.members}
    for member in after.members:
        was = known.get(member.member_id, member)
        # A replacement may have the same id (M-STATIC-03).
        replaced = member.epoch == 0 and was.is_classic
        if member.epoch < was.epoch and member.epoch != STATIC_LEAVE_EPOCH and not replaced:
            return f"{_at(was)} goes to {member.epoch}"
    return ""


def _assignment_epochs_reached(group: GroupView) -> str:
    for member in group.members:
        if member.epoch == 0:  # it may have replaced another (M-STATIC-03, X-JOIN-23)
            continue
        late = [epoch for epoch in member.assignment_epochs if not 0 <= epoch <= max(member.epoch, 0)]
        if late:
            return f"{_at(member)} has partitions assigned at {late}"
    return ""


# ---- regular expressions ------------------------------------------------------------------------------------------


def _resolved_are_used(group: GroupView) -> str:
    idle = group.regexes - {member.regex for member in group.members}
    return f"{sorted(idle)} are resolved, but no member uses them" if idle else ""


def _at(member: MemberView) -> str:
    return f"{member.member_id} at {member.epoch}"


CONSUMER_GROUPS: Final[tuple[Promise[Any], ...]] = (
    Promise(
        "INV-KIP-01",
        "A partition has at most one holder: it is assigned to one member, or that member still has to revoke it.",
        GroupView,
        _one_holder,
        {"consumer": ("NoPartitionHasTwoHolders",), "mixed": ("NoPartitionHasTwoHolders",)},
    ),
    Promise(
        "INV-KIP-02",
        "A member is never assigned a partition that it still has to revoke.",
        GroupView,
        _assigned_or_revoking,
        {"consumer": ("NoPartitionIsBothAssignedAndRevoked",)},
    ),
    Promise(
        "INV-KIP-03",
        "A member's epoch is at most the assignment epoch, and that is at most the group epoch.",
        GroupView,
        _epochs_in_order,
        {"consumer": ("EpochsAreOrdered",), "mixed": ("EpochsAreOrdered",)},
    ),
    Promise(
        "INV-KIP-04",
        "Group epoch and assignment epoch never decrease. A member's epoch decreases only when the member leaves for a "
        "while or is replaced.",
        GroupStep,
        _epochs_never_decrease,
        {"consumer": ("NoEpochDecreases",)},
    ),
    Promise(
        "INV-KIP-05",
        "A partition is in the target assignment of at most one member, and only members have targets.",
        GroupView,
        _one_target,
    ),
    Promise(
        "INV-KIP-06",
        "A member that is STABLE or UNRELEASED at the assignment epoch has nothing to revoke, and is assigned only "
        "partitions of its target.",
        GroupView,
        _reconciled_within_target,
        {"consumer": ("EveryReconciledMemberHasItsTarget",)},
    ),
    Promise(
        "INV-KIP-07",
        "A member that is not away is UNREVOKED if and only if it has partitions to revoke.",
        GroupView,
        _unrevoked_has_to_revoke,
        {"consumer": ("AMemberIsUnrevokedIffItHasToRevoke",)},
    ),
    Promise(
        "INV-KIP-09",
        "A step assigns a partition to a member only if it was free, the member held it, or the member replaces its "
        "holder.",
        GroupStep,
        _given_only_if_free,
        restated={
            "classic": ("NoPartitionIsReassignedBeforeItIsReleased",),
            "consumer": ("NoPartitionIsReassignedBeforeItIsReleased",),
            "mixed": ("NoPartitionIsReassignedBeforeItIsReleased", "NoPartitionIsTakenFromAPresentMember"),
        },
        faults=("fault_relabelled_instance_stays",),
        remains=_given_by_the_map_of_instances,
    ),
    Promise(
        "INV-KIP-14",
        "An instance id belongs to at most one member, and each instance id maps to the member that has it.",
        GroupView,
        instances_map_to_their_members,
        {
            "consumer": ("EveryInstanceBelongsToOneMember", "EveryInstanceMapsToItsMember"),
            "mixed": ("EveryInstanceBelongsToOneMember", "EveryInstanceMapsToItsMember"),
        },
        faults=("fault_relabelled_instance_stays",),
        remains=one_member_per_instance,
    ),
    Promise(
        "INV-KIP-16",
        "A member has no partition that was assigned at a later epoch than its own; one that is away has them at 0.",
        GroupView,
        _assignment_epochs_reached,
        {"consumer": ("NoAssignmentEpochIsNewerThanItsMember",)},
    ),
    Promise(
        "INV-KIP-18",
        "Every resolved regular expression is one that a member uses.",
        GroupView,
        _resolved_are_used,
        faults=("fault_replacement_merges_members",),
    ),
)
