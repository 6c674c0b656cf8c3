"""The view that promises of the catalogue get of the model's classic group, and those that it breaks (12.1)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupResponse, RequestBody, ResponseBody, SyncGroupRequest
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from ..promises import (
    ClassicGroupStep,
    ClassicGroupView,
    ClassicMemberView,
    JoinAnswerView,
    SyncAnswerView,
    broken_promises,
)
from .state import Group


def view_of(group: Group) -> ClassicGroupView:
    """Return what promises see of the group."""
    members = [
        ClassicMemberView(
            member.member_id,
            member.instance,
            [protocol.name for protocol in member.protocols],
            member.join is not None,
            member.sync is not None,
        )
        for member in group.members
    ]
    return ClassicGroupView(
        group.state,
        group.previous,
        group.generation,
        group.protocol_name,
        group.leader,
        members,
        group.pending_join,
        group.pending_sync,
        [(member.instance, member.member_id) for member in group.members if member.instance is not None],
    )


def broken(before: Group | None, after: Group, profile: Profile = INTENDED) -> list[str]:
    """Return the promises that a state or the step to it breaks. ``profile``: that of the model."""
    view = view_of(after)
    found = [promise for promise, _ in broken_promises(view, profile)]
    if before is not None:
        found += [promise for promise, _ in broken_promises(ClassicGroupStep(view_of(before), view), profile)]
    return found


def broken_by_answer(
    request: RequestBody, answer: ResponseBody, group: Group | None, profile: Profile = INTENDED
) -> list[str]:
    """Return the promises that an answer breaks. ``group``: the group after the step that answered."""
    view = None if group is None else view_of(group)
    seen: JoinAnswerView | SyncAnswerView
    if isinstance(answer, JoinGroupResponse) and answer.error_code is ErrorCode.NONE:
        seen = JoinAnswerView(answer.member_id, {row.member_id for row in answer.members}, view)
    elif isinstance(request, SyncGroupRequest) and getattr(answer, "error_code", None) is ErrorCode.NONE:
        seen = SyncAnswerView(request.generation_id, view)
    else:
        return []
    return [promise for promise, _ in broken_promises(seen, profile)]
