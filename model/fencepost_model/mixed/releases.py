"""What Kafka releases do differently with mixed groups and conversions (the table in ``switches``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..classic.state import Group
from ..consumer.derive import group_topics
from ..consumer.group_step import GroupStep
from ..consumer.state import ConsumerGroup, Converted, Member, Target
from ..consumer.work import ConsumerGroups


def starve(otherwise: Callable[[GroupStep, Member], bool], step: GroupStep, found: Member) -> bool:
    """Wait for a target that only another member can cause (LIV-14)."""
    return found.epoch < step.group.assignment_epoch


def follow_group_epoch(otherwise: Callable[[GroupStep, Member], bool], step: GroupStep, found: Member) -> bool:
    """Compare the member with the group's epoch (V-61)."""
    return found.epoch < step.group.epoch


def overlook_claims(
    otherwise: Callable[[Sequence[Converted]], dict[str, Target]], converted: Sequence[Converted]
) -> dict[str, Target]:
    """Return only the assignments (X-UP-05)."""
    return {own.member.member_id: own.assigned for own in converted}


def assign_target(
    otherwise: Callable[[GroupStep, ConsumerGroup, Member, str], Target | None],
    t: GroupStep,
    group: ConsumerGroup,
    member: Member,
    target_member_id: str,
) -> Target | None:
    """Assign the target of ``target_member_id``, whatever the member holds (X-DOWN-04). A member may have none if it
    joined while no target could be computed, and is then not converted (V-67)."""
    target = group.target_of(target_member_id)
    return () if target is None and t.variant.mixed.downgrade_follows_target else target


def leave_topics(
    otherwise: Callable[[ConsumerGroups, str, ConsumerGroup, Group | ConsumerGroup | None], None],
    groups: ConsumerGroups,
    group_id: str,
    old: ConsumerGroup,
    new: Group | ConsumerGroup | None,
) -> None:
    """Leave the topics of a downgraded group in the index of subscriptions. A group that gives a topic up removes it
    (X-DOWN-30)."""
    left = groups.state.leftover_topics
    topics = group_topics(old.members, old.regexes)
    if isinstance(new, Group):
        left |= {(group_id, topic) for topic in topics}
    elif isinstance(new, ConsumerGroup) and left:
        left -= {(group_id, topic) for topic in topics - group_topics(new.members, new.regexes)}
    if left != groups.state.leftover_topics:
        groups.state = groups.state._replace(leftover_topics=left)
