"""Producer ids, fencing, and the way of a transaction from its first partition to the last of its markers.

A transaction is decided when its state says so in the store; the markers follow, and are written again after a
restart until each partition has its own. Two ways of ending exist (KIP-890): with version 1 a producer keeps its epoch,
with version 2 each transaction has an epoch of its own, and partitions are added by being written to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, TypeAlias

from kio.schema.errors import ErrorCode as Code

from fencepost.store import Change, Put, SharedStore

from ..data.producers import Refused
from .state import LAST_EPOCH, NO_EPOCH, NO_PRODUCER, State, Transaction

_log = logging.getLogger(__name__)

#: Kafka's default ``transaction.max.timeout.ms``
MOST_TIMEOUT_MS: Final = 900_000
#: Kafka's ``transaction.abort.timed.out.transaction.cleanup.interval.ms``
CHECK_S: Final = 10.0
#: this is the only coordinator that there ever was
COORDINATOR_EPOCH: Final = 0
#: from this version of transactions on an end bumps the epoch
BUMPING: Final = 2
KIND: Final = "transaction"
IDS_KIND: Final = "producer ids"
#: ids are set aside in blocks, so that one is not written for each
_BLOCK: Final = 1_000

#: Writes the markers of a transaction to all its partitions. Raises if one of them could not be written.
Mark: TypeAlias = Callable[[Transaction, bool], Awaitable[None]]


class Transactions:
    """``mark`` writes markers; ``now`` gives milliseconds."""

    def __init__(self, store: SharedStore, mark: Mark, now: Callable[[], int]) -> None:
        self.known: dict[str, Transaction] = {}
        self._store = store
        self._mark = mark
        self._now = now
        #: where ids come from that nobody had, if not from here
        self.ids: Callable[[], Awaitable[int]] | None = None
        self._next_id = 0
        self._set_aside = 0
        self._endings: dict[str, asyncio.Task[None]] = {}

    # ids

    async def new_producer_id(self) -> int:
        """An id that nobody had."""
        if self.ids is not None:
            return await self.ids()
        made = self._next_id
        self._next_id += 1
        if made >= self._set_aside:
            self._set_aside = made + _BLOCK
            await self._store.write([Put(IDS_KIND, "", str(self._set_aside))])
        return made

    def restore(self, rows: Mapping[str, str], ids: str | None) -> None:
        """What a store has. Raises as ``Transaction.of_text``."""
        self._next_id = self._set_aside = int(ids or 0)
        self.known = {name: Transaction.of_text(name, text) for name, text in rows.items()}

    async def init_producer(
        self, transactional_id: str | None, timeout_ms: int, producer_id: int, epoch: int, *, fencing: bool
    ) -> tuple[int, int]:
        """A producer id and an epoch that no other producer has; a transaction of before is aborted. ``fencing``: the
        client knows the code PRODUCER_FENCED. Raises ``Refused``."""
        if transactional_id is None:
            return await self.new_producer_id(), 0
        if not transactional_id:
            raise Refused(Code.invalid_request, "the transactional id is empty")
        if not 0 < timeout_ms <= MOST_TIMEOUT_MS:
            raise Refused(Code.invalid_transaction_timeout, f"timeout {timeout_ms}")
        known = self.known.get(transactional_id)
        if known is None:
            fresh = await self.new_producer_id()
            known = self.known.get(transactional_id)
            if known is None:
                known = Transaction(transactional_id, fresh, 0, timeout_ms)
                self.known[transactional_id] = known
                await self._keep(known)
                return fresh, 0
        if (producer_id, epoch) != (NO_PRODUCER, NO_EPOCH) and (producer_id, epoch) not in (
            (known.producer_id, known.producer_epoch),
            known.previous,
        ):
            raise Refused(_fenced(fencing), "another producer has the transactional id")
        if known.state.ending:
            raise Refused(Code.concurrent_transactions, "a transaction is ending")
        if known.state is State.ONGOING:
            self._bump(known)  # fences whoever wrote before
            known.marker = _current(known)
            await self._end(known, committed=False)
        if (producer_id, epoch) == known.previous and producer_id != NO_PRODUCER:
            return known.producer_id, known.producer_epoch  # asked again: the answer was lost
        known.previous = (producer_id, epoch) if producer_id != NO_PRODUCER else (NO_PRODUCER, NO_EPOCH)
        if known.producer_epoch >= LAST_EPOCH:
            known.producer_id, known.producer_epoch = await self.new_producer_id(), 0
        else:
            self._bump(known)
        known.timeout_ms, known.state = timeout_ms, State.EMPTY
        answer = known.producer_id, known.producer_epoch
        await self._keep(known)
        return answer

    @staticmethod
    def _bump(known: Transaction) -> None:
        known.producer_epoch += 1

    # partitions

    def check(self, transactional_id: str, producer_id: int, epoch: int, *, fencing: bool) -> Transaction:
        """The transactional id, if that producer has it. Raises ``Refused``."""
        if not transactional_id:
            raise Refused(Code.invalid_request, "the transactional id is empty")
        known = self.known.get(transactional_id)
        if known is None or known.producer_id != producer_id:
            raise Refused(Code.invalid_producer_id_mapping, "the producer does not have the transactional id")
        if known.producer_epoch != epoch:
            raise Refused(_fenced(fencing), f"epoch {epoch}, where the producer has {known.producer_epoch}")
        return known

    async def add(
        self,
        known: Transaction,
        partitions: Collection[tuple[str, int]] = (),
        offsets: Collection[int] = (),
        *,
        version: int = 1,
    ) -> None:
        """The transaction is in these partitions too. Raises ``Refused`` while the one before it is ending."""
        if known.state.ending:
            raise Refused(Code.concurrent_transactions, "a transaction is ending")
        if known.state is State.ONGOING and known.partitions.issuperset(partitions):
            if known.offsets.issuperset(offsets):
                return
        elif known.state is not State.ONGOING:
            known.partitions, known.offsets = set(), set()
            known.state, known.started_ms = State.ONGOING, self._now()
        known.version = version
        known.partitions.update(partitions)
        known.offsets.update(offsets)
        await self._keep(known)

    # ends

    async def end(
        self, transactional_id: str, producer_id: int, epoch: int, *, committed: bool, version: int, fencing: bool
    ) -> tuple[int, int]:
        """Decides the transaction and has it marked: the producer id and epoch that go on. Raises ``Refused``."""
        if not transactional_id:
            raise Refused(Code.invalid_request, "the transactional id is empty")
        known = self.known.get(transactional_id)
        if known is None:
            raise Refused(Code.invalid_producer_id_mapping, "nobody has the transactional id")
        bumping = version >= BUMPING
        done = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        if bumping and (producer_id, epoch) == known.previous and known.state.complete:
            if known.state is not done:
                raise Refused(Code.invalid_txn_state, f"the transaction is {known.state}")
            return known.producer_id, known.producer_epoch  # asked again: the answer was lost
        if known.producer_id != producer_id:
            raise Refused(Code.invalid_producer_id_mapping, "the producer does not have the transactional id")
        if known.producer_epoch != epoch:
            raise Refused(_fenced(fencing), f"epoch {epoch}, where the producer has {known.producer_epoch}")
        if known.state.ending:
            raise Refused(Code.concurrent_transactions, "the transaction is ending")
        if not bumping and known.state is done:
            return producer_id, epoch
        if known.state is not State.ONGOING and not (bumping and not committed):
            raise Refused(Code.invalid_txn_state, f"the transaction is {known.state}")
        if bumping:
            known.previous = (producer_id, epoch)
            if known.producer_epoch >= LAST_EPOCH - 1:
                known.marker = (producer_id, known.producer_epoch + 1)
                known.producer_id, known.producer_epoch = await self.new_producer_id(), 0
            else:
                self._bump(known)
                known.marker = (known.producer_id, known.producer_epoch)
        else:
            known.marker = (known.producer_id, known.producer_epoch)
        answer = known.producer_id, known.producer_epoch
        await self._end(known, committed=committed)
        return answer

    async def _end(self, known: Transaction, *, committed: bool) -> None:
        """To the last marker, whether or not anybody waits for it."""
        known.state = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
        await self._keep(known)
        await asyncio.shield(self._completing(known))

    def _completing(self, known: Transaction) -> asyncio.Task[None]:
        name = known.transactional_id
        task = self._endings.get(name)
        if task is None:
            task = self._endings[name] = asyncio.get_running_loop().create_task(self._complete(known))
            task.add_done_callback(lambda _: self._endings.pop(name, None))
        return task

    async def _complete(self, known: Transaction) -> None:
        committed = known.state is State.PREPARE_COMMIT
        pause = 0.1
        while True:
            try:
                await self._mark(known, committed)
                break
            except Exception as reason:
                _log.warning("the end of a transaction of %s is tried again: %s", known.transactional_id, reason)
                await asyncio.sleep(pause)
                pause = min(2 * pause, 5.0)
        known.state = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        known.partitions, known.offsets, known.started_ms = set(), set(), -1
        await self._keep(known)

    async def finish_endings(self) -> None:
        """After a restart: what was decided is marked."""
        for known in self.known.values():
            if known.state.ending:
                await self._completing(known)

    async def abort_late(self) -> None:
        """Aborts, for as long as it runs, what takes longer than its producer said."""
        while True:
            await asyncio.sleep(CHECK_S)
            for known in list(self.known.values()):
                if known.state is State.ONGOING and self._now() - known.started_ms > known.timeout_ms:
                    _log.warning("a transaction of %s has taken too long and is aborted", known.transactional_id)
                    self._bump(known)
                    known.marker = _current(known)
                    await self._end(known, committed=False)

    async def _keep(self, known: Transaction) -> None:
        changes: list[Change] = [Put(KIND, known.transactional_id, known.as_text())]
        await self._store.write(changes)


def _current(known: Transaction) -> tuple[int, int]:
    return known.producer_id, known.producer_epoch


def _fenced(known_to_client: bool) -> Code:
    return Code.producer_fenced if known_to_client else Code.invalid_producer_epoch
