"""The producers and transactions of a partition, derived from the batches of its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from typing import TypedDict

from fencepost_server.data.batches import Batch
from fencepost_server.data.producers import ProducerRow, Producers


@dataclass(frozen=True, slots=True)
class Aborted:
    """A transaction that was aborted in this partition: its first offset, and the offset of its marker."""

    producer_id: int
    first: int
    last: int


class KnownRow(TypedDict):
    """The producers and transactions of a log as JSON has them."""

    producers: Sequence[ProducerRow]
    open: Sequence[tuple[int, int]]
    aborted: Sequence[tuple[int, int, int]]


@dataclass(slots=True)
class Known:
    """The producers and transactions of a log. ``open``: the first offset of each open transaction, by producer id.
    ``aborted``: the aborted transactions, in the order of their markers."""

    producers: Producers = field(default_factory=Producers)
    open: dict[int, int] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)

    def wrote(self, put: Batch, *, committed: bool | None) -> None:
        """Note a batch that is in the log. ``committed``: whether a marker commits its transaction."""
        self.producers.wrote(put)
        if not put.transactional:
            return
        if not put.control:
            self.open.setdefault(put.producer_id, put.base)
            return
        first = self.open.pop(put.producer_id, None)
        if first is not None and not committed:
            self.aborted.append(Aborted(put.producer_id, first, put.last))

    def ongoing(self, producer_id: int, epoch: int) -> bool:
        """Return whether a producer has an open transaction in that epoch."""
        return producer_id in self.open and self.producers.epoch(producer_id) == epoch

    def forget(self, offset: int) -> None:
        """Drop aborted transactions below an offset, since no client can read there."""
        self.aborted = [each for each in self.aborted if each.last >= offset]

    def copy(self) -> Known:
        """Return an independent copy."""
        return Known(self.producers.copy(), dict(self.open), list(self.aborted))

    def as_row(self) -> KnownRow:
        """Return the values for JSON."""
        return {
            "producers": self.producers.as_rows(),
            "open": list(self.open.items()),
            "aborted": [astuple(each) for each in self.aborted],
        }

    @classmethod
    def of_row(cls, row: KnownRow) -> Known:
        """Return the producers and transactions of stored values."""
        return cls(
            Producers.of_rows(row["producers"]),
            {int(producer): int(first) for producer, first in row["open"]},
            [Aborted(*each) for each in row["aborted"]],
        )
