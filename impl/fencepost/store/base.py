"""Interface of the log of one coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record


class AppendError(Exception):
    """No record of the append is in the log. ``error``: the reason for clients, mapped by C-SYNC-30 and F-RT-10."""

    def __init__(self, error: ErrorCode, reason: str = "") -> None:
        super().__init__(reason or error.name)
        self.error = error


class Store(Protocol):
    """The log of one coordinator; it has one user at a time."""

    async def load(self) -> Sequence[Record]:
        """Return every record, in log order. Raises if the log may be wrong."""

    async def append(self, records: Sequence[Record]) -> None:
        """Append all records or none; return when they are durable.

        Raises ``AppendError`` if none was added. After any other exception, the content of the log is unknown.
        """
