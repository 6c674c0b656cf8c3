"""What a host keeps beside the logs of its groups: batches of data topics as they came, and values by name.

A store takes these as changes, in order. It gives all values back when it is opened, and batches as they are asked for.
What the values say is the host's own matter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class PutBatch:
    """A record batch of a data topic at its place; ``base``: its first offset. One that stood there is replaced."""

    topic_id: bytes
    partition: int
    base: int
    data: bytes


@dataclass(frozen=True, slots=True)
class DropBatches:
    """Batches of a topic go whose first offset is below that one; all of the topic without a partition."""

    topic_id: bytes
    partition: int | None = None
    below: int = 0


@dataclass(frozen=True, slots=True)
class Put:
    """A text under a name of its kind; None: it goes."""

    kind: str
    name: str
    value: str | None


Change: TypeAlias = PutBatch | DropBatches | Put


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept, but for batches: ``values`` by kind and name."""

    values: dict[str, dict[str, str]] = field(default_factory=dict)
