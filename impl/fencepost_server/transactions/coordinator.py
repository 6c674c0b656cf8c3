"""The transaction coordinator: producer ids, fencing, and transactions from their first partition to their last marker.

A transactional id belongs to one producer at a time. The coordinator keeps one ``Transaction`` for it, which the store
has too. Its state goes around this circle:

    Empty -> Ongoing -> PrepareCommit -> CompleteCommit -> Ongoing -> PrepareAbort -> CompleteAbort -> Ongoing ...

1. InitProducerId (``init_producer``) gives the producer an id and an epoch. The epoch is higher than that of any
   earlier producer with the same transactional id, so an earlier one is *fenced*: the coordinator and the partitions
   reject its epoch. If the earlier producer left a transaction open, the coordinator aborts it first.
2. The first partition (``add``) opens the transaction. The producer writes to partitions only after they were added, so
   the coordinator knows each partition that needs a marker.
3. EndTxn (``end``) decides. The decision is made when the state PrepareCommit or PrepareAbort is in the store
   (``_decide``), not before and not after. A crash before it leaves the transaction open, and its timeout aborts it
   (``abort_late``). A crash after it changes nothing: the markers follow after the restart (``finish_endings``).
4. The coordinator writes a marker to each partition (``_complete``), and repeats this until all have one. A second
   marker does no harm. Then the state becomes complete, and the client gets its answer.

Two versions of the protocol are in use (KIP-890). With version 1 a producer keeps its epoch over its transactions, so a
late batch of one transaction may end up in the next. With version 2 each end of a transaction raises the epoch, and
writing to a partition adds it.

A client that lost an answer repeats its request with the id and epoch that it knows. So a transaction remembers the
epoch before the last bump and the id before the last change, and the coordinator tells a repeated request
(``_has_ended``) from one of a fenced producer. Epochs end at 32,766; then the producer gets a new id.

One lock for each transactional id is held from the check until the change is stored, so that no two requests change a
transaction at once. If the store fails, the change is undone in memory (``_keep``). No lock is held while markers are
written, because that may take long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from copy import copy
from typing import Final, TypeAlias

from kio.schema.errors import ErrorCode as Code

from fencepost.store import AppendError, Change, Put, Store, StoreError
from fencepost_server.data.producers import Refused
from fencepost_server.transactions.state import LAST_EPOCH, NO_EPOCH, NO_PRODUCER, State, Transaction

_log = logging.getLogger(__name__)

#: Kafka's default ``transaction.max.timeout.ms``
MOST_TIMEOUT_MS: Final = 900_000
#: Kafka's ``transaction.abort.timed.out.transaction.cleanup.interval.ms``
CHECK_S: Final = 10.0
#: the coordinator epoch in markers: always 0, as if there had never been another coordinator
COORDINATOR_EPOCH: Final = 0
#: from this version of transactions on, the end of a transaction bumps the epoch
BUMPING: Final = 2
KIND: Final = "transaction"
IDS_KIND: Final = "producer ids"
#: producer ids are reserved in blocks, so that not every id needs a write
_BLOCK: Final = 1_000

#: Writes the markers of a transaction to all its partitions. Raises if one of them could not be written.
Mark: TypeAlias = Callable[[Transaction, bool], Awaitable[None]]


class Transactions:
    """The transactions by transactional id. ``mark`` writes markers; ``now`` returns milliseconds."""

    def __init__(self, store: Store, mark: Mark, now: Callable[[], int]) -> None:
        self.known: dict[str, Transaction] = {}
        self._store = store
        self._mark = mark
        self._now = now
        #: the source of new producer ids, if several nodes share the store; None: this object
        self.ids: Callable[[], Awaitable[int]] | None = None
        self._next_id = 0
        self._set_aside = 0
        self._locks: dict[str, asyncio.Lock] = {}
        self._endings: dict[str, asyncio.Task[None]] = {}

    # ids

    async def new_producer_id(self) -> int:
        """Return an id that no producer has had. Raises what the store raises."""
        if self.ids is not None:
            return await self.ids()
        made = self._next_id
        self._next_id += 1
        if made >= self._set_aside:
            await self._store.write([Put(IDS_KIND, "", str(made + _BLOCK))])
            self._set_aside = max(self._set_aside, made + _BLOCK)
        return made

    def restore(self, rows: Mapping[str, str], ids: str | None) -> None:
        """Load the transactions and the next producer id from their stored texts. Raises what ``Transaction.of_text``
        raises."""
        self._next_id = self._set_aside = int(ids or 0)
        self.known = {name: Transaction.of_text(name, text) for name, text in rows.items()}

    async def init_producer(
        self, transactional_id: str | None, timeout_ms: int, producer_id: int, epoch: int, *, fencing: bool
    ) -> tuple[int, int]:
        """Return a producer id and epoch that no other producer has; an open transaction is aborted. ``fencing``: the
        client knows the code PRODUCER_FENCED. Raises ``Refused``."""
        if transactional_id is None:
            return await self.new_producer_id(), 0
        if not transactional_id:
            raise Refused(Code.invalid_request, "the transactional id is empty")
        if not 0 < timeout_ms <= MOST_TIMEOUT_MS:
            words = f"the transaction timeout must be 1 to {MOST_TIMEOUT_MS} ms (got {timeout_ms})"
            raise Refused(Code.invalid_transaction_timeout, words)
        expected = (producer_id, epoch) if (producer_id, epoch) != (NO_PRODUCER, NO_EPOCH) else None
        while True:
            async with self._lock(transactional_id):
                known = self.known.get(transactional_id)
                if known is None:
                    return await self._create(transactional_id, timeout_ms)
                self._check_expected(known, expected, fencing=fencing)
                if known.state is not State.ONGOING:
                    return await self._initialize(known, timeout_ms, expected, fencing=fencing)
                await self._fence(known)
            await self._marked(known)

    async def _create(self, transactional_id: str, timeout_ms: int) -> tuple[int, int]:
        made = Transaction(transactional_id, await self.new_producer_id(), 0, timeout_ms)
        made.previous_id = made.producer_id
        await self._keep(made)
        self.known[transactional_id] = made
        return _current(made)

    @staticmethod
    def _check_expected(known: Transaction, expected: tuple[int, int] | None, *, fencing: bool) -> None:
        """Raise ``Refused`` if another producer has replaced this one, and while a transaction is ending. The epoch is
        checked later, when no transaction is open."""
        if expected is not None and expected[0] != known.producer_id:
            rotated = expected[0] == known.previous_id and expected[1] >= LAST_EPOCH
            if not rotated:
                raise Refused(_fenced(fencing), "another producer has the transactional id")
        if known.state.ending:
            raise Refused(Code.concurrent_transactions, "a transaction is ending")

    async def _initialize(
        self, known: Transaction, timeout_ms: int, expected: tuple[int, int] | None, *, fencing: bool
    ) -> tuple[int, int]:
        """Return the next epoch, or a new producer id when the epochs are exhausted; the current ones if the client
        repeats a request whose answer was lost."""
        before = copy(known)
        epoch = None if expected is None else expected[1]
        current = epoch in (None, known.producer_epoch)
        exhausted = known.producer_epoch >= LAST_EPOCH
        if exhausted and not current:
            raise Refused(Code.unknown_server_error, "the producer epochs are used up")  # as in Kafka
        if not current and epoch != known.last_epoch:
            raise Refused(_fenced(fencing), "another producer has the transactional id")
        fresh = await self.new_producer_id() if exhausted else known.producer_id
        if current:
            known.last_epoch = NO_EPOCH if epoch is None else epoch
        known.previous_id = known.producer_id
        if exhausted:
            known.producer_id, known.producer_epoch = fresh, 0
        elif current:
            known.producer_epoch += 1
        known.timeout_ms, known.state = timeout_ms, State.EMPTY
        await self._keep(known, before)
        return _current(known)

    # partitions

    def check(self, transactional_id: str, producer_id: int, epoch: int, *, fencing: bool) -> Transaction:
        """Return the transaction of a transactional id. Raises ``Refused`` if this producer does not have it."""
        if not transactional_id:
            raise Refused(Code.invalid_request, "the transactional id is empty")
        known = self.known.get(transactional_id)
        if known is None or known.producer_id != producer_id:
            raise _another_id()
        if known.producer_epoch != epoch:
            raise Refused(_fenced(fencing), f"producer epoch must be {known.producer_epoch} (got {epoch})")
        return known

    async def add(
        self,
        known: Transaction,
        partitions: Collection[tuple[str, int]] = (),
        offsets: Collection[int] = (),
        *,
        version: int = 1,
    ) -> None:
        """Add partitions to a transaction, and begin it if none is open. Raises ``Refused`` while the previous one is
        ending, or if the producer was fenced meanwhile. Then, and if the store fails, nothing is added."""
        producer = _current(known)
        async with self._lock(known.transactional_id):
            if _current(known) != producer:
                raise Refused(Code.invalid_producer_epoch, "the producer was fenced")
            if known.state.ending:
                raise Refused(Code.concurrent_transactions, "a transaction is ending")
            before = copy(known)
            if known.state is State.ONGOING and known.partitions.issuperset(partitions):
                if known.offsets.issuperset(offsets):
                    return
            elif known.state is not State.ONGOING:
                known.partitions, known.offsets = set(), set()
                known.state, known.started_ms = State.ONGOING, self._now()
            known.version = version
            known.partitions = known.partitions.union(partitions)
            known.offsets = known.offsets.union(offsets)
            known.previous_id = known.producer_id
            await self._keep(known, before)

    # the end of a transaction

    async def end(
        self, transactional_id: str, producer_id: int, epoch: int, *, committed: bool, version: int, fencing: bool
    ) -> tuple[int, int]:
        """Commit or abort a transaction and wait for its markers. Returns the producer id and epoch of the next one.
        Raises ``Refused``."""
        if not transactional_id:
            raise Refused(Code.invalid_request, "the transactional id is empty")
        known = self.known.get(transactional_id)
        if known is None:
            raise Refused(Code.invalid_producer_id_mapping, "the transactional id is unknown")
        async with self._lock(transactional_id):
            check = self._has_ended_bumping if version >= BUMPING else self._has_ended
            if check(known, (producer_id, epoch), committed=committed, fencing=fencing):
                return _current(known)
            answer = await self._decide(known, committed=committed, version=version)
        await self._marked(known)
        return answer

    @staticmethod
    def _has_ended(known: Transaction, producer: tuple[int, int], *, committed: bool, fencing: bool) -> bool:
        """Return whether the transaction has already ended in this way, so that the client only lost the answer. Raises
        ``Refused`` if the producer cannot end it. For transactions of version 1."""
        if known.producer_id != producer[0]:
            raise _another_id()
        if known.producer_epoch != producer[1]:
            raise Refused(_fenced(fencing), f"producer epoch must be {known.producer_epoch} (got {producer[1]})")
        if known.state is State.ONGOING:
            return False
        return _is_decided(known, committed=committed, again=True)

    @staticmethod
    def _has_ended_bumping(known: Transaction, producer: tuple[int, int], *, committed: bool, fencing: bool) -> bool:
        """As ``_has_ended``, for transactions of version 2. Their end bumps the epoch, so a repeated request has the
        epoch before. An abort needs no open transaction."""
        producer_id, epoch = producer
        rotated = (producer_id, epoch, known.producer_epoch) == (known.previous_id, LAST_EPOCH, 0)
        bumped = known.producer_epoch == epoch + 1  # also of epoch -1, as in Kafka
        if known.producer_id != producer_id and not rotated:
            raise _another_id()
        if known.state.ending:
            valid = bumped
        else:
            valid = epoch == known.producer_epoch or (known.state.complete and (bumped or rotated))
        if not valid:
            raise Refused(_fenced(fencing), f"producer epoch must be {known.producer_epoch} (got {epoch})")
        again = bumped or rotated
        if known.state is State.ONGOING:
            return False
        if not known.state.ending and not committed and not again:
            return False
        return _is_decided(known, committed=committed, again=again)

    async def _fence(self, known: Transaction) -> None:
        """Abort the open transaction and fence its producer, which gets the new epoch when it asks for the next one."""
        await self._decide(known, committed=False, version=BUMPING)

    async def _decide(self, known: Transaction, *, committed: bool, version: int) -> tuple[int, int]:
        """Store the decision and start writing markers, even if no client waits for them. Returns the producer id and
        epoch of the next transaction."""
        before = copy(known)
        bumping = version >= BUMPING
        exhausted = known.producer_epoch >= LAST_EPOCH
        known.next_id = await self.new_producer_id() if bumping and exhausted else NO_PRODUCER
        known.previous_id = known.producer_id
        if bumping:
            known.last_epoch = known.producer_epoch
            known.producer_epoch += 1
        known.version = version
        known.state = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
        await self._keep(known, before)
        self._completing(known)
        return known.after

    async def _marked(self, known: Transaction) -> None:
        """Wait until the last marker is written."""
        task = self._endings.get(known.transactional_id)
        if task is not None:
            await asyncio.shield(task)

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
                async with self._lock(known.transactional_id):
                    before = copy(known)
                    known.state = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
                    known.previous_id = known.producer_id
                    known.producer_id, known.producer_epoch = known.after
                    known.next_id = NO_PRODUCER
                    known.partitions, known.offsets, known.started_ms = set(), set(), -1
                    await self._keep(known, before)
                return
            except Exception as reason:
                _log.warning("retrying the markers of a transaction of %s: %s", known.transactional_id, reason)
                await asyncio.sleep(pause)
                pause = min(2 * pause, 5.0)

    async def finish_endings(self) -> None:
        """Write the markers of all decided transactions, after a restart."""
        for known in self.known.values():
            if known.state.ending:
                await self._completing(known)

    async def abort_late(self) -> None:
        """Abort transactions that exceed their timeout; runs until cancelled."""
        while True:
            await asyncio.sleep(CHECK_S)
            for known in list(self.known.values()):
                try:
                    await self._abort_if_late(known)
                except (AppendError, StoreError) as reason:  # the next round tries again
                    _log.error("a timed-out transaction of %s cannot be aborted: %s", known.transactional_id, reason)

    async def _abort_if_late(self, known: Transaction) -> None:
        """Abort a transaction that exceeds its timeout, without waiting for its markers, since others may be late
        too."""
        async with self._lock(known.transactional_id):
            if known.state is State.ONGOING and self._now() - known.started_ms > known.timeout_ms:
                _log.warning("aborting a transaction of %s: it exceeded its timeout", known.transactional_id)
                await self._fence(known)

    def _lock(self, transactional_id: str) -> asyncio.Lock:
        """Return the lock of a transactional id. Each change of a transaction holds it until the change is stored."""
        return self._locks.setdefault(transactional_id, asyncio.Lock())

    async def _keep(self, known: Transaction, before: Transaction | None = None) -> None:
        """Store a transaction. If that fails, restore it from ``before`` and raise the error of the store."""
        changes: list[Change] = [Put(KIND, known.transactional_id, known.as_text())]
        try:
            await self._store.write(changes)
        except BaseException:
            if before is not None:
                known.become(before)
            raise


def _current(known: Transaction) -> tuple[int, int]:
    return known.producer_id, known.producer_epoch


def _fenced(known_to_client: bool) -> Code:
    return Code.producer_fenced if known_to_client else Code.invalid_producer_epoch


def _another_id() -> Refused:
    return Refused(Code.invalid_producer_id_mapping, "the producer id does not belong to the transactional id")


def _is_decided(known: Transaction, *, committed: bool, again: bool) -> bool:
    """Return True for a transaction that ended in this way, if its end may be repeated. Raises ``Refused`` in every
    other state."""
    done = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
    preparing = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
    if known.state is preparing:
        raise Refused(Code.concurrent_transactions, "the transaction is ending")
    if known.state is done and again:
        return True
    raise Refused(Code.invalid_txn_state, f"the transaction is in state {known.state}")
