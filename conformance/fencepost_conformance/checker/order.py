"""Which requests under way need not be tried in every order.

Twenty members that join one generation can be taken up in 20! orders, and on the way to refusing a trace all would be
looked at. But requests of one *kind*, as named here, commute: taken up in either order they are answered alike and
leave the same group. So of each kind only the one that was sent first is tried next. Across kinds every order is tried.

The kinds lean on the answer that was seen, and on the group as it is:

* JoinGroups into the phase that is running, answered NONE with the generation it leads to. The order of the first one
  decides the leader, so they commute only once there is a leader. One that takes the place of a static member, or whose
  instance id another request under way has too, commutes with nothing.
* unanswered JoinGroups of known dynamic members into the phase that is running: mostly
  another JoinGroup of the member takes their place (C-JOIN-59).
* SyncGroups of followers in the current generation, answered NONE: parked, or answered from the store.
* Heartbeats answered NONE, or REBALANCE_IN_PROGRESS: they change nothing but the session of the sender.
* JoinGroups that are given a member id: each adds another id.

This is not exact if a timer runs out between two requests of one kind and concerns one of their
members. A trace that is refused is therefore looked at once more without it, within ``Limits.second_look`` steps.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DescribeGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsResponse,
    SyncGroupRequest,
)
from fencepost_model.classic.group import GroupState, Successor
from fencepost_model.classic.state import Assigned, Group, Replaced
from fencepost_model.machines import COMPLETING, PREPARING, STABLE

from .history import Answer, Op


def kind(op: Op, answer: Answer | None, group: Group | None, others: Sequence[Op], known: Container[int]) -> str | None:
    """Requests of the same kind commute; None commutes with nothing. ``others`` are under way too. ``known``: the
    requests whose answer is to be met."""
    body = op.body
    error = getattr(answer, "error_code", None)
    if isinstance(body, HeartbeatRequest):
        if error is ErrorCode.NONE:
            return "calm heartbeat"
        return "heartbeat in rebalance" if error is ErrorCode.REBALANCE_IN_PROGRESS else None
    if isinstance(answer, DescribeGroupsResponse | ListGroupsResponse):
        return f"description {hash(answer)}"  # it changes nothing, so those that say the same commute
    if answer is None and isinstance(body, JoinGroupRequest):
        return "join" if group is not None and _goes_unseen(op, body, group, others, known) else None
    if group is None or error is None:
        return None
    if isinstance(body, SyncGroupRequest):
        current = group.state in (COMPLETING, STABLE) and body.generation_id == group.generation
        return "follower" if current and error is ErrorCode.NONE and body.member_id != group.leader else None
    if not isinstance(body, JoinGroupRequest) or (body.group_instance_id and _contested(op, body, group, others)):
        return None
    if error is ErrorCode.MEMBER_ID_REQUIRED:
        return "new id"
    if group.state != PREPARING or group.leader is None or not isinstance(answer, JoinGroupResponse):
        return None
    if _beside_another(op, body, group, others):
        return None
    return "join" if error is ErrorCode.NONE and answer.generation_id == group.generation + 1 else None


def _goes_unseen(op: Op, body: JoinGroupRequest, group: Group, others: Sequence[Op], known: Container[int]) -> bool:
    """The JoinGroup parks a member that is known, and takes the place of no request that was answered (C-JOIN-59)."""
    if group.state != PREPARING or group.leader is None or body.group_instance_id:
        return False
    parked = [member.join for member in group.members if member.member_id == body.member_id]
    free = body.member_id in group.pending_join or (bool(parked) and parked[0] not in known)
    return free and not _beside_another(op, body, group, others)


def _beside_another(op: Op, body: JoinGroupRequest, group: Group, others: Sequence[Op]) -> bool:
    """Does another JoinGroup of the same member make a difference?

    The first one makes a member of a pending id, with its own client id. The last one is parked, with its protocols: of
    those that are answered alike, which one is not certain; one without an answer goes before one with an answer.
    """
    same = [
        other
        for other in others
        if other is not op
        and body.member_id
        and isinstance(other.body, JoinGroupRequest)
        and other.body.member_id == body.member_id
    ]
    if body.member_id in group.pending_join and any(other.client_id != op.client_id for other in same):
        return True
    if op.answer is not None:
        return any(other.answer is not None for other in same)
    return all(other.answer is None for other in same) and any(other.body != body for other in same)


def replaced(number: int, before: GroupState, result: Successor) -> set[int]:
    """The parked requests whose place this one takes, so that they get no answer (C-JOIN-59, C-SYNC-19)."""
    group, after = before.group, result.state.group
    if group is None or after is None:
        return set()
    now = next((member for member in after.members if number in (member.join, member.sync)), None)
    was = next((member for member in group.members if now is not None and member.member_id == now.member_id), None)
    if now is None or was is None:
        return set()
    lost = {
        old for old, new in ((was.join, now.join), (was.sync, now.sync)) if old is not None and new == number != old
    }
    return lost.difference(answered for answered, _ in result.output.replies)


def _contested(op: Op, body: JoinGroupRequest, group: Group, others: Sequence[Op]) -> bool:
    instance = body.group_instance_id
    if any(member.instance == instance and member.member_id != body.member_id for member in group.members):
        return True
    return any(other is not op and getattr(other.body, "group_instance_id", None) == instance for other in others)


def changes_when_durable(state: GroupState) -> bool:
    """Does the group change when its records become durable (C-SYNC-21, C-STATIC-03)?"""
    return any(isinstance(operation.callback, Assigned | Replaced) for operation in state.operations)


def leads(op: Op, answer: Answer | None, group: Group | None) -> bool:
    """The group has no leader, and this request was answered that its sender is the leader: it came first."""
    if not isinstance(answer, JoinGroupResponse) or (group is not None and group.leader is not None):
        return False
    return bool(answer.leader) and answer.leader == answer.member_id and isinstance(op.body, JoinGroupRequest)
