"""A log in memory, which lasts as long as the process."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.log import append, compact, due, of_records, replicated
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record

from .base import AppendError
from .shared import unfit


class MemoryStore:
    """Keeps the records that are still needed (``fencepost.log``): one for each key, and up to about as many again
    before a compaction. While ``failing`` is set, every append fails with it."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self._log = of_records(records)
        self.failing: ErrorCode | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """The current records of the log, in log order."""
        return self._log.records

    async def load(self) -> Sequence[Record]:
        """Return the remaining records; they give the same state as all appended ones (F-REPLAY-18)."""
        return self._log.records

    async def append(self, records: Sequence[Record]) -> None:
        """Append the records, unless ``failing`` is set. A load gets the whole log, so compaction has no readers."""
        if self.failing is not None:
            raise AppendError(self.failing)
        wrong = unfit(records)
        if wrong is not None:
            raise AppendError(ErrorCode.UNKNOWN_SERVER_ERROR, wrong)
        longer = append(self._log, records, self._log.leader_epoch)
        longer = replicated(longer, longer.end)
        self._log = compact(longer, 0, readers=()) if due(longer) else longer
