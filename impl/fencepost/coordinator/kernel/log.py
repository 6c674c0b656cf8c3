"""The log while a step appends to it: where it stands, and what of it is replicated."""

from __future__ import annotations

from fencepost.protocol.records import Record

from .state import CoordinatorState


class Log:
    """``records``: those of this step, in order. ``start``: the offset of the first of them. ``committed``: the high
    watermark, below which all is replicated. ``ends``: of outcomes whose records are not."""

    __slots__ = ("committed", "ends", "records", "start")

    def __init__(self, state: CoordinatorState) -> None:
        self.start = state.end
        self.committed = state.committed
        self.ends = state.ends
        self.records: list[Record] = []

    @property
    def end(self) -> int:
        """The offset after the records of this step."""
        return self.start + len(self.records)

    @property
    def all_replicated(self) -> bool:
        """Whether there is nothing to wait for, of this step or of others before it."""
        return not self.records and self.committed >= self.start

    def restart(self, end: int) -> None:
        """It is another log, replicated up to its end."""
        self.ends = ()
        self.start = self.committed = end
