"""What a coordinator needs of its log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record


class AppendError(Exception):
    """Nothing of the append is in the log. ``error`` tells the client why, mapped by C-SYNC-30 and F-RT-10."""

    def __init__(self, error: ErrorCode, reason: str = "") -> None:
        super().__init__(reason or error.name)
        self.error = error


class Store(Protocol):
    """The log of one coordinator; one user at a time."""

    async def load(self) -> Sequence[Record]:
        """Every record, in log order. Raises if the log cannot be trusted, rather than guess."""

    async def append(self, records: Sequence[Record]) -> None:
        """Add the records behind the others, all or none; return when they are durable.

        Raises ``AppendError`` if none of them was added. Any other exception leaves open what is in the log.
        """
