"""The groups while a step changes them, and what is needed to undo each change.

A change by a record of the step is undone if the record is not appended; a change in memory alone is not (F-RT-08).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from .persistent import frozen, owned
from .state import CoordinatorState, Group, GroupChange


class Memory:
    """``groups``: by their names. ``changes``: of earlier steps, not yet replicated, in log order. ``incarnations``:
    how many groups there were so far. ``undone``: groups that a failed append removes in this step, by number."""

    __slots__ = ("_before", "_changed", "changes", "groups", "incarnations", "undone")

    def __init__(self, state: CoordinatorState) -> None:
        self._before = state.groups
        self.groups = state.groups
        self.changes = state.changes
        self.incarnations = state.incarnations
        self.undone: dict[int, Group] = {}
        self._changed: list[tuple[str, Group | None, int]] = []  #: with the number of records it counts as later

    def new_incarnation(self) -> int:
        """A number that no group had before (C-ST-24)."""
        self.incarnations += 1
        return self.incarnations

    def exchange(self, group: Group) -> None:
        """Replace a group in memory alone: no record says so, and a failed append does not undo it (F-RT-08)."""
        self._own()[group.group_id] = group

    def change(self, group_id: str, group: Group | None) -> Group | None:
        """A record of this step adds, replaces, changes or removes a group (F-RT-08, C-ADM-08). Returns the previous
        group."""
        groups = self._own()
        old = groups.get(group_id)
        self._changed.append((group_id, old, 0))
        if group is None:
            groups.pop(group_id, None)
        else:
            groups[group_id] = group
        return old

    def forget(self, group_id: str) -> None:
        """Remove a group without a record; the change counts as part of the next record (C-JOIN-15)."""
        groups = self._own()
        self._changed.append((group_id, groups.pop(group_id), 1))

    def appear(self, group: Group) -> None:
        """Add a group without a record; the change counts as part of the next record, of this or a later step
        (O-COMMIT-39)."""
        self._own()[group.group_id] = group
        self._changed.append((group.group_id, None, 1))

    def replace(self, groups: Mapping[str, Group], changes: tuple[GroupChange, ...]) -> None:
        """Replace the whole map with one that is not shared (load, unload, revert)."""
        self.groups = groups
        self.changes = changes

    def restart(self, groups: Mapping[str, Group]) -> None:
        """Start from these groups; nothing can be undone."""
        self.replace(groups, ())
        self._changed.clear()

    def after(self) -> Mapping[str, Group]:
        """The groups after the step."""
        return frozen(self.groups)

    def all_changes(self, base: int, end: int) -> tuple[GroupChange, ...]:
        """The changes that are not replicated after the step, which has written from ``base`` to below ``end``."""
        if not self._changed:
            return self.changes
        behind = int(base == end)  # the step wrote no record that the change could be part of
        return self.changes + tuple(
            GroupChange(base, end + more * behind, name, old) for name, old, more in self._changed
        )

    def _own(self) -> MutableMapping[str, Group]:
        groups = self.groups = owned(self.groups, self._before)
        return groups
