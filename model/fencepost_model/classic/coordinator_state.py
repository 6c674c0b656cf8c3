"""The state of one partition's coordinator, and one step from it."""

from __future__ import annotations

from typing import Final, NamedTuple

from fencepost.protocol.events import (
    Outcome,
)

from ..consumer.observe import Hashes
from ..consumer.state import ConsumerGroup
from ..consumer.work import ConsumerState
from ..offsets.state import Offsets, Past
from .slots import CommittedView, GroupSlot, Removed, Written
from .state import Group, Operation
from .superseded import SupersededGroup

NOT_OWNED: Final = "not owned"
LOADING: Final = "loading"
ACTIVE: Final = "active"


class CoordinatorState(NamedTuple):
    """One partition's coordinator.

    - ``phase``: as in F-RT-01 (FAILED and INITIAL are both "not owned").
    - ``durable``: the high watermark, an absolute offset; ``undurable``: the number of records behind it.
    - ``committed_views``: groups as reads at the committed offset see them, where that differs from memory.
    - ``handled``: the number of events so far; it names a timer's write.
    - ``relisted``: where in the log the removal of a group object was written or attempted; see ``reads``.
    - ``dropped``: groups that were removed from memory (C-JOIN-15) or added to it (O-COMMIT-39) without a
      record since the last one, as they were before.
    - ``doubled``: where in the log (as records behind) a member of a group was exchanged, or was to be; see ``reads``.
    - ``hashes``: the metadata hashes known so far, shown by a target (M-META-07).
    - ``superseded_groups``: converted classic groups for which an operation still has a callback (X-UP-16).
    - ``offsets``: those of all groups; ``past``: as readers see them, oldest first.
    - ``topics``: what classic groups have read from their members' subscriptions (G-DATA-10).
    """

    phase: str = NOT_OWNED
    leader_epoch: int | None = None
    slots: tuple[GroupSlot, ...] = ()
    operations: tuple[Operation, ...] = ()
    undurable: int = 0
    durable: int = 0
    committed_views: tuple[CommittedView, ...] = ()
    written: Written | None = None
    handled: int = 0
    relisted: frozenset[Removed] = frozenset()
    dropped: tuple[tuple[str, ConsumerGroup | None], ...] = ()
    doubled: frozenset[tuple[int, str, str]] = frozenset()
    consumer: ConsumerState = ConsumerState()
    hashes: Hashes = ()
    superseded_groups: tuple[SupersededGroup, ...] = ()
    offsets: Offsets = Offsets()
    past: tuple[Past, ...] = ()
    topics: tuple[tuple[str, frozenset[str] | None], ...] = ()

    def replicated(self) -> Offsets:
        """Return the offsets as reads at the committed offset see them (F-RT-11)."""
        return self.past[0].offsets if self.past else self.offsets

    def any_group(self, group_id: str) -> Group | ConsumerGroup | None:
        for slot in self.slots:
            if slot.group_id == group_id:
                return slot.group
        return None

    def group(self, group_id: str) -> Group | None:
        """Return the classic group with that id, or None."""
        group = self.any_group(group_id)
        return group if isinstance(group, Group) else None

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        group = self.any_group(group_id)
        return group if isinstance(group, ConsumerGroup) else None


class Step(NamedTuple):
    """One result of an event: choices, next state, outcome, and the rules that decided.

    ``cancels_all``: besides the commands in the outcome, every timer of the coordinator is cancelled. ``failed``: the
    operation ended in an internal error.
    """

    choice: str
    state: CoordinatorState
    outcome: Outcome
    rules: tuple[str, ...]
    cancels_all: bool = False
    failed: bool = False
