"""Groups and offsets while records are applied to them, in log order (11.5).

Each layer says what its records do, by an ``Applier`` for each of their keys; which layers there are is decided above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from fencepost.protocol.records import Record
from fencepost.quirks import Quirks

from .state import Group
from .stored_offsets import NO_OFFSETS, OffsetDraft, OffsetStore


class Draft(Protocol):
    """A group under change."""

    def freeze(self) -> Group: ...


class Replay:
    """Groups and offsets while records are applied to them; ``appliers``: what does it, by the type of a record's
    key. ``place``: that of the record in the log. ``ownerless``: groups that only offsets tell of (F-REPLAY-04)."""

    def __init__(
        self,
        groups: Mapping[str, Group],
        quirks: Quirks | None,
        incarnations: int,
        appliers: Appliers,
        offsets: OffsetStore = NO_OFFSETS,
    ) -> None:
        self.known = dict(groups)  #: without those that are under change
        self.drafts: dict[str, Draft] = {}  #: of groups that records change bit by bit
        self.offsets = OffsetDraft(offsets)
        self.ownerless: dict[str, None] = {}
        self.place = 0
        self.quirks = quirks
        self.incarnations = incarnations
        self._appliers = appliers

    def apply(self, record: Record) -> None:
        """Applies one record (F-REPLAY-01, F-REPLAY-06). Raises ``InternalError`` where Kafka's load fails
        (F-REPLAY-13)."""
        self._appliers[type(record.key)](self, record)

    def group(self, name: str) -> Group | None:
        """As it was when its draft was begun, if it has one."""
        return self.known.get(name)

    def has(self, name: str) -> bool:
        """Whether there is a group of this name by now."""
        return name in self.known or name in self.drafts

    def put(self, name: str, group: Group | None) -> None:
        """The group is this one from now on; None: there is none. What was under change is forgotten."""
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
        """What the records have come to; ends the replay."""
        self.known.update((name, draft.freeze()) for name, draft in self.drafts.items())
        return self.known


#: Changes the groups of a replay as a record says.
Applier: TypeAlias = Callable[[Replay, Record], None]
Appliers: TypeAlias = Mapping[type, Applier]
