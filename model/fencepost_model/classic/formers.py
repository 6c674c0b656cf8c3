"""Classic group objects that were replaced under their id, but that open operations still act on (X-UP-16).

When a group is converted to the other kind, a new object replaces the old one. An operation that waits for the log with
a callback of the old object (a leader's SyncGroup, a static replacement) still changes the old object. It arms timers
by the group's *name*, as if the old object were still there. Reads at the committed offset see the old object until the
conversion is replicated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .draft import Draft, Sinks
from .slots import Shadow
from .state import Assigned, Group, Operation, Replaced


class Former(NamedTuple):
    """A classic group after the write ``operation`` has replaced it."""

    operation: int
    group_id: str
    group: Group


class Formers:
    """The converted objects of a coordinator in one step. Read ``kept`` when the step is done."""

    __slots__ = ("_drafts", "kept")

    def __init__(self, kept: tuple[Former, ...]) -> None:
        self.kept = kept
        self._drafts: dict[int, Draft] = {}

    def draft(self, sinks: Sinks, operation: int) -> Draft | None:
        """Return the object that this write replaced, open for changes. Its join timer is never that of an initial
        delay."""
        if operation not in self._drafts:
            for former in self.kept:
                if former.operation == operation:
                    self._drafts[operation] = Draft(sinks, former.group_id, former.group, None)
        return self._drafts.get(operation)

    def drafts(self) -> Iterable[Draft]:
        """Return the drafts that this step has opened."""
        return self._drafts.values()

    def leaves(self, group_id: str, group: Group, by: int, operations: list[Operation]) -> None:
        """Replace the group by another object in the write ``by``. Operations that wait with a callback stay with the
        old one."""
        bound = [
            at
            for at, each in enumerate(operations)
            if each.group_id == group_id and each.former is None and isinstance(each.callback, Assigned | Replaced)
        ]
        if bound:
            self.kept = (*self.kept, Former(by, group_id, group))
            for at in bound:
                operations[at] = operations[at]._replace(former=by)

    def comes_back(self, by: int, operations: list[Operation]) -> None:
        """Put the object back under its id, because the write was not appended (F-RT-08)."""
        self.kept = tuple([former for former in self.kept if former.operation != by])
        operations[:] = [each._replace(former=None) if each.former == by else each for each in operations]

    def finish(self, shadows: tuple[Shadow, ...], operations: list[Operation]) -> tuple[Shadow, ...]:
        """Close the open drafts, and forget the objects that no operation waits for. Returns the shadows with the
        objects as they are now."""
        if not self.kept:
            return shadows
        now = {each: draft.close() for each, draft in self._drafts.items()}
        waited = {each.former for each in operations}
        self.kept = tuple(
            [
                former._replace(group=now.get(former.operation, former.group))
                for former in self.kept
                if former.operation in waited
            ]
        )
        if not now:
            return shadows
        return tuple([s._replace(old=now[s.by]) if s.by in now and isinstance(s.old, Group) else s for s in shadows])
