"""Classic group objects that were replaced under their id, but that open operations still act on (X-UP-16).

When a group is converted to the other kind, a new object replaces the old one. An operation that waits for the log with
a callback of the old object (a leader's SyncGroup, a static replacement) still changes the old object. It arms timers
by the group's *name*, as if the old object were still there. Reads at the committed offset see the old object until the
conversion is replicated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .draft import Draft, DraftContext
from .slots import CommittedView
from .state import Assigned, Group, Operation, Replaced


class SupersededGroup(NamedTuple):
    """A classic group after the write ``operation`` has replaced it."""

    operation: int
    group_id: str
    group: Group


class SupersededGroups:
    """The converted objects of a coordinator in one step. Read ``kept`` when the step is done."""

    __slots__ = ("_drafts", "kept")

    def __init__(self, kept: tuple[SupersededGroup, ...]) -> None:
        self.kept = kept
        self._drafts: dict[int, Draft] = {}

    def draft(self, context: DraftContext, operation: int) -> Draft | None:
        """Return the object that this write replaced, open for changes. Its join timer is never that of an initial
        delay."""
        if operation not in self._drafts:
            for superseded in self.kept:
                if superseded.operation == operation:
                    self._drafts[operation] = Draft(context, superseded.group_id, superseded.group, None)
        return self._drafts.get(operation)

    def drafts(self) -> Iterable[Draft]:
        """Return the drafts that this step has opened."""
        return self._drafts.values()

    def supersede(self, group_id: str, group: Group, by: int, operations: list[Operation]) -> None:
        """Replace the group by another object in the write ``by``. Operations that wait with a callback stay with the
        old one."""
        bound = [
            at
            for at, each in enumerate(operations)
            if each.group_id == group_id
            and each.superseded_by is None
            and isinstance(each.callback, Assigned | Replaced)
        ]
        if bound:
            self.kept = (*self.kept, SupersededGroup(by, group_id, group))
            for at in bound:
                operations[at] = operations[at]._replace(superseded_by=by)

    def restore(self, by: int, operations: list[Operation]) -> None:
        """Put the object back under its id, because the write was not appended (F-RT-08)."""
        self.kept = tuple([superseded for superseded in self.kept if superseded.operation != by])
        operations[:] = [each._replace(superseded_by=None) if each.superseded_by == by else each for each in operations]

    def finish(
        self, committed_views: tuple[CommittedView, ...], operations: list[Operation]
    ) -> tuple[CommittedView, ...]:
        """Close the open drafts, and forget the objects that no operation waits for. Returns the views with the
        objects as they are now."""
        if not self.kept:
            return committed_views
        now = {each: draft.close() for each, draft in self._drafts.items()}
        waited = {each.superseded_by for each in operations}
        self.kept = tuple(
            [
                superseded._replace(group=now.get(superseded.operation, superseded.group))
                for superseded in self.kept
                if superseded.operation in waited
            ]
        )
        if not now:
            return committed_views
        return tuple(
            [s._replace(old=now[s.by]) if s.by in now and isinstance(s.old, Group) else s for s in committed_views]
        )
