"""Faults at an exact boundary of a size, a time, a version or an offset: off by one."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

CLASSIC, CONSUMER, OFFSETS = (f"coordinator/{package}" for package in ("classic", "consumer", "offsets"))

FAULTS = (
    Mutant(
        "expires-one-ms-late", Side.OFFSET_EDGES, ("O-EXP-01",), "",
        "an offset with its own expiry time outlives it by a millisecond",
        (
            Replacement(
                f"{OFFSETS}/expiry.py", "_condition",
                "now >= value.expire_timestamp", "now > value.expire_timestamp",
            ),
        ),
    ),
    Mutant(
        "metadata-at-its-limit-refused", Side.OFFSET_EDGES, ("O-COMMIT-09", "G-CFG-20"), "",
        "metadata of exactly offset.metadata.max.bytes is rejected",
        (
            Replacement(
                f"{OFFSETS}/commit.py", "commit_results",
                "_units(metadata) > step.settings.offset_metadata_max_bytes",
                "_units(metadata) >= step.settings.offset_metadata_max_bytes",
            ),
        ),
    ),
    Mutant(
        "epoch-of-the-assignment-refused", Side.OFFSET_EDGES, ("O-COMMIT-41",), "",
        "the epoch at which a member got a partition is too old to commit it",
        (
            Replacement(
                f"{OFFSETS}/validation.py", "Older.check",
                "self.epoch < since", "self.epoch <= since",
            ),
        ),
    ),
    Mutant(
        "partition-count-is-a-partition", Side.OFFSET_EDGES, ("O-COMMIT-03",), "",
        "a commit is stored for the partition after the last one of its topic",
        (
            Replacement(
                f"{OFFSETS}/validation.py", "_parted",
                "if all(0 <= each.partition_index < count for each in partitions):",
                "if all(0 <= each.partition_index <= count for each in partitions):",
            ),
        ),
    ),
    Mutant(
        "last-record-not-read", Side.LOG, ("F-REPLAY-18",), "",
        "a read at the offset of a batch's last record leaves that batch out",
        (
            Replacement(
                "log/partition.py", "read",
                "batch.rows[-1].offset >= offset]", "batch.rows[-1].offset > offset]",
            ),
        ),
    ),
    Mutant(
        "tombstone-of-the-reader-goes", Side.LOG, ("F-REPLAY-18",), "",
        "a tombstone that a reader reads next is removed",
        (
            Replacement(
                "log/compaction.py", "_found_by_all",
                "0 < reader <= offset", "0 < reader < offset",
            ),
        ),
    ),
    Mutant(
        "tombstone-one-ms-early", Side.LOG, ("F-REPLAY-18",), "",
        "a tombstone is removed one millisecond before its retention ends",
        (
            Replacement(
                "log/compaction.py", "_found_by_all",
                "now_ms >= batch.horizon_ms", "now_ms >= batch.horizon_ms - 1",
            ),
        ),
    ),
    Mutant(
        "longest-text-refused", Side.RECORDS, ("F-REC-22",), "",
        "a text of 32,767 bytes is rejected",
        (Replacement("codec/reading.py", "RecordReader._text", "if size > LONGEST_TEXT:", "if size >= LONGEST_TEXT:"),),
    ),
    Mutant(
        "varint-of-128", Side.CODEC, ("F-REC-10",), "",
        "the number 128 is written as a varint of one byte",
        (Replacement("codec/writing.py", "varint", "if number < 0x80:", "if number <= 0x80:"),),
    ),
    Mutant(
        "batches-below-the-limit-only", Side.STORE, ("F-RT-05",), "",
        "of batches with exactly the requested size the last is left out",
        (Replacement("store/tables.py", "batches", "if last is not None and size > most:",
                     "if last is not None and size >= most:"),),
    ),
    Mutant(
        "batch-at-the-low-watermark-dropped", Side.STORE, ("F-SURV-01",), "",
        "a batch that begins where the log begins is dropped from memory",
        (Replacement("store/memory.py", "MemoryStore._drop", "base >= below", "base > below"),),
    ),
)  # fmt: skip
