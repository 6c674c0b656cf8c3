"""The memory that unanswered requests of all connections use."""

from __future__ import annotations


class Memory:
    """A count of bytes with a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def add(self, size: int) -> None:
        """Add to the count; a negative size subtracts."""
        self.used += size

    @property
    def exhausted(self) -> bool:
        """Whether the count is above the limit."""
        return self.used > self.limit
