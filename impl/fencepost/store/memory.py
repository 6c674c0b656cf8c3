"""A log in memory: durable for as long as the process."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.log import append, compact, due, of_records, replicated
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record

from .base import AppendError
from .shared import unfit


class MemoryStore:
    """Keeps what is needed of the records (``fencepost.log``): as many as there are keys, and about as many again that
    are to be compacted. While ``failing`` is set, every append fails with it."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self._log = of_records(records)
        self.failing: ErrorCode | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """What the log holds now, in log order."""
        return self._log.records

    async def load(self) -> Sequence[Record]:
        """All that is left of what was appended; the same state as all of it (F-REPLAY-18)."""
        return self._log.records

    async def append(self, records: Sequence[Record]) -> None:
        """Keeps the records, unless it is to fail. Who loads is handed the log at once, so no reader is under way."""
        if self.failing is not None:
            raise AppendError(self.failing)
        wrong = unfit(records)
        if wrong is not None:
            raise AppendError(ErrorCode.UNKNOWN_SERVER_ERROR, wrong)
        longer = append(self._log, records, self._log.leader_epoch)
        longer = replicated(longer, longer.end)
        self._log = compact(longer, 0, readers=()) if due(longer) else longer
