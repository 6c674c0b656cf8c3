"""The log while a step appends to it: its end, and how much of it is replicated."""

from __future__ import annotations

from fencepost.protocol.logged import PlainCommit
from fencepost.protocol.records import Record

from .state import CoordinatorState


class Log:
    """``records``: those of this step, in order; or its plain ``commit``, which is all that it writes then. ``start``:
    the offset of the first of them. ``committed``: the high watermark, below which everything is replicated. ``ends``:
    end offsets of outcomes that are not replicated."""

    __slots__ = ("commit", "committed", "ends", "records", "start")

    def __init__(self, state: CoordinatorState) -> None:
        self.start = state.end
        self.committed = state.committed
        self.ends = state.ends
        self.records: list[Record] = []
        self.commit: PlainCommit | None = None

    @property
    def end(self) -> int:
        """The offset after the records of this step."""
        return self.start + len(self.records if self.commit is None else self.commit)

    @property
    def all_replicated(self) -> bool:
        """Whether there is nothing to wait for, from this step or earlier ones."""
        return not self.records and self.commit is None and self.committed >= self.start

    def restart(self, end: int) -> None:
        """Continue with another log, which is replicated up to its end."""
        self.ends = ()
        self.start = self.committed = end
