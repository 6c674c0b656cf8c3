"""Invariants of a classic group's state, checked on its view after each event (12.1)."""

from __future__ import annotations

from collections.abc import Mapping, Set

from fencepost.protocol.events import Event, Request, TimerFired
from fencepost.protocol.view import GroupState, GroupView, MemberView

from .broken import demand

EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)


def check_group(group: GroupView) -> None:
    """Check the invariants of one view, without the exceptions that only Kafka's faults need."""
    name, state = group.group_id, group.state
    members = {member.member_id: member for member in group.members}
    both = members.keys() & group.pending_join
    demand(not both, "INV-MEM-01", f"{name}: {sorted(both)} are members and pending")
    mapped = dict(group.static_members)
    named = {member.group_instance_id: id_ for id_, member in members.items() if member.group_instance_id is not None}
    demand(mapped == named, "INV-MEM-02", f"{name}: instance ids map to {mapped}, by its members {named}")
    demand(
        len(named) == sum(member.group_instance_id is not None for member in group.members),
        "INV-MEM-02",
        f"{name}: two members share an instance id",
    )
    if state is EMPTY:
        demand(not members, "INV-MEM-03", f"{name}: Empty with members {sorted(members)}")
    elif state in (COMPLETING, STABLE):
        demand(bool(members), "INV-MEM-03", f"{name}: {state.value} without members")
    elif not members:
        # C-ST-26: with pending ids, or in the initial delay after the last member left
        excused = bool(group.pending_join) or group.previous_state is EMPTY
        demand(excused, "INV-MEM-03", f"{name}: Preparing without members and without pending ids")
    if not members:
        demand(group.leader is None, "INV-MEM-04", f"{name}: leader {group.leader} without members")
    elif state in (COMPLETING, STABLE):
        demand(group.leader in members, "INV-MEM-04", f"{name}: leader {group.leader} is not a member")
    for member in group.members:
        _check_parked(name, state, member)
    if state in (COMPLETING, STABLE):
        strangers = group.pending_sync - members.keys()
        demand(not strangers, "INV-MEM-07", f"{name}: awaits SyncGroup of {sorted(strangers)}")
        for member in group.members:
            offered = {protocol.name for protocol in member.protocols}
            demand(
                group.protocol_name in offered,
                "INV-PROTO-01",
                f"{name}: {member.member_id} does not support {group.protocol_name}",
            )


def _check_parked(name: str, state: GroupState, member: MemberView) -> None:
    replaced = state is STABLE and member.group_instance_id is not None  # a replacement that is being appended
    demand(
        not member.awaiting_join or state is PREPARING or replaced,
        "INV-MEM-05",
        f"{name}: {member.member_id} waits to join in {state.value}",
    )
    demand(
        not member.awaiting_sync or state is COMPLETING,
        "INV-MEM-06",
        f"{name}: {member.member_id} waits for its assignment in {state.value}",
    )


def check_change(before: GroupView, after: GroupView) -> None:
    """INV-GEN-01: the generation grows by one exactly when a join phase completes (C-ST-13, C-ST-14)."""
    grown = after.generation_id - before.generation_id
    name = after.group_id
    demand(grown in (0, 1), "INV-GEN-01", f"{name}: generation {before.generation_id} → {after.generation_id}")
    if grown:
        demand(
            after.state in (COMPLETING, EMPTY) and after.previous_state is PREPARING,
            "INV-GEN-01",
            f"{name}: a new generation, but {after.previous_state.value} → {after.state.value}",
        )
    elif before.state is PREPARING and after.state in (COMPLETING, EMPTY):
        demand(False, "INV-GEN-01", f"{name}: a join phase completed within generation {after.generation_id}")


def check_independence(event: Event, changed: Set[str], before: Mapping[str, GroupView]) -> None:
    """INV-GRP-01: an event for one group changes no other. The log may fail or finish operations of several groups."""
    match event:
        case Request(body=body):
            concerned = {getattr(body, "group_id", None), *getattr(body, "groups_names", ())}
        case TimerFired(key=key) if key.group_id:
            concerned = {key.group_id}
        case _:
            return
    for name in changed - concerned:
        demand(False, "INV-GRP-01", f"{name} changed by {type(event).__name__} for {concerned}: {before.get(name)}")
