"""Classic group objects that are no longer under their id, but that open operations still act on (X-UP-16).

When a group becomes one of the other kind, a new object takes the place of the old one. What waits for the log with a
callback of the old one (a leader's SyncGroup, a static replacement) goes on to change the old object, and arms timers
by the group's *name*, as if it were still there. Who reads at the committed offset sees the old object until the
conversion is replicated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .draft import Draft, Sinks
from .slots import Shadow
from .state import Assigned, Group, Operation, Replaced


class Former(NamedTuple):
    """The classic group as it is now that the write ``operation`` has put another in its place."""

    operation: int
    group_id: str
    group: Group


class Formers:
    """The converted objects of a coordinator in one step. ``kept`` is read when the step is done."""

    __slots__ = ("_drafts", "kept")

    def __init__(self, kept: tuple[Former, ...]) -> None:
        self.kept = kept
        self._drafts: dict[int, Draft] = {}

    def draft(self, sinks: Sinks, operation: int) -> Draft | None:
        """The object that this write replaced, open for changes. Its join timer never stands for an initial delay."""
        if operation not in self._drafts:
            for former in self.kept:
                if former.operation == operation:
                    self._drafts[operation] = Draft(sinks, former.group_id, former.group, None)
        return self._drafts.get(operation)

    def drafts(self) -> Iterable[Draft]:
        """Those that this step has opened."""
        return self._drafts.values()

    def leaves(self, group_id: str, group: Group, by: int, operations: list[Operation]) -> None:
        """The write ``by`` puts another object in the place of the group; who waits with a callback stays with it."""
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
        """The write was not appended (F-RT-08): the object is under its id again."""
        self.kept = tuple([former for former in self.kept if former.operation != by])
        operations[:] = [each._replace(former=None) if each.former == by else each for each in operations]

    def finish(self, shadows: tuple[Shadow, ...], operations: list[Operation]) -> tuple[Shadow, ...]:
        """Closes what was open, and forgets what nobody waits for; the shadows with the objects as they are now."""
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
