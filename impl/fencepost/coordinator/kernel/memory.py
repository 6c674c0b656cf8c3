"""The groups while a step changes them, and what each change is to be undone by.

What a record of the step changes is undone if that is not appended; what is exchanged in memory alone is not (F-RT-08).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from .persistent import frozen, owned
from .state import CoordinatorState, Group, GroupChange


class Memory:
    """``groups``: by their names. ``changes``: of earlier steps, not yet replicated, in log order. ``incarnations``:
    how many groups there were so far. ``undone``: by their numbers, groups that a failed append takes away in this
    step."""

    __slots__ = ("_before", "_changed", "changes", "groups", "incarnations", "undone")

    def __init__(self, state: CoordinatorState) -> None:
        self._before = state.groups
        self.groups = state.groups
        self.changes = state.changes
        self.incarnations = state.incarnations
        self.undone: dict[int, Group] = {}
        self._changed: list[tuple[str, Group | None, int]] = []  #: and how far behind the records it counts

    def new_incarnation(self) -> int:
        """A number that no group had before (C-ST-24)."""
        self.incarnations += 1
        return self.incarnations

    def exchange(self, group: Group) -> None:
        """Exchange a group in memory alone: no record says so, and no failed append takes it back (F-RT-08)."""
        self._own()[group.group_id] = group

    def change(self, group_id: str, group: Group | None) -> Group | None:
        """A group comes, is exchanged, changes or goes, by a record of this step (F-RT-08, C-ADM-08). Returns what was
        there."""
        groups = self._own()
        old = groups.get(group_id)
        self._changed.append((group_id, old, 0))
        if group is None:
            groups.pop(group_id, None)
        else:
            groups[group_id] = group
        return old

    def forget(self, group_id: str) -> None:
        """A group goes and no record says so; the change counts as the next record's (C-JOIN-15)."""
        groups = self._own()
        self._changed.append((group_id, groups.pop(group_id), 1))

    def appear(self, group: Group) -> None:
        """A group is there and no record says so; the change counts as the next record's, of this step or of a later
        one (O-COMMIT-39)."""
        self._own()[group.group_id] = group
        self._changed.append((group.group_id, None, 1))

    def replace(self, groups: Mapping[str, Group], changes: tuple[GroupChange, ...]) -> None:
        """Exchange the whole map, for one that nobody else has (load, unload, revert)."""
        self.groups = groups
        self.changes = changes

    def restart(self, groups: Mapping[str, Group]) -> None:
        """The groups are these, and nothing can be undone."""
        self.replace(groups, ())
        self._changed.clear()

    def after(self) -> Mapping[str, Group]:
        """The groups once the step is over."""
        return frozen(self.groups)

    def all_changes(self, base: int, end: int) -> tuple[GroupChange, ...]:
        """Those that are not replicated once the step is over, which has written from ``base`` to below ``end``."""
        if not self._changed:
            return self.changes
        behind = int(base == end)  # nothing was written for it to count as
        return self.changes + tuple(
            GroupChange(base, end + more * behind, name, old) for name, old, more in self._changed
        )

    def _own(self) -> MutableMapping[str, Group]:
        groups = self.groups = owned(self.groups, self._before)
        return groups
