"""What all connections together hold of requests that are not answered yet."""

from __future__ import annotations


class Memory:
    """A count of bytes with a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def add(self, size: int) -> None:
        """So many more are held; fewer if negative."""
        self.used += size

    @property
    def exhausted(self) -> bool:
        """Whether more is held than may be."""
        return self.used > self.limit
