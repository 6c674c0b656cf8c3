"""The promise about instance ids, which groups of both protocols make."""

from __future__ import annotations

from .views import ClassicGroupView, GroupView


def one_member_per_instance(group: GroupView | ClassicGroupView) -> str:
    """Return which two members share an instance id, or an empty string."""
    owners: dict[str, str] = {}
    for member in group.members:
        if member.instance is not None and owners.setdefault(member.instance, member.member_id) != member.member_id:
            return f"{owners[member.instance]} and {member.member_id} are both instance {member.instance}"
    return ""


def instances_map_to_their_members(group: GroupView | ClassicGroupView) -> str:
    """Return how the map of instance ids differs from the members, or an empty string."""
    mine = {(member.instance, member.member_id) for member in group.members if member.instance is not None}
    if mine != {*group.instances}:
        return f"instance ids map to {sorted(group.instances)}, by the members {sorted(map(str, mine))}"
    return one_member_per_instance(group)
