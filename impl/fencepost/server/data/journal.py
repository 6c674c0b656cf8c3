"""What the server keeps beside the groups: topics, batches, transactions, settings of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class PutBatch:
    """A batch at its place."""

    topic_id: bytes
    partition: int
    base: int
    data: bytes


@dataclass(frozen=True, slots=True)
class DropBatches:
    """Batches of a topic whose last offset is below that one; all of the topic without a partition."""

    topic_id: bytes
    partition: int | None = None
    below: int = 0


@dataclass(frozen=True, slots=True)
class Put:
    """A value of JSON text under a name of its kind; None: it goes."""

    kind: str
    name: str
    value: str | None


Change: TypeAlias = PutBatch | DropBatches | Put


class JournalError(Exception):
    """What was to be kept cannot be: nothing of it is there."""


class Journal(Protocol):
    """Keeps changes in order. ``durable`` is false where they last as long as the process."""

    durable: bool

    async def write(self, changes: Sequence[Change]) -> None:
        """Returns when they are durable, all of them. Raises ``JournalError`` if none of them is there."""

    async def close(self) -> None:
        """No more is written."""


class NoJournal:
    """Everything lasts as long as the process."""

    durable = False

    async def write(self, changes: Sequence[Change]) -> None:
        """There is nothing to do."""

    async def close(self) -> None:
        """There is nothing to do."""
