"""Kafka's transaction coordinator for requests one after the other: TransactionMetadata and its transitions.

Fencepost differs in two ways. InitProducerId waits until the transaction that it aborts has ended, where Kafka answers
CONCURRENT_TRANSACTIONS and the client asks again. A transaction that the coordinator aborts costs one epoch, where
Kafka with transaction.version 2 uses two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

LAST: Final = 32_766
NONE: Final = -1
LONGEST_MS: Final = 900_000


@dataclass(slots=True)
class Metadata:
    """Fields under Kafka's names. ``retries``: producer id and epoch whose request may be repeated."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: str = "Empty"
    previous_id: int = NONE
    last_epoch: int = NONE
    marker: tuple[int, int] = (NONE, NONE)
    partitions: set[tuple[str, int]] = field(default_factory=set)
    offsets: set[int] = field(default_factory=set)
    started_ms: int = NONE

    @property
    def ending(self) -> bool:
        return self.state.startswith("Prepare")

    @property
    def complete(self) -> bool:
        return self.state.startswith("Complete")

    def retried(self, producer_id: int, epoch: int) -> bool:
        """Whether an EndTxn v5 with that epoch repeats the last one."""
        if self.last_epoch != epoch:
            return False
        if producer_id == self.producer_id:
            return self.epoch == epoch + 1
        return producer_id == self.previous_id and epoch == LAST and self.epoch == 0


class Error(Exception):
    """Kafka's error by name."""


class Coordinator:
    """Kafka's coordinator. ``fresh`` returns the id that the coordinator has given to a producer that needs a new
    one."""

    def __init__(self) -> None:
        self.known: dict[str, Metadata] = {}

    def init(self, name: str, timeout_ms: int, expected: tuple[int, int] | None) -> str:
        """Return the next action: ``abort``, ``new id``, ``rotate``, ``bump`` or ``again``. Raise ``Error``."""
        if not name:
            raise Error("invalid_request")
        if not 0 < timeout_ms <= LONGEST_MS:
            raise Error("invalid_transaction_timeout")
        it = self.known.get(name)
        if it is None:
            return "new id"
        if expected is not None:
            exhausted = expected[0] == it.previous_id and expected[1] >= LAST
            if expected[0] != it.producer_id and not exhausted:
                raise Error("fenced")
        if it.ending:
            raise Error("concurrent_transactions")
        if it.state == "Ongoing":
            return "abort"  # whatever the epoch of the request
        if it.epoch >= LAST and (expected is None or expected[1] == it.epoch):
            return "rotate"
        if expected is None or expected[1] == it.epoch:
            return "bump"
        if expected[1] == it.last_epoch:
            return "again"
        raise Error("fenced")

    def fence(self, name: str, *, keeps: bool = False) -> None:
        """The coordinator aborts the transaction itself; with ``keeps`` its producer may ask for the next epoch."""
        it = self.known[name]
        it.last_epoch = it.epoch if keeps else NONE
        it.epoch += 1
        it.previous_id = it.producer_id
        it.marker = it.producer_id, it.epoch
        it.state = "PrepareAbort"

    def initialized(self, name: str, what: str, timeout_ms: int, expected: tuple[int, int] | None, fresh: int) -> None:
        if what == "new id":
            self.known[name] = Metadata(fresh, 0, timeout_ms)
            return
        it = self.known[name]
        it.previous_id = it.producer_id
        if what != "again":
            it.last_epoch = NONE if expected is None else it.epoch
        if what == "rotate":
            it.producer_id, it.epoch = fresh, 0
        elif what == "bump":
            it.epoch += 1
        it.timeout_ms, it.state = timeout_ms, "Empty"

    def check(self, name: str, producer_id: int, epoch: int) -> Metadata:
        if not name:
            raise Error("invalid_request")
        it = self.known.get(name)
        if it is None or it.producer_id != producer_id:
            raise Error("invalid_producer_id_mapping")
        if it.epoch != epoch:
            raise Error("fenced")
        return it

    def add(self, it: Metadata, partitions: set[tuple[str, int]], offsets: set[int], now_ms: int) -> None:
        if it.ending:
            raise Error("concurrent_transactions")
        if it.state != "Ongoing":
            it.started_ms, it.state = now_ms, "Ongoing"
        elif partitions <= it.partitions and offsets <= it.offsets:
            return
        it.previous_id = it.producer_id
        it.partitions |= partitions
        it.offsets |= offsets

    def end(self, name: str, producer_id: int, epoch: int, *, committed: bool, version: int) -> str:
        """Return the next action: ``answer``, ``prepare``, or ``rotate`` with a new id. Raise ``Error``."""
        if not name:
            raise Error("invalid_request")
        it = self.known.get(name)
        if it is None:
            raise Error("invalid_producer_id_mapping")
        bumping = version >= 2
        again = bumping and it.retried(producer_id, epoch)
        if it.producer_id != producer_id and not again:
            raise Error("invalid_producer_id_mapping")
        valid = again if bumping and it.ending else epoch == it.epoch or (again and it.complete)
        if not valid:
            raise Error("fenced")
        wanted = "Commit" if committed else "Abort"
        if it.ending:
            raise Error("concurrent_transactions" if it.state == f"Prepare{wanted}" else "invalid_txn_state")
        if it.state != "Ongoing":
            if it.state == f"Complete{wanted}" and (again or not bumping):
                return "answer"
            if again or committed or not bumping:
                raise Error("invalid_txn_state")
        return "rotate" if bumping and it.epoch >= LAST else "prepare"

    def prepare(self, name: str, *, committed: bool, version: int, fresh: int) -> None:
        it = self.known[name]
        it.state = "PrepareCommit" if committed else "PrepareAbort"
        it.previous_id = it.producer_id
        if version >= 2:
            it.last_epoch = it.epoch
            it.epoch += 1
        it.marker = it.producer_id, it.epoch
        if fresh != NONE:  # the markers of the last epoch still carry the old id
            it.producer_id, it.epoch = fresh, 0

    def complete(self, name: str) -> None:
        it = self.known[name]
        it.state = it.state.replace("Prepare", "Complete")
        it.partitions, it.offsets, it.started_ms = set(), set(), NONE
