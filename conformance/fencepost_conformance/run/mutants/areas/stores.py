"""Faults of stores: durability, crashes, compaction, and reading back."""

from __future__ import annotations

from ..replacement import Replacement
from .fault import Area, Fault

WORKER, TABLES, SQL = "store/worker.py", "store/tables.py", "store/sql.py"
#: several servers on one database
NODES = "tests/unit/server/test_nodes.py"

FAULTS = (
    Fault(
        "doubtful-commit-acknowledged", Area.STORE,
        "a write is acknowledged although the disk failed while it was made durable",
        "OffsetCommit while fsync fails: it must not answer NONE",
        (
            Replacement(
                WORKER, "JobRunner._together",
                "return [self._dies(job, InDoubt(str(self._database.translate_error(failure)))) for job in jobs]",
                "return results",
            ),
        ),
    ),
    Fault(
        "rolled-back-records-written-later", Area.STORE,
        "records of a transaction that was rolled back are written with the next one",
        "an OffsetCommit fails because the disk is full, another succeeds, restart: the first must not be there",
        (Replacement(WORKER, "JobRunner._none", "self._put_together.forget()", "pass"),),
    ),
    Fault(
        "commit-not-flushed", Area.STORE,
        "a commit returns before it is on the disk",
        "OffsetCommit, then the machine loses power: the offset must be there (fsync must come before the answer)",
        (
            Replacement(
                "store/sqlite.py", "SqliteConnection._connect",
                "f\"PRAGMA synchronous = {'FULL' if self._flush else 'NORMAL'}\"", '"PRAGMA synchronous = NORMAL"',
            ),
        ),
    ),
    Fault(
        "batch-with-the-producer-of-its-neighbour", Area.STORE,
        "records of a transaction are kept with the producer of the records before them",
        "OffsetCommit and TxnOffsetCommit at once, restart, EndTxn abort: the first offset must stay and the second go",
        (
            Replacement(
                TABLES, "append",
                "if batch is None or batch.header != run.header or len(batch.pairs) >= packed.MOST:",
                "if batch is None or len(batch.pairs) >= packed.MOST:",
            ),
        ),
    ),
    Fault(
        "compaction-renumbers-a-batch", Area.STORE,
        "records that a compaction leaves in a batch get new places, so its next step deletes others",
        "commits, deletions and commits in one batch, compact, restart: OffsetFetch must show what it showed before",
        (
            Replacement(
                TABLES, "delete",
                "data = packed.repacked(left)", "data = packed.packed([(key, value) for _, key, value in left])",
            ),
        ),
    ),
    Fault(
        "batch-at-the-log-start-deleted", Area.STORE,
        "DropBatches deletes the batch that begins at its offset too",
        "Produce two batches, DeleteRecords before the second, restart, Fetch: the second must come",
        (Replacement(TABLES, "change", "AND number = ? AND base < ?", "AND number = ? AND base <= ?"),),
    ),
    Fault(
        "second-damaged-batch-served", Area.STORE,
        "only the first of the batches that are read together is held against its checksum",
        "change a byte of the second batch of t-0 in the file, Fetch from 0: it must answer KAFKA_STORAGE_ERROR",
        (
            Replacement(
                TABLES, "batches", "for base, data, checksum in rows:", "for base, data, checksum in rows[:1]:",
            ),
        ),
    ),
    Fault(
        "upgrade-keeps-the-first-rows", Area.STORE,
        "a store of format 1 loses what is behind the first 20,000 records of a partition",
        "open a store of format 1 with 25,000 records in a partition: all must be loaded",
        (
            Replacement(
                "store/upgrade.py", "upgrade", "while rows := on.rows(", "if rows := on.rows(",
            ),
        ),
    ),
    Fault(
        "tombstones-compacted-before-values", Area.STORE,
        "a compaction deletes tombstones before the values that they are for, so a crash in between brings values back",
        "commit, delete the offset, kill the server between two transactions of a compaction, restart: the offset must "
        "be gone",
        (
            Replacement(
                SQL, "SqlStore.compact",
                "for places in (sorted(found.superseded), sorted(found.ending)):",
                "for places in (sorted(found.ending), sorted(found.superseded)):",
            ),
        ),
    ),
    Fault(
        "memory-compaction-drops-appends", Area.STORE,
        "records that are appended while a store in memory is compacted are lost",
        "compact(0) and append meanwhile, load(0): the appended records must be there",
        (
            Replacement(
                "store/memory.py", "MemoryStore.compact",
                "log.records[: len(seen)] = kept = await", "log.records[:] = kept = await",
            ),
        ),
    ),
    Fault(
        "check-looks-at-one-topic", Area.STORE,
        "fencepost store checks the batches of the first partition only",
        "damage a batch of the second topic in the file, fencepost store FILE: it must name the batch",
        (
            Replacement(
                "store/checking.py", "check_file", "in tables.places(connection))", "in tables.places(connection)[:1])",
            ),
        ),
    ),
    Fault(
        "old-leader-writes-batches", Area.STORE,
        "a node that leads no more still writes batches, topics and transactions; only appends of groups are fenced",
        "two hosts on a PostgreSQL database; the second leads; the first writes a batch: it must raise FencedEpoch",
        (
            Replacement(
                SQL, "SqlStore.write",
                "if epoch is not None:\n    tables.fence(self._connection, 0, epoch)", "pass",
            ),
        ),
        tests=(NODES,),
    ),
    Fault(
        "lease-renewed-in-an-old-epoch", Area.STORE,
        "a node renews a lease in an epoch that is over, since it has claimed the lease again",
        "claim, let the lease end, claim again (epoch 2), renew(1): it must return False",
        (
            Replacement(
                "store/lease.py", "PostgresLease.renew",
                "WHERE node_id = ? AND epoch = ?", "WHERE node_id = ? AND epoch >= ?",
            ),
        ),
    ),
    Fault(
        "silent-node-keeps-its-number", Area.STORE,
        "a node number stays taken after its node was silent for longer than the lease",
        "join as node 1, wait longer than the lease without a beat, join as node 1 from another address: it must work",
        (
            Replacement(
                "store/lease.py", "PostgresLease.join",
                'f" AND seen > now() - {_SPAN}",', 'f" AND seen > now() - 60 * {_SPAN}",',
            ),
        ),
    ),
    Fault(
        "batches-of-another-partition-dropped", Area.STORE,
        "a store in memory drops batches of all partitions of a topic",
        "write batches to t-0 and t-1, DropBatches of t-0 below 10: batches of t-1 must stay",
        (
            Replacement(
                "store/memory.py", "MemoryStore.write",
                "if topic_id == change.topic_id and change.partition in (None, partition):",
                "if topic_id == change.topic_id:",
            ),
        ),
    ),
)  # fmt: skip
