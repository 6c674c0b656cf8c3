"""Requests that the search need not try in every order.

The coordinator can process twenty joins in 20! orders, and the search would try all of them before it refuses a trace.
But requests of one *kind* commute: in either order they get the same answers and leave the same group. So of each kind
the search tries only the request that was sent first. It tries every order of requests of different kinds.

The kind of a request depends on its answer in the trace, and on the present group:

* JoinGroups in the running rebalance, answered NONE with its generation. The first one decides the leader, so they
  commute only once there is a leader. A JoinGroup that replaces a static member, or whose instance id another request
  under way has too, commutes with nothing.
* Unanswered JoinGroups of known dynamic members in the running rebalance: usually another JoinGroup of the member
  replaces them (C-JOIN-59).
* SyncGroups of followers in the current generation, answered NONE: parked, or answered from the stored assignment.
* Heartbeats answered NONE, or REBALANCE_IN_PROGRESS: they change only the session of the sender.
* JoinGroups that get a member id: each adds another id. A rebalance waits for each id, so one that is answered late may
  have to be processed after the rebalance. So the search tries these in the order of their answers.

This is not exact if a timer of one of the members fires between two requests of one kind. So a refused trace is
searched once more in all orders, within ``Limits.second_look`` steps.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

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

#: The kind of the JoinGroups that get a member id.
NEW_ID: Final = "new id"


def kind(op: Op, answer: Answer | None, group: Group | None, others: Sequence[Op], known: Container[int]) -> str | None:
    """The kind of a request: those of the same kind commute, None commutes with nothing. ``others`` are under way, too.
    ``known``: the requests whose answers the model must give."""
    body = op.body
    error = getattr(answer, "error_code", None)
    if isinstance(body, HeartbeatRequest):
        if error is ErrorCode.NONE:
            return "calm heartbeat"
        return "heartbeat in rebalance" if error is ErrorCode.REBALANCE_IN_PROGRESS else None
    if isinstance(answer, DescribeGroupsResponse | ListGroupsResponse):
        return f"description {hash(answer)}"  # it changes nothing, so equal ones commute
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
        return NEW_ID
    if group.state != PREPARING or group.leader is None or not isinstance(answer, JoinGroupResponse):
        return None
    if _beside_another(op, body, group, others):
        return None
    return "join" if error is ErrorCode.NONE and answer.generation_id == group.generation + 1 else None


def _goes_unseen(op: Op, body: JoinGroupRequest, group: Group, others: Sequence[Op], known: Container[int]) -> bool:
    """Whether the JoinGroup of a known member is parked without replacing a request that was answered (C-JOIN-59)."""
    if group.state != PREPARING or group.leader is None or body.group_instance_id:
        return False
    parked = [member.join for member in group.members if member.member_id == body.member_id]
    free = body.member_id in group.pending_join or (bool(parked) and parked[0] not in known)
    return free and not _beside_another(op, body, group, others)


def _beside_another(op: Op, body: JoinGroupRequest, group: Group, others: Sequence[Op]) -> bool:
    """Whether another JoinGroup of the same member makes the order matter.

    The first JoinGroup of a pending id creates the member, with its client id. The last one stays parked, with its
    protocols. It is not certain which of several answered ones that is. One without an answer comes before one with.
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
    """The parked requests that this one replaces, so that they get no answer (C-JOIN-59, C-SYNC-19)."""
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
    """Whether the group changes when its records become durable (C-SYNC-21, C-STATIC-03)."""
    return any(isinstance(operation.callback, Assigned | Replaced) for operation in state.operations)


def leads(op: Op, answer: Answer | None, group: Group | None) -> bool:
    """Whether this request came first: the group has no leader, and the answer makes the sender the leader."""
    if not isinstance(answer, JoinGroupResponse) or (group is not None and group.leader is not None):
        return False
    return bool(answer.leader) and answer.leader == answer.member_id and isinstance(op.body, JoinGroupRequest)
