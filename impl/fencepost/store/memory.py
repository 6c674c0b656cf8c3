"""A log in memory: durable for as long as the process."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record

from .base import AppendError


class MemoryStore:
    """``records`` is the log. While ``failing`` is set, every append fails with it."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.records = list(records)
        self.failing: ErrorCode | None = None

    async def load(self) -> Sequence[Record]:
        """All that was appended."""
        return tuple(self.records)

    async def append(self, records: Sequence[Record]) -> None:
        """Keeps the records, unless it is to fail."""
        if self.failing is not None:
            raise AppendError(self.failing)
        self.records.extend(records)
