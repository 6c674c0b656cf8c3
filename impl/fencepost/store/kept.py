"""Data that a host stores besides the logs of its groups: unchanged batches of data topics, and values by name.

A store takes them as changes, in order. It returns all values when it is opened, and batches on request. Only the host
knows what the values mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class PutBatch:
    """Store a record batch of a data topic; ``base``: its first offset. It replaces a batch with the same base."""

    topic_id: bytes
    partition: int
    base: int
    data: bytes


@dataclass(frozen=True, slots=True)
class DropBatches:
    """Delete batches of a topic whose first offset is below ``below``; ``partition`` None: the whole topic."""

    topic_id: bytes
    partition: int | None = None
    below: int = 0


@dataclass(frozen=True, slots=True)
class Put:
    """Store a text under a kind and a name; ``value`` None deletes it."""

    kind: str
    name: str
    value: str | None


Change: TypeAlias = PutBatch | DropBatches | Put


@dataclass(frozen=True, slots=True)
class Kept:
    """All stored data except batches: ``values`` by kind and name."""

    values: dict[str, dict[str, str]] = field(default_factory=dict)
