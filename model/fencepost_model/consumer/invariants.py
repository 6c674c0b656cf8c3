"""The view that promises of the catalogue get of the model's consumer group, and those that it breaks (12.2)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from ..promises import GroupStep, GroupView, HeartbeatView, MemberView, broken_promises
from .state import ConsumerGroup, Held, Partition


def _partitions(held: Held) -> frozenset[Partition]:
    return frozenset([(topic, number) for topic, number, _ in held])


def view_of(group: ConsumerGroup) -> GroupView:
    """Return what promises see of the group."""
    members = [
        MemberView(
            member.member_id,
            member.epoch,
            _partitions(member.assigned),
            _partitions(member.revoking),
            [epoch for _, _, epoch in (*member.assigned, *member.revoking)],
            member.state,
            member.instance,
            member.regex,
            member.classic is not None,
        )
        for member in group.members
    ]
    regexes = frozenset([row.regex for row in group.regexes])
    return GroupView(group.epoch, group.assignment_epoch, members, dict(group.target), group.statics, regexes)


def broken(before: ConsumerGroup | None, after: ConsumerGroup, profile: Profile = INTENDED) -> list[str]:
    """Return the promises that a state or the step to it breaks. ``profile``: that of the model."""
    view = view_of(after)
    found = [promise for promise, _ in broken_promises(view, profile)]
    if before is not None:
        found += [promise for promise, _ in broken_promises(GroupStep(view_of(before), view), profile)]
    return found


def broken_by_answer(
    request: ConsumerGroupHeartbeatRequest,
    answer: ConsumerGroupHeartbeatResponse,
    before: ConsumerGroup | None,
    after: ConsumerGroup,
    profile: Profile = INTENDED,
) -> list[str]:
    """Return the promises that an answer breaks. ``before`` and ``after``: the group at the step of the request. Only
    the refresh deadline, which the log does not have, may change with an error."""
    old, new = (None if group is None else group.member(request.member_id) for group in (before, after))
    seen = HeartbeatView(
        request.member_epoch,
        answer.error_code.name,
        answer.member_epoch,
        answer.assignment is not None,
        None if new is None else new.epoch,
        tuple(() if member is None else member.assigned for member in (old, new)),
        before is not None and after._replace(refresh=before.refresh) != before,
    )
    return [promise for promise, _ in broken_promises(seen, profile)]
