"""Invariants of classic groups, checked on their views before and after each event (12.1)."""

from __future__ import annotations

from collections.abc import Mapping, Set

from fencepost.protocol.events import Event, Request, TimerFired
from fencepost.protocol.view import GroupView
from fencepost_model.promises import ClassicGroupStep, ClassicGroupView, ClassicMemberView

from .broken import demand, demand_promises


def view_of(group: GroupView) -> ClassicGroupView:
    """Return what promises see of the group."""
    members = [
        ClassicMemberView(
            member.member_id,
            member.group_instance_id,
            [protocol.name for protocol in member.protocols],
            member.awaiting_join,
            member.awaiting_sync,
        )
        for member in group.members
    ]
    return ClassicGroupView(
        group.state.value,
        group.previous_state.value,
        group.generation_id,
        group.protocol_name,
        group.leader,
        members,
        group.pending_join,
        group.pending_sync,
        group.static_members,
    )


def check_group(group: GroupView) -> None:
    """Check the invariants of one view, without the exceptions that only Kafka's faults need."""
    demand_promises(view_of(group), group.group_id)


def check_change(before: GroupView, after: GroupView) -> None:
    """Check a step other than a load."""
    demand_promises(ClassicGroupStep(view_of(before), view_of(after)), after.group_id)


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
