"""The producers and transactions of a partition, derived from the batches of its log."""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost_server.data.batches import Batch
from fencepost_server.data.producers import Producers


@dataclass(frozen=True, slots=True)
class Aborted:
    """A transaction that was aborted in this partition: its first offset, and the offset of its marker."""

    producer_id: int
    first: int
    last: int


@dataclass(slots=True)
class Known:
    """The producers and transactions of a log. ``open``: the first offset of each open transaction, by producer id.
    ``aborted``: the aborted transactions, in the order of their markers."""

    producers: Producers = field(default_factory=Producers)
    open: dict[int, int] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)

    def wrote(self, put: Batch, *, committed: bool | None, restored: bool = False) -> None:
        """Note a batch that is in the log. ``committed``: whether a marker commits its transaction. ``restored``: the
        batch was read at a start."""
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
        """Drop aborted transactions below an offset, since no client can read there."""
        self.aborted = [each for each in self.aborted if each.last >= offset]

    def copy(self) -> Known:
        """Return an independent copy."""
        return Known(self.producers.copy(), dict(self.open), list(self.aborted))
