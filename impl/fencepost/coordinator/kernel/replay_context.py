"""Groups and offsets while records are applied to them, in log order (11.5).

Each layer defines what its records do, with an ``Applier`` for each of its keys; the module above decides which layers
there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from fencepost.protocol.records import Record

from .rules import Rules
from .state import Group
from .stored_offsets import NO_OFFSETS, OffsetDraft, OffsetStore


class Draft(Protocol):
    """A group that is being changed."""

    def freeze(self) -> Group: ...


class Replay:
    """Groups and offsets while records are applied to them. ``appliers``: the functions that apply a record, by the
    type of its key. ``place``: the place of the record in the log. ``ownerless``: groups that only have offsets
    (F-REPLAY-04)."""

    def __init__(
        self,
        groups: Mapping[str, Group],
        rules: Rules,
        incarnations: int,
        appliers: Appliers,
        offsets: OffsetStore = NO_OFFSETS,
    ) -> None:
        self.known = dict(groups)  #: without those that are being changed
        self.drafts: dict[str, Draft] = {}  #: of groups that several records change
        self.offsets = OffsetDraft(offsets)
        self.ownerless: dict[str, None] = {}
        self.place = 0
        self.rules = rules
        self.quirks = rules.quirks
        self.incarnations = incarnations
        self._appliers = appliers

    def apply(self, record: Record) -> None:
        """Apply one record (F-REPLAY-01, F-REPLAY-06). Raises ``InternalError`` where Kafka's load fails
        (F-REPLAY-13)."""
        self._appliers[type(record.key)](self, record)

    def group(self, name: str) -> Group | None:
        """The group as it was before its draft, if it has one."""
        return self.known.get(name)

    def has(self, name: str) -> bool:
        """Whether a group of this name exists at this point."""
        return name in self.known or name in self.drafts

    def put(self, name: str, group: Group | None) -> None:
        """Replace the group, or remove it (None). Its draft, if any, is dropped."""
        self.drafts.pop(name, None)
        if group is None:
            self.known.pop(name, None)
        else:
            self.known[name] = group

    def new_incarnation(self) -> int:
        """A number that no group had before."""
        self.incarnations += 1
        return self.incarnations

    def groups(self) -> dict[str, Group]:
        """The groups after the records; ends the replay."""
        self.known.update((name, draft.freeze()) for name, draft in self.drafts.items())
        return self.known


#: Applies one record to the groups of a replay.
Applier: TypeAlias = Callable[[Replay, Record], None]
Appliers: TypeAlias = Mapping[type, Applier]
