"""Next requests of a classic group's members: join, sync, heartbeat, leave, early and late; and the group's
deletion."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from fencepost.protocol.view import GroupState

from .bounds import GROUP, Bounds, Move, Scene

INSTANCE = "i"
RANGE = (Protocol("range", b"1"),)
BOTH = (Protocol("range", b"1"), Protocol("roundrobin", b"1"))


def classic_moves(bounds: Bounds, scene: Scene) -> Iterator[Move]:
    """Yield the moves in a group whose coordinator does not read the members' metadata."""
    group = scene.classic
    generation = 0 if group is None else group.generation_id
    if scene.made < bounds.ids:
        yield Move("", "joins", _join("", None, RANGE))
        if bounds.static:
            yield Move("", "static joins", _join("", INSTANCE, RANGE))
            yield Move("", "static joins with another list", _join("", INSTANCE, BOTH))
    if group is None:
        return
    for member_id in sorted(group.pending_join):
        yield Move(member_id, "uses its id", _join(member_id, None, RANGE))
        yield Move(member_id, "leaves", LeaveGroupRequest(GROUP, (LeaveGroupMember(member_id),)))
    ids = [member.member_id for member in group.members]
    for member in group.members:
        name, instance = member.member_id, member.group_instance_id
        if bounds.generation is None or generation < bounds.generation:
            yield Move(name, "rejoins", _join(name, instance, RANGE))
            yield Move(name, "rejoins with another list", _join(name, instance, BOTH))
        shares = tuple(SyncGroupAssignment(each, each.encode()) for each in ids) if name == group.leader else ()
        yield Move(name, "syncs", _sync(generation, name, instance, shares))
        if generation > 0:
            yield Move(name, "syncs late", _sync(generation - 1, name, instance, shares))
        yield Move(
            name,
            "heartbeats",
            HeartbeatRequest(GROUP, generation_id=generation, member_id=name, group_instance_id=instance),
        )
        yield Move(name, "leaves", LeaveGroupRequest(GROUP, (LeaveGroupMember(name),)))
    if group.state is GroupState.EMPTY:
        yield Move("", "is deleted", DeleteGroupsRequest((GROUP,)))


def _join(member_id: str, instance: str | None, protocols: tuple[Protocol, ...]) -> JoinGroupRequest:
    return JoinGroupRequest(
        GROUP,
        session_timeout_ms=100,
        rebalance_timeout_ms=1_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=protocols,
    )


def _sync(
    generation: int, member_id: str, instance: str | None, shares: tuple[SyncGroupAssignment, ...]
) -> SyncGroupRequest:
    return SyncGroupRequest(
        GROUP,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocol_name="range",
        assignments=shares,
    )
