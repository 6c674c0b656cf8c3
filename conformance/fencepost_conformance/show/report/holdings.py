"""The holders of partitions after a step: each group with its epochs, each member with its epochs and partitions.

A classic member *holds* its last stored assignment while its group is Stable. In any other state that is the assignment
of an earlier generation, which the member will revoke or keep in the next one (``giving_up``). A member of a consumer
group holds its assigned partitions and gives up those that are pending revocation (G-DATA-29).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView
from fencepost.protocol.view import GroupState, GroupView

from ...traces.observation import Observation
from .names import Names, Partition, assignment_words, decoded

CLASSIC, CONSUMER = "classic", "consumer"


@dataclass(frozen=True, slots=True)
class MemberAt:
    """One member. ``target`` None: the group has none for it. ``other``: an assignment in another format."""

    member: str
    protocol: str
    epochs: str
    state: str
    holds: tuple[Partition, ...]
    giving_up: tuple[Partition, ...] = ()
    target: tuple[Partition, ...] | None = None
    other: str = ""


@dataclass(frozen=True, slots=True)
class GroupAt:
    """One group. ``epochs`` by name; ``notes``: other facts. ``state`` "gone": the group no longer exists."""

    group: str
    kind: str
    state: str
    epochs: tuple[tuple[str, int], ...] = ()
    members: tuple[MemberAt, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gone(self) -> bool:
        return self.state == "gone"


def changed(seen: Observation, names: Names) -> tuple[GroupAt, ...]:
    """Return the groups that the step changed. A converted group (X-UP, X-DOWN) is shown as its new kind."""
    found: dict[str, GroupAt] = {}
    for name, view in seen.groups.items():
        found[name] = GroupAt(name, CLASSIC, "gone") if view is None else classic(view, names)
    for name, of_consumers in seen.consumer_groups.items():
        if of_consumers is not None:
            found[name] = consumer(of_consumers, names)
        elif name not in found:
            found[name] = GroupAt(name, CONSUMER, "gone")
    return tuple(found[name] for name in sorted(found))


def after_each(steps: Sequence[tuple[GroupAt, ...]]) -> list[dict[str, GroupAt]]:
    """Return all groups after each step, from the groups that each step changed."""
    standing: dict[str, GroupAt] = {}
    standings = []
    for groups in steps:
        if groups:
            standing = {**standing, **{group.group: group for group in groups}}
            standing = {name: standing[name] for name in sorted(standing) if not standing[name].gone}
        standings.append(standing)
    return standings


def classic(view: GroupView, names: Names) -> GroupAt:
    """Return a classic group. Assignments in the consumers' format are decoded; others are shown as they are."""
    settled = view.state is GroupState.STABLE
    members = []
    for row in view.members:
        partitions = decoded(row.assignment)
        waits = "waits for the join answer" if row.awaiting_join else "waits for the sync answer"
        state = waits if row.awaiting_join or row.awaiting_sync else ""
        if row.member_id == view.leader:
            state = f"leader{f', {state}' if state else ''}"
        other = "" if partitions is not None else assignment_words(row.assignment)
        shown = partitions or ()
        members.append(
            MemberAt(
                names.member(row.member_id), CLASSIC, f"gen {view.generation_id}", state,
                shown if settled else (), () if settled else shown, other=other,
            )
        )  # fmt: skip
    notes = [f"assignor {view.protocol_name}"] if view.protocol_name else []
    for what, ids in (("pending", view.pending_join), ("not synced", view.pending_sync)):
        if ids:
            notes.append(f"{what} {', '.join(sorted(names.member(each) for each in ids))}")
    epochs = (("generation", view.generation_id),)
    return GroupAt(view.group_id, CLASSIC, view.state.value, epochs, tuple(members), tuple(notes))


def consumer(view: ConsumerGroupView, names: Names) -> GroupAt:
    """Return a consumer group with its members of both protocols."""
    targets = {member: names.of_rows(rows) for member, rows in view.target}
    members = tuple(_consumer_member(row, targets.get(row.member_id), names) for row in view.members)
    notes = [f"regex {row.regex} = [{', '.join(row.topics)}]" for row in view.regexes]
    epochs = (("group epoch", view.group_epoch), ("assignment epoch", view.assignment_epoch))
    return GroupAt(view.group_id, CONSUMER, view.state.value, epochs, members, tuple(notes))


def _consumer_member(row: ConsumerMemberView, target: tuple[Partition, ...] | None, names: Names) -> MemberAt:
    return MemberAt(
        names.member(row.member_id),
        CONSUMER if row.classic is None else CLASSIC,
        f"epoch {row.member_epoch} (before {row.previous_member_epoch})",
        row.state.name,
        names.of_rows(row.assigned),
        names.of_rows(row.pending_revocation),
        target,
    )
