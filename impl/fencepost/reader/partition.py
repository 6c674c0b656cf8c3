"""One assigned partition: its fetch state, position, and what else a consumer remembers of it (8.7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from .settings import ResetPolicy


class FetchState(Enum):
    """Whether there is a position, and what has to be done for one (K-SUB-10…13)."""

    INITIALIZING = "INITIALIZING"
    FETCHING = "FETCHING"
    AWAIT_RESET = "AWAIT_RESET"
    AWAIT_VALIDATION = "AWAIT_VALIDATION"


_F = FetchState
#: Which state may follow which (K-SUB-10…13).
ALLOWED: Final[dict[FetchState, frozenset[FetchState]]] = {
    _F.INITIALIZING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.FETCHING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.AWAIT_RESET: frozenset({_F.FETCHING, _F.AWAIT_RESET}),
    _F.AWAIT_VALIDATION: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
}


@dataclass(frozen=True, slots=True)
class Leader:
    """A partition's leader and its epoch, as far as metadata tells."""

    node: int | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """The next record to read; ``epoch``: that of the record before it; ``leader``: as it was known when the position
    was set."""

    offset: int
    epoch: int | None = None
    leader: Leader = Leader()


@dataclass(frozen=True, slots=True)
class Partition:
    """An assigned partition.

    ``reset``: by which policy a position is looked up. ``retry_at``: when the leader may be asked again.
    ``preferred``: the replica that the leader would have asked, and ``preferred_until`` when. ``end_asked``: its end is
    being looked up, for its lag. Offsets of the log are None until the leader told them."""

    state: FetchState = FetchState.INITIALIZING
    position: Position | None = None
    paused: bool = False
    reset: ResetPolicy | None = None
    retry_at: int | None = None
    preferred: int | None = None
    preferred_until: int = 0
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    end_asked: bool = False

    @property
    def valid(self) -> Position | None:
        """The position, if records may be read from it (K-SUB-04)."""
        return self.position if self.state is FetchState.FETCHING else None

    def backs_off(self, now: int) -> bool:
        """Whether it is too early to ask the leader again."""
        return self.retry_at is not None and now < self.retry_at

    def seek_validated(self, position: Position) -> Partition:
        """Read on from here, whatever was awaited (K-POS-05)."""
        return self._go(FetchState.FETCHING, position=position, reset=None, retry_at=None)

    def seek(self, position: Position) -> Partition:
        """The same, once the leader has confirmed the epoch, if one is known (K-POS-01)."""
        return self.seek_validated(position).validate(position)

    def validate(self, position: Position) -> Partition:
        """A position with an epoch has to be checked where the leader's epoch is known; any other is good
        (K-POS-07)."""
        unsure = position.epoch is not None and position.leader.epoch is not None
        state = FetchState.AWAIT_VALIDATION if unsure else FetchState.FETCHING
        return self._go(state, position=position, retry_at=None)

    def led_by(self, leader: Leader) -> Partition:
        """Metadata has another leader, or another epoch of it: look again (K-POS-07)."""
        if self.state is FetchState.AWAIT_RESET or leader.node is None or self.position is None:
            return self
        if self.position.leader == leader:
            return self
        return replace(self.validate(replace(self.position, leader=leader)), preferred=None)

    def validated(self) -> Partition:
        """The leader has what the position rests on."""
        return self if self.position is None else self._go(FetchState.FETCHING, retry_at=None)

    def await_reset(self, policy: ResetPolicy) -> Partition:
        """Forget the position, and look for one by this policy."""
        return self._go(FetchState.AWAIT_RESET, reset=policy, retry_at=None)

    def asked_end(self, asked: bool) -> Partition:
        """Whether the log's end is being looked up now."""
        return replace(self, end_asked=asked)

    def with_end(self, end: int, *, stable: bool) -> Partition:
        """The log's end is known: of what is stable, or of everything."""
        return replace(self, last_stable_offset=end) if stable else replace(self, high_watermark=end)

    def _go(self, state: FetchState, **changes: object) -> Partition:
        """What the table does not have does not happen, and is no error (K-SUB-10…13)."""
        if state not in ALLOWED[self.state]:
            return self
        moved = replace(self, state=state, **changes)  # type: ignore[arg-type]
        return moved if state in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION) else replace(moved, position=None)
