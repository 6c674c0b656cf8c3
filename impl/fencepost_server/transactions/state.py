"""The state of a transactional id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final, TypedDict

#: The last epoch of a producer; a new producer id follows.
LAST_EPOCH: Final = 32_766
NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1


class State(StrEnum):
    """The states of a transaction, by Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"

    @property
    def ending(self) -> bool:
        """The transaction is decided, but not every partition has its marker."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def complete(self) -> bool:
        """The transaction is decided, and every partition has its marker."""
        return self in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


class _Stored(TypedDict):
    """A transaction as the store has it, in JSON."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: str
    previous_id: int
    last_epoch: int
    next_id: int
    partitions: Sequence[tuple[str, int]]
    offsets: Sequence[int]
    started_ms: int
    version: int


@dataclass(slots=True, eq=False)
class Transaction:
    """The transaction of a transactional id, with the fields of Kafka's ``TransactionMetadata``.

    - ``producer_id``, ``producer_epoch``: in a transaction that is ending, those of its markers.
    - ``previous_id``: the producer id before the last change, of whatever field.
    - ``last_epoch``: the epoch before the last bump, for a client that repeats a request.
    - ``next_id``: the producer id after the end of the transaction, if its epochs are used up.
    - ``offsets``: partitions of the offsets topic.
    - ``version``: that of transactions (KIP-890), by the request that added partitions or ended the transaction.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    previous_id: int = NO_PRODUCER
    last_epoch: int = NO_EPOCH
    next_id: int = NO_PRODUCER
    partitions: set[tuple[str, int]] = field(default_factory=set)
    offsets: set[int] = field(default_factory=set)
    started_ms: int = -1
    version: int = 1

    @property
    def after(self) -> tuple[int, int]:
        """The producer id and epoch after the end of the transaction."""
        return (self.producer_id, self.producer_epoch) if self.next_id == NO_PRODUCER else (self.next_id, 0)

    def become(self, other: Transaction) -> None:
        """Copy all fields of another transaction."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))

    def as_text(self) -> str:
        """Return the transaction as JSON, for the store."""
        stored: _Stored = {
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "timeout_ms": self.timeout_ms,
            "state": self.state.value,
            "previous_id": self.previous_id,
            "last_epoch": self.last_epoch,
            "next_id": self.next_id,
            "partitions": sorted(self.partitions),
            "offsets": sorted(self.offsets),
            "started_ms": self.started_ms,
            "version": self.version,
        }
        return json.dumps(stored)

    @classmethod
    def of_text(cls, transactional_id: str, text: str) -> Transaction:
        """Return the transaction of a stored text. Raises ``ValueError``, ``KeyError`` or ``TypeError`` for an invalid
        one."""
        row: _Stored = json.loads(text)
        return cls(
            transactional_id,
            int(row["producer_id"]),
            int(row["producer_epoch"]),
            int(row["timeout_ms"]),
            State(row["state"]),
            int(row["previous_id"]),
            int(row["last_epoch"]),
            int(row["next_id"]),
            {(str(name), int(index)) for name, index in row["partitions"]},
            {int(index) for index in row["offsets"]},
            int(row["started_ms"]),
            int(row["version"]),
        )
