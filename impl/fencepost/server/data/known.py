"""What a log says of its producers and their transactions, as far as it has been read."""

from __future__ import annotations

from dataclasses import dataclass, field

from .batches import Batch
from .producers import Producers


@dataclass(frozen=True, slots=True)
class Aborted:
    """A transaction that was aborted here: its first offset, and that of its marker."""

    producer_id: int
    first: int
    last: int


@dataclass(slots=True)
class Known:
    """``open``: the first offset of each transaction that is not decided, by producer id; ``aborted``: those that were,
    in the order of their markers."""

    producers: Producers = field(default_factory=Producers)
    open: dict[int, int] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)

    def wrote(self, put: Batch, *, committed: bool | None, restored: bool = False) -> None:
        """The batch is in the log, at its place. ``committed`` of a marker. ``restored``: as a restart has found it."""
        self.producers.wrote(put, restored=restored)
        if not put.transactional:
            return
        if not put.control:
            self.open.setdefault(put.producer_id, put.base)
            return
        first = self.open.pop(put.producer_id, None)
        if first is not None and not committed:
            self.aborted.append(Aborted(put.producer_id, first, put.last))

    def forget(self, offset: int) -> None:
        """Nobody reads below that offset."""
        self.aborted = [each for each in self.aborted if each.last >= offset]

    def copy(self) -> Known:
        """One of its own."""
        return Known(self.producers.copy(), dict(self.open), list(self.aborted))
