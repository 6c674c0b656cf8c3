"""Rules of classic groups, each broken by a Kafka bug."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerFired, TimerKind
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
)
from fencepost.protocol.view import GroupState, GroupView

from .judge import reached
from .played_trace import PlayedTrace, Step


def join_phase_has_a_timer(played: PlayedTrace, place: int, step: Step) -> str | None:
    """LIV-02: a group in PreparingRebalance has a timer that ends it."""
    reached(any(played.asked(JoinGroupRequest)), "no member joined")
    for name, view in step.classic.items():
        timed = any(key.kind is TimerKind.JOIN and key.group_id == name for key in step.armed)
        if view.state is GroupState.PREPARING_REBALANCE and not timed:
            return f"{name} is in PreparingRebalance, but no timer ends it"
    return None


def groups_are_listed_once(played: PlayedTrace) -> str | None:
    """C-ADM-05: ListGroups lists a group once."""
    lists = [answer for _, _, answer in played.asked(ListGroupsRequest) if isinstance(answer, ListGroupsResponse)]
    reached(lists, "no ListGroups is answered")
    for answer in lists:
        names = [row.group_id for row in answer.groups]
        for name in names:
            if names.count(name) > 1:
                return f"ListGroups shows {name} {names.count(name)} times"
    return None


def empty_group_can_be_deleted(played: PlayedTrace) -> str | None:
    """C-ADM-09: the deletion of a group that is empty when the request arrives is not rejected as non-empty."""
    judged = False
    for place, _, answer in played.asked(DeleteGroupsRequest):
        for row in answer.results if isinstance(answer, DeleteGroupsResponse) else ():
            then = played.before(place).classic.get(row.group_id)
            if then is None or then.state is not GroupState.EMPTY:
                continue
            judged = True
            if row.error_code is ErrorCode.NON_EMPTY_GROUP:
                return f"{row.group_id} was empty, but its deletion is answered NON_EMPTY_GROUP"
    reached(judged, "no deletion of an empty group is answered")
    return None


def undone_replacement_restores_the_member(played: PlayedTrace) -> str | None:
    """C-STATIC-18: a static member whose replacement is undone has its previous protocols and timeouts."""
    known: dict[tuple[str, str], object] = {}
    away: set[tuple[str, str]] = set()
    for place, step in enumerate(played.steps):
        there = {(name, row.member_id): row for name, view in step.classic.items() for row in view.members}
        away |= known.keys() - there.keys()
        for key, row in there.items():
            kept = (row.protocols, row.session_timeout_ms, row.rebalance_timeout_ms)
            if key in away and known[key] != kept:
                return f"{key[1]} is restored with values that another member sent (event {place})"
            known[key] = kept
            away.discard(key)
    reached(any(event.group_instance_id for _, event, _ in played.asked(JoinGroupRequest)), "no static member joined")
    return None


def awaiting_member_has_an_open_request(played: PlayedTrace, place: int, step: Step) -> str | None:
    """C-JOIN-70: a member that counts as parked has an open request."""
    waiting = [each.body for each in played.waiting(place)]
    for name, view in step.classic.items():
        joins = sum(isinstance(body, JoinGroupRequest) and body.group_id == name for body in waiting)
        parked = [row.member_id for row in view.members if row.awaiting_join]
        if len(parked) > joins:
            return f"{', '.join(parked)} of {name} counts as waiting, but has its answer"
    return None


def no_member_awaits_a_join(played: PlayedTrace) -> str | None:
    """Return the reason why a played trace is not judged: no JoinGroup waits for its answer; else None."""
    rows = (row for step in played.steps for view in step.classic.values() for row in view.members)
    return None if any(row.awaiting_join for row in rows) else "no JoinGroup waits for its answer"


def no_member_owes_a_sync(played: PlayedTrace) -> str | None:
    """Return the reason why a played trace is not judged: no classic group waits for a SyncGroup; else None."""
    views = (view for step in played.steps for view in step.classic.values())
    return None if any(view.pending_sync for view in views) else "no member owes a SyncGroup"


def every_sync_is_answered(played: PlayedTrace) -> str | None:
    """LIV-03, F-UNLOAD-01: a SyncGroup is answered, at the latest when the partition is lost."""
    syncs = [(body, answer) for _, body, answer in played.asked(SyncGroupRequest)]
    reached(syncs, "no member sent a SyncGroup")
    open_ones = [body.member_id for body, answer in syncs if answer is None]
    return f"the SyncGroup of {', '.join(open_ones)} is never answered" if open_ones else None


def static_member_is_not_rejected_for_capacity(played: PlayedTrace) -> str | None:
    """C-JOIN-20…22: a static member of the group is not rejected for capacity."""
    returns = 0
    for place, body, answer in played.asked(JoinGroupRequest):
        before = played.before(place).classic.get(body.group_id)
        if before is None or body.group_instance_id not in dict(before.static_members):
            continue
        returns += 1
        if isinstance(answer, JoinGroupResponse) and answer.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED:
            return f"{body.group_instance_id} is in {body.group_id}, but is rejected for capacity"
    reached(returns, "no static member comes back")
    return None


def join_phase_ends_once_all_have_joined(played: PlayedTrace) -> str | None:
    """C-JOIN-41: a join phase that all members have joined ends, apart from its initial delay."""
    reached(
        any(getattr(answer, "error_code", None) is ErrorCode.GROUP_MAX_SIZE_REACHED for _, _, answer in _joins(played)),
        "no member is rejected for capacity",
    )
    for place, step in enumerate(played.steps):
        for name, view in step.classic.items():
            if _delayed(view) or view.state is not GroupState.PREPARING_REBALANCE or view.pending_join:
                continue
            if view.members and all(row.awaiting_join for row in view.members) and _refused_at(played, step):
                return f"all members of {name} have joined, but wait for the timer (event {place})"
    return None


def _joins(played: PlayedTrace) -> list[tuple[int, JoinGroupRequest, object]]:
    return list(played.asked(JoinGroupRequest))


def _delayed(view: GroupView) -> bool:
    return view.previous_state is GroupState.EMPTY


def _refused_at(played: PlayedTrace, step: Step) -> bool:
    """Whether this step rejected a JoinGroup for capacity; it shows who has joined at that moment."""
    return isinstance(step.event, Request) and any(
        getattr(reply.body, "error_code", None) is ErrorCode.GROUP_MAX_SIZE_REACHED for reply in step.seen.replies
    )


def initial_delay_ends_without_new_members(played: PlayedTrace) -> str | None:
    """C-JOIN-43: a single member that joins an empty group is answered when the initial delay is over."""
    alone = 0
    for place, step in enumerate(played.steps):
        fired = step.event
        if not isinstance(fired, TimerFired) or fired.key.kind is not TimerKind.JOIN:
            continue
        came = [
            at for at, body, _ in played.asked(JoinGroupRequest) if at < place and body.group_id == fired.key.group_id
        ]
        first = played.before(came[-1]).classic.get(fired.key.group_id) if came else None
        earlier = [
            at
            for at, each in enumerate(played.steps[:place])
            if came and at > came[-1] and isinstance(each.event, TimerFired) and each.event.key == fired.key
        ]
        if not came or earlier or (first is not None and first.state is not GroupState.EMPTY):
            continue
        alone += 1
        if not step.seen.replies:
            return f"the delay of {fired.key.group_id} starts again, although no member joined (event {place})"
    reached(alone, "no initial delay of a single member expires")
    return None


def join_with_a_common_protocol_is_accepted(played: PlayedTrace) -> str | None:
    """C-JOIN-31, G-DATA-08: a JoinGroup with a protocol that all members support is not rejected for its protocols."""
    judged = 0
    for place, body, answer in played.asked(JoinGroupRequest):
        before = played.before(place).classic.get(body.group_id)
        if before is None or not before.members or answer is None:
            continue
        shared = {each.name for each in body.protocols}.intersection(
            *({each.name for each in row.protocols} for row in before.members)
        )
        judged += bool(shared)
        if shared and getattr(answer, "error_code", None) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return f"all members support {', '.join(sorted(shared))}, but an offer of it is rejected (event {place})"
    reached(judged, "no JoinGroup offers a protocol that all members support")
    return None
