"""Faults of producer ids, fencing, and the ends of transactions."""

from __future__ import annotations

from ..replacement import Replacement
from .fault import Area, Fault

COORDINATOR, STATE = "fencepost_server/transactions/coordinator.py", "fencepost_server/transactions/state.py"
#: servers that are killed and started again
RESTARTS = "tests/wire/test_serve_data.py"

FAULTS = (
    Fault(
        "epoch-beyond-the-last", Area.TRANSACTIONS,
        "InitProducerId gives out epoch 32,767 before it changes the producer id",
        "InitProducerId 32,767 times for one transactional id: the last one must have another producer id, epoch 0",
        (
            Replacement(
                COORDINATOR, "Transactions._initialize",
                "exhausted = known.producer_epoch >= LAST_EPOCH", "exhausted = known.producer_epoch > LAST_EPOCH",
            ),
        ),
    ),
    Fault(
        "end-uses-up-the-last-epoch", Area.TRANSACTIONS,
        "EndTxn v5 raises the epoch past 32,766 before it changes the producer id",
        "transactions of one producer until epoch 32,766, then EndTxn v5: it must answer a new producer id, epoch 0",
        (
            Replacement(
                COORDINATOR, "Transactions._decide",
                "exhausted = known.producer_epoch >= LAST_EPOCH", "exhausted = known.producer_epoch > LAST_EPOCH",
            ),
        ),
    ),
    Fault(
        "init-without-an-id-does-not-fence", Area.TRANSACTIONS,
        "a second InitProducerId without a producer id answers the epoch of the first one",
        "InitProducerId of x twice from new producers: the second must have the next epoch, and fence the first",
        (
            Replacement(
                COORDINATOR, "Transactions._initialize",
                "epoch = None if expected is None else expected[1]",
                "epoch = NO_EPOCH if expected is None else expected[1]",
            ),
        ),
    ),
    Fault(
        "timeout-does-not-fence", Area.TRANSACTIONS,
        "a transaction that timed out is aborted, but its producer is not fenced",
        "InitProducerId with timeout 1 s, AddPartitionsToTxn, wait 12 s, AddPartitionsToTxn again: it must answer "
        "PRODUCER_FENCED",
        (Replacement(COORDINATOR, "Transactions._fence", "version=BUMPING", "version=1"),),
    ),
    Fault(
        "timeout-of-the-first-init-stays", Area.TRANSACTIONS,
        "a later InitProducerId does not change the transaction timeout",
        "InitProducerId with 60 s, then with 1 s, AddPartitionsToTxn, wait 12 s: the transaction must be aborted",
        (
            Replacement(
                COORDINATOR, "Transactions._initialize",
                "known.timeout_ms, known.state = timeout_ms, State.EMPTY", "known.state = State.EMPTY",
            ),
        ),
    ),
    Fault(
        "longest-timeout-refused", Area.TRANSACTIONS,
        "a transaction timeout of exactly transaction.max.timeout.ms is refused",
        "InitProducerId with 900,000 ms: it must be accepted",
        (
            Replacement(
                COORDINATOR, "Transactions.init_producer",
                "if not 0 < timeout_ms <= MOST_TIMEOUT_MS:", "if not 0 < timeout_ms < MOST_TIMEOUT_MS:",
            ),
        ),
    ),
    Fault(
        "start-of-transaction-not-noted", Area.TRANSACTIONS,
        "a transaction has no start time, so the next check aborts it",
        "AddPartitionsToTxn with a timeout of 60 s, wait 12 s, EndTxn commit: it must succeed",
        (
            Replacement(
                COORDINATOR, "Transactions.add",
                "known.state, known.started_ms = State.ONGOING, self._now()", "known.state = State.ONGOING",
            ),
        ),
    ),
    Fault(
        "offsets-not-added-to-an-open-transaction", Area.TRANSACTIONS,
        "the offsets topic is not added to a transaction that has data partitions already",
        "AddPartitionsToTxn t-0, AddOffsetsToTxn g, TxnOffsetCommit v3, EndTxn commit: OffsetFetch must show the "
        "offset",
        (
            Replacement(
                COORDINATOR, "Transactions.add",
                "if known.offsets.issuperset(offsets):\n    return", "return",
            ),
        ),
    ),
    Fault(
        "repeated-end-of-the-other-kind-succeeds", Area.TRANSACTIONS,
        "EndTxn v5 that is sent again with the opposite decision succeeds",
        "EndTxn v5 commit, then EndTxn v5 abort with the same producer id and epoch: it must answer INVALID_TXN_STATE",
        (
            Replacement(
                COORDINATOR, "Transactions._has_ended_bumping",
                "return _is_decided(", "return (again and known.state.complete) or _is_decided(",
            ),
        ),
    ),
    Fault(
        "commit-of-an-aborted-transaction-succeeds", Area.TRANSACTIONS,
        "EndTxn v4 commit of a transaction that was aborted succeeds",
        "AddPartitionsToTxn, EndTxn v4 abort, EndTxn v4 commit: it must answer INVALID_TXN_STATE",
        (
            Replacement(
                COORDINATOR, "Transactions._has_ended",
                "return _is_decided(", "return known.state.complete or _is_decided(",
            ),
        ),
    ),
    Fault(
        "commit-of-an-empty-transaction-succeeds", Area.TRANSACTIONS,
        "EndTxn v5 commit of a transaction that was never begun succeeds; only an abort may",
        "InitProducerId, EndTxn v5 commit: it must answer INVALID_TXN_STATE",
        (
            Replacement(
                COORDINATOR, "Transactions._has_ended_bumping",
                "not known.state.ending and not committed and not again", "not known.state.ending and not again",
            ),
        ),
    ),
    Fault(
        "second-marker-not-visible", Area.TRANSACTIONS,
        "only the first partition of a transaction shows its marker to readers",
        "a transaction writes t-0 and t-1 and commits; Fetch read_committed of t-1 must return its records",
        (
            Replacement(
                "fencepost_server/node.py", "Node._mark",
                "for log, end in written:", "for log, end in written[:1]:",
            ),
        ),
    ),
    Fault(
        "offsets-of-second-group-not-ended", Area.TRANSACTIONS,
        "a transaction ends in one partition of the offsets topic only",
        "TxnOffsetCommit for two groups of different partitions, EndTxn commit: OffsetFetch must show both",
        (
            Replacement(
                "fencepost_server/node.py", "Node._mark",
                "places = sorted(known.offsets)", "places = sorted(known.offsets)[:1]",
            ),
        ),
    ),
    Fault(
        "one-ending-finished-at-start", Area.TRANSACTIONS,
        "a restart finishes one of the transactions that were decided",
        "kill the server while two transactions are in PrepareCommit, restart: Fetch read_committed must show both",
        (
            Replacement(
                COORDINATOR, "Transactions.finish_endings",
                "await self._completing(known)", "await self._completing(known)\nbreak",
            ),
        ),
        tests=(RESTARTS,),
    ),
    Fault(
        "restart-forgets-the-last-epoch", Area.TRANSACTIONS,
        "after a restart a repeated InitProducerId is fenced",
        "InitProducerId with the current epoch, restart before the answer is read, the same again: it must answer the "
        "new epoch",
        (
            Replacement(
                STATE, "Transaction.of_text",
                'int(row["last_epoch"]),', "NO_EPOCH,",
            ),
        ),
        tests=(RESTARTS,),
    ),
    Fault(
        "restart-gives-producer-ids-again", Area.TRANSACTIONS,
        "after a restart producer ids are given out that other producers have",
        "InitProducerId, restart, InitProducerId: the ids must differ",
        (
            Replacement(
                COORDINATOR, "Transactions.restore",
                "self._next_id = self._set_aside = int(ids or 0)", "self._next_id, self._set_aside = 0, int(ids or 0)",
            ),
        ),
        tests=(RESTARTS,),
    ),
    Fault(
        "partition-beside-an-unknown-one-added", Area.TRANSACTIONS,
        "AddPartitionsToTxn reports success for partitions beside one that does not exist, and adds none",
        "AddPartitionsToTxn of t-0 and missing-0: t-0 must answer OPERATION_NOT_ATTEMPTED",
        (
            Replacement(
                "fencepost_server/apis/transactions.py", "_add",
                "codes.get(each, Code.operation_not_attempted)", "codes.get(each, Code.none)",
            ),
        ),
    ),
    Fault(
        "future-epoch-accepted", Area.TRANSACTIONS,
        "AddPartitionsToTxn accepts an epoch that was never given",
        "InitProducerId (epoch 0), AddPartitionsToTxn with epoch 1: it must answer PRODUCER_FENCED",
        (
            Replacement(
                COORDINATOR, "Transactions.check",
                "if known.producer_epoch != epoch:", "if known.producer_epoch > epoch:",
            ),
        ),
    ),
    Fault(
        "old-client-answered-producer-fenced", Area.TRANSACTIONS,
        "clients of versions without PRODUCER_FENCED are answered with it",
        "InitProducerId twice, EndTxn v1 with the first epoch: it must answer INVALID_PRODUCER_EPOCH",
        (
            Replacement(
                COORDINATOR, "_fenced",
                "Code.producer_fenced if known_to_client else Code.invalid_producer_epoch", "Code.producer_fenced",
            ),
        ),
    ),
    Fault(
        "offsets-taken-while-the-transaction-ends", Area.TRANSACTIONS,
        "TxnOffsetCommit v3 is accepted after the transaction was decided",
        "hold back the marker, EndTxn commit, TxnOffsetCommit v3: it must answer INVALID_TXN_STATE",
        (
            Replacement(
                "fencepost_server/apis/groups.py", "_in_transaction",
                "if partition not in known.offsets or known.state.ending:", "if partition not in known.offsets:",
            ),
        ),
    ),
    Fault(
        "batch-taken-while-the-transaction-ends", Area.TRANSACTIONS,
        "Produce v11 is accepted after the transaction was decided",
        "hold back the marker, EndTxn v4 commit, Produce v11 in the transaction: it must answer INVALID_TXN_STATE",
        (
            Replacement(
                "fencepost_server/apis/produce.py", "_in_transaction",
                "elif known.state.ending or (name, log.index) not in known.partitions:",
                "elif (name, log.index) not in known.partitions:",
            ),
        ),
        source="KAFKA-14402 (KIP-890)",
    ),
    Fault(
        "transactional-id-looked-up-in-an-open-transaction", Area.TRANSACTIONS,
        "a partition asks the coordinator for the transactional id although the producer's transaction is open in it",
        "Produce twice in one transaction, the second time with another transactional id: Kafka appends the batch",
        (
            Replacement(
                "fencepost_server/apis/produce.py", "_written",
                "not internal and log.verify(batch, bumps=call.version >= _IMPLICIT_SINCE):",
                "not internal and (log.verify(batch, bumps=call.version >= _IMPLICIT_SINCE) or True):",
            ),
        ),
    ),
    Fault(
        "offsets-of-an-open-transaction-looked-up", Area.TRANSACTIONS,
        "TxnOffsetCommit looks up the transactional id although the producer's transaction is open in the partition",
        "TxnOffsetCommit twice in one transaction, the second time with another transactional id: Kafka stores both",
        (
            Replacement(
                "fencepost_server/transactions/offset_producers.py", "OffsetProducers.ongoing",
                "return last == epoch and key in self._open", "return False",
            ),
        ),
    ),
    Fault(
        "offsets-partition-forgets-epochs", Area.TRANSACTIONS,
        "the end of a transaction leaves no producer epoch in the partition of the offsets topic",
        "TxnOffsetCommit and EndTxn v5, then TxnOffsetCommit of the earlier epoch under another transactional id: it "
        "must answer INVALID_PRODUCER_EPOCH",
        (
            Replacement(
                "fencepost_server/transactions/offset_producers.py", "OffsetProducers.ended",
                "self._wrote((partition, producer_id), epoch)", "pass",
            ),
        ),
    ),
)  # fmt: skip
