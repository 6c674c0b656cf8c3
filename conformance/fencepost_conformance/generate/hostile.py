"""Requests that no well-behaved client would send now: stale, forged, out of range, for another member.

Most begin as a real request and are wrong in one or two fields, so that they pass all checks but the intended one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Protocol

from fencepost.protocol import messages as m
from fencepost.protocol.view import GroupState, GroupView

from .clients import Client
from .plan import PROTOCOL_LISTS, PROTOCOL_TYPES, Plan, offered

_STRANGE_MEMBERS = ("", "unknown-member", "x")
_SESSION_TIMEOUTS = (-1, 0, 1, 5_999, 6_000, 1_800_000, 1_800_001, 2_147_483_647)


class Program(Protocol):
    """A client of either protocol, as far as a forger needs it."""

    @property
    def plan(self) -> Any: ...


class Surroundings(Protocol):
    """The knowledge of a forger: the plan, the clients, ids that were handed out, and the groups' state if it is
    visible. ``strange_groups``: names of groups without clients."""

    strange_groups: Sequence[str]

    @property
    def plan(self) -> Plan: ...
    @property
    def clients(self) -> Sequence[Program]: ...
    @property
    def known_ids(self) -> Sequence[str]: ...
    @property
    def groups(self) -> Mapping[str, GroupView]: ...


def member_id(rng: Random, world: Surroundings, client: Client) -> str:
    """Draw a member id: its own, another member's, an old one, an unknown one."""
    draw = rng.random()
    if draw < 0.35 and client.member_id:
        return client.member_id
    view = world.groups.get(client.plan.group_id)
    if draw < 0.55 and view is not None and view.members:
        return rng.choice(view.members).member_id
    if draw < 0.85 and world.known_ids:
        # recent ids more often: they are still members or pending
        return rng.choice(world.known_ids[-6:]) if rng.random() < 0.7 else rng.choice(world.known_ids)
    return rng.choice(_STRANGE_MEMBERS)


def instance_id(rng: Random, world: Surroundings, client: Client) -> str | None:
    pool: list[str | None] = [
        None,
        client.plan.instance_id,
        "nobody",
        *(other.plan.instance_id for other in world.clients),
    ]
    return rng.choice(pool)


def group_id(rng: Random, world: Surroundings) -> str:
    return rng.choice(world.plan.groups) if rng.random() < 0.8 else rng.choice(world.strange_groups)


def generation(rng: Random, world: Surroundings, client: Client) -> int:
    view = world.groups.get(client.plan.group_id)
    current = view.generation_id if view else client.generation
    return rng.choice((current, current, current - 1, current + 1, client.generation, -1, 0, 2_147_483_647))


def join(rng: Random, world: Surroundings, client: Client) -> tuple[int, m.RequestBody]:
    version, body = client.join()
    assert isinstance(body, m.JoinGroupRequest)

    def other_protocols() -> dict[str, Any]:
        plan = replace(client.plan, protocols=rng.choice(PROTOCOL_LISTS), protocol_type=rng.choice(PROTOCOL_TYPES))
        protocols = list(offered(plan, rng.randrange(3)))
        if rng.random() < 0.1:
            protocols = []
        elif rng.random() < 0.2:
            rng.shuffle(protocols)
        elif rng.random() < 0.1:
            protocols.append(protocols[0])  # a duplicate name (C-JOIN-72)
        elif rng.random() < 0.2:  # not a consumer's metadata (G-DATA-10)
            protocols[0] = replace(protocols[0], metadata=rng.choice((b"", b"\xff\xff", b"\x00\x00\x7f\xff\xff\xff")))
        return {"protocol_type": plan.protocol_type, "protocols": tuple(protocols)}

    changes: list[Callable[[], dict[str, Any]]] = [
        lambda: {"member_id": member_id(rng, world, client)},
        lambda: {"member_id": member_id(rng, world, client)},
        lambda: {"group_instance_id": instance_id(rng, world, client)},
        lambda: {"group_id": group_id(rng, world)},
        lambda: {"session_timeout_ms": rng.choice(_SESSION_TIMEOUTS)},
        lambda: {"rebalance_timeout_ms": rng.choice((0, 1, 1_000, 10_000, 2_147_483_647))},
        lambda: {"protocol_type": rng.choice(("", "consumer", "connect"))},
        other_protocols,
        other_protocols,
    ]
    made = _change(rng, body, changes)
    version = rng.randint(0, 9) if rng.random() < 0.3 else version
    # a field that a version does not carry cannot arrive (G-WIRE-01)
    return version, replace(
        made,
        rebalance_timeout_ms=max(made.rebalance_timeout_ms, 0) if version >= 1 else -1,
        group_instance_id=made.group_instance_id if version >= 5 else None,
        reason=made.reason if version >= 8 else None,
    )


def sync(rng: Random, world: Surroundings, client: Client) -> tuple[int, m.RequestBody]:
    version, body = client.sync(rng)
    assert isinstance(body, m.SyncGroupRequest)
    ids = [member_id(rng, world, client) for _ in range(rng.randrange(4))]

    changes: list[Callable[[], dict[str, Any]]] = [
        lambda: {"member_id": member_id(rng, world, client)},
        lambda: {"generation_id": generation(rng, world, client)},
        lambda: {"group_instance_id": instance_id(rng, world, client)},
        lambda: {"group_id": group_id(rng, world)},
        lambda: {"protocol_type": rng.choice(("consumer", "connect", ""))},
        lambda: {"protocol_name": rng.choice(("range", "roundrobin", ""))},
        # C-SYNC-32: the same id twice, ids that are not members
        lambda: {
            "assignments": tuple(m.SyncGroupAssignment(name, b"odd %d" % n) for n, name in enumerate(ids + ids[:1]))
        },
    ]
    made = _change(rng, body, changes)
    version = rng.randint(0, 5) if rng.random() < 0.3 else version
    if version >= 5 and rng.random() < 0.05:
        return version, replace(made, protocol_type=None)  # C-SYNC-01
    carries_protocol = version >= 5
    return version, replace(
        made,
        group_instance_id=made.group_instance_id if version >= 3 else None,
        protocol_type=(made.protocol_type or client.plan.protocol_type) if carries_protocol else None,
        protocol_name=(made.protocol_name or client.plan.protocols[0]) if carries_protocol else None,
    )


def heartbeat(rng: Random, world: Surroundings, client: Client) -> tuple[int, m.RequestBody]:
    version, body = client.heartbeat()
    assert isinstance(body, m.HeartbeatRequest)
    changes: list[Callable[[], dict[str, Any]]] = [
        lambda: {"member_id": member_id(rng, world, client)},
        lambda: {"member_id": member_id(rng, world, client), "generation_id": generation(rng, world, client)},
        lambda: {"generation_id": generation(rng, world, client)},
        lambda: {"group_instance_id": instance_id(rng, world, client)},
        lambda: {"group_id": group_id(rng, world)},
    ]
    made = _change(rng, body, changes)
    version = rng.randint(0, 4) if rng.random() < 0.3 else version
    return version, replace(made, group_instance_id=made.group_instance_id if version >= 3 else None)


def leave(rng: Random, world: Surroundings, client: Client) -> tuple[int, m.RequestBody]:
    """Draw a batch with duplicate ids, unknown ids, pending ids, or removal by instance id (C-LEAVE-10…14, 27)."""
    version = rng.randint(0, 5)
    count = 1 if version <= 2 else rng.choice((0, 1, 1, 1, 2, 2, 3))
    entries = [
        m.LeaveGroupMember(
            "" if version >= 3 and rng.random() < 0.3 else member_id(rng, world, client),
            group_instance_id=instance_id(rng, world, client) if version >= 3 and rng.random() < 0.6 else None,
            reason="evicted" if version >= 5 else None,
        )
        for _ in range(count)
    ]
    if len(entries) > 1 and rng.random() < 0.4:
        entries[-1] = entries[0]
    name = client.plan.group_id if rng.random() < 0.9 else group_id(rng, world)
    return version, m.LeaveGroupRequest(name, tuple(entries))


def describe(rng: Random, world: Surroundings) -> tuple[int, m.RequestBody]:
    count = rng.choice((1, 1, 2, 3))
    return rng.randint(0, 6), m.DescribeGroupsRequest(tuple(group_id(rng, world) for _ in range(count)))


def list_groups(rng: Random) -> tuple[int, m.RequestBody]:
    version = rng.randint(0, 5)
    states = ("Stable", "empty", " PREPARINGREBALANCE ", "CompletingRebalance", "Dead", "Assigning", "nonsense")
    return version, m.ListGroupsRequest(
        states_filter=tuple(rng.sample(states, rng.choice((0, 0, 1, 2)))) if version >= 4 else (),
        types_filter=tuple(rng.sample(("classic", "CLASSIC", "consumer", "what"), rng.choice((0, 0, 1, 2))))
        if version >= 5
        else (),
    )


def delete(rng: Random, world: Surroundings) -> tuple[int, m.RequestBody]:
    empty = [view.group_id for view in world.groups.values() if view.state is GroupState.EMPTY]
    chosen = [
        rng.choice(empty) if empty and rng.random() < 0.5 else group_id(rng, world)
        for _ in range(rng.choice((1, 1, 2)))
    ]
    return rng.randint(0, 2), m.DeleteGroupsRequest(tuple(dict.fromkeys(chosen)))  # the handler drops duplicates


def _change(rng: Random, body: Any, changes: list[Callable[[], dict[str, Any]]]) -> Any:
    for _ in range(rng.choice((1, 1, 1, 2))):
        body = replace(body, **rng.choice(changes)())
    return body
