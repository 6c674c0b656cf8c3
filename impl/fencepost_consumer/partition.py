"""One assigned partition: its fetch state, position, and other data of the consumer about it (8.7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from fencepost_consumer.settings import ResetPolicy


class FetchState(Enum):
    """Whether a partition has a valid position, and what it needs to get one (K-SUB-10…13)."""

    INITIALIZING = "INITIALIZING"
    FETCHING = "FETCHING"
    AWAIT_RESET = "AWAIT_RESET"
    AWAIT_VALIDATION = "AWAIT_VALIDATION"


_F = FetchState
#: The states that may follow each state (K-SUB-10…13).
ALLOWED: Final[dict[FetchState, frozenset[FetchState]]] = {
    _F.INITIALIZING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.FETCHING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.AWAIT_RESET: frozenset({_F.FETCHING, _F.AWAIT_RESET}),
    _F.AWAIT_VALIDATION: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
}


@dataclass(frozen=True, slots=True)
class Leader:
    """A partition's leader and its epoch according to the metadata."""

    node: int | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """The next record to read. ``epoch``: epoch of the record before it; ``leader``: the leader known when the position
    was set."""

    offset: int
    epoch: int | None = None
    leader: Leader = Leader()


@dataclass(frozen=True, slots=True)
class Partition:
    """State of an assigned partition.

    ``reset``: the policy of the reset in progress. ``retry_at``: earliest time of the next request to the leader.
    ``preferred``: the replica that the leader prefers for fetches, until ``preferred_until``. ``end_asked``: the log's
    end is being looked up for the lag. Offsets of the log are None until the leader has sent them."""

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
        """Return whether the leader must not be asked yet."""
        return self.retry_at is not None and now < self.retry_at

    def seek_validated(self, position: Position) -> Partition:
        """Read from ``position`` without validation; pending work ends (K-POS-05)."""
        return self._go(FetchState.FETCHING, position=position, reset=None, retry_at=None)

    def seek(self, position: Position) -> Partition:
        """Read from ``position``, after the leader has confirmed its epoch if one is known (K-POS-01)."""
        return self.seek_validated(position).validate(position)

    def validate(self, position: Position) -> Partition:
        """Set the position. It needs validation if it has an epoch and the leader's epoch is known; else it is valid
        (K-POS-07)."""
        unsure = position.epoch is not None and position.leader.epoch is not None
        state = FetchState.AWAIT_VALIDATION if unsure else FetchState.FETCHING
        return self._go(state, position=position, retry_at=None)

    def led_by(self, leader: Leader) -> Partition:
        """Validate the position again if the metadata has another leader or leader epoch (K-POS-07)."""
        if self.state is FetchState.AWAIT_RESET or leader.node is None or self.position is None:
            return self
        if self.position.leader == leader:
            return self
        return replace(self.validate(replace(self.position, leader=leader)), preferred=None)

    def validated(self) -> Partition:
        """Mark the position as validated by the leader."""
        return self if self.position is None else self._go(FetchState.FETCHING, retry_at=None)

    def await_reset(self, policy: ResetPolicy) -> Partition:
        """Drop the position, and look for one by this policy."""
        return self._go(FetchState.AWAIT_RESET, reset=policy, retry_at=None)

    def asked_end(self, asked: bool) -> Partition:
        """Set whether the log's end is being looked up."""
        return replace(self, end_asked=asked)

    def with_end(self, end: int, *, stable: bool) -> Partition:
        """Set the log's end: the last stable offset, or the high watermark."""
        return replace(self, last_stable_offset=end) if stable else replace(self, high_watermark=end)

    def _go(self, state: FetchState, **changes: object) -> Partition:
        """Change the state. A transition that is not in the table is ignored, without an error (K-SUB-10…13)."""
        if state not in ALLOWED[self.state]:
            return self
        moved = replace(self, state=state, **changes)  # type: ignore[arg-type]
        return moved if state in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION) else replace(moved, position=None)
