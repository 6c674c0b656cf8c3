"""Kafka's transaction coordinator for requests one after the other: TransactionMetadata and its transitions.

Fencepost differs in one way. InitProducerId waits until the transaction that it aborts has ended, where Kafka answers
CONCURRENT_TRANSACTIONS and the client asks again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

LAST: Final = 32_766
NONE: Final = -1
LONGEST_MS: Final = 900_000


@dataclass(slots=True)
class Metadata:
    """Fields under Kafka's names."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: str = "Empty"
    previous_id: int = NONE
    last_epoch: int = NONE
    next_id: int = NONE
    partitions: set[tuple[str, int]] = field(default_factory=set)
    offsets: set[int] = field(default_factory=set)
    started_ms: int = NONE

    @property
    def ending(self) -> bool:
        return self.state.startswith("Prepare")

    @property
    def complete(self) -> bool:
        return self.state.startswith("Complete")

    @property
    def marker(self) -> tuple[int, int]:
        """Producer id and epoch of the markers, while the transaction is ending."""
        return self.producer_id, self.epoch

    @property
    def after(self) -> tuple[int, int]:
        """What prepareComplete makes of producer id and epoch."""
        return (self.producer_id, self.epoch) if self.next_id == NONE else (self.next_id, 0)


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
        if it.epoch >= LAST:
            if expected is None or expected[1] == it.epoch:
                return "rotate"
            raise Error("unknown_server_error")  # prepareIncrementProducerEpoch throws IllegalStateException
        if expected is None or expected[1] == it.epoch:
            return "bump"
        if expected[1] == it.last_epoch:
            return "again"
        raise Error("fenced")

    def fence(self, name: str, fresh: int) -> None:
        """The coordinator aborts the transaction itself. ``fresh``: as in ``prepare``."""
        self.prepare(name, committed=False, version=2, fresh=fresh)

    def initialized(self, name: str, what: str, timeout_ms: int, expected: tuple[int, int] | None, fresh: int) -> None:
        if what == "new id":
            self.known[name] = Metadata(fresh, 0, timeout_ms, previous_id=fresh)
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
        wanted = "Commit" if committed else "Abort"
        if version < 2:
            if it.producer_id != producer_id:
                raise Error("invalid_producer_id_mapping")
            if it.epoch != epoch:
                raise Error("fenced")
            return "prepare" if it.state == "Ongoing" else self._decided(it, wanted, retry=True)
        on_overflow = it.previous_id == producer_id and epoch == LAST and it.epoch == 0
        on_bump = it.epoch == epoch + 1
        if it.producer_id != producer_id and not on_overflow:
            raise Error("invalid_producer_id_mapping")
        if it.ending:
            valid = on_bump
        elif it.complete:
            valid = on_bump or on_overflow or epoch == it.epoch
        else:
            valid = epoch == it.epoch
        if not valid:
            raise Error("fenced")
        retry = on_bump or on_overflow
        fits = it.state in ("Empty", "CompleteAbort", "CompleteCommit") and not committed and not retry
        if it.state == "Ongoing" or fits:
            return "rotate" if it.epoch >= LAST else "prepare"
        return self._decided(it, wanted, retry=retry)

    @staticmethod
    def _decided(it: Metadata, wanted: str, *, retry: bool) -> str:
        if it.state == f"Prepare{wanted}":
            raise Error("concurrent_transactions")
        if it.state == f"Complete{wanted}" and retry:
            return "answer"
        raise Error("invalid_txn_state")

    def prepare(self, name: str, *, committed: bool, version: int, fresh: int) -> None:
        """``fresh``: the producer id of the next transaction; ``NONE`` while the epochs last."""
        it = self.known[name]
        it.state = "PrepareCommit" if committed else "PrepareAbort"
        it.previous_id = it.producer_id
        it.next_id = fresh
        if version >= 2:
            it.last_epoch = it.epoch
            it.epoch += 1

    def complete(self, name: str) -> None:
        it = self.known[name]
        it.state = it.state.replace("Prepare", "Complete")
        it.previous_id = it.producer_id
        it.producer_id, it.epoch = it.after
        it.next_id = NONE
        it.partitions, it.offsets, it.started_ms = set(), set(), NONE
