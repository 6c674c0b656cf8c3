"""Faults of widths: text lengths in characters, signs, numbers beyond 32 bits, and fields that a version lacks."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

CLASSIC, CONSUMER, OFFSETS = (f"coordinator/{package}" for package in ("classic", "consumer", "offsets"))

FAULTS = (
    Mutant(
        "metadata-counted-in-characters", Side.OFFSET_EDGES, ("G-CFG-20", "O-COMMIT-09"), "",
        "the length of metadata is counted in characters, so that one beyond the BMP counts once",
        (
            Replacement(
                f"{OFFSETS}/commit.py", "_units",
                'len(text.encode("utf-16-le", "surrogatepass")) // 2', "len(text)",
            ),
        ),
    ),
    Mutant(
        "metadata-counted-in-bytes", Side.OFFSET_EDGES, ("G-CFG-20", "O-COMMIT-09"), "",
        "the length of metadata is counted in bytes of UTF-8",
        (
            Replacement(
                f"{OFFSETS}/commit.py", "_units",
                'len(text.encode("utf-16-le", "surrogatepass")) // 2', 'len(text.encode("utf-8", "surrogatepass"))',
            ),
        ),
    ),
    Mutant(
        "negative-partition-accepted", Side.OFFSET_EDGES, ("O-COMMIT-03",), "",
        "an offset is stored for a partition with a negative index",
        (
            Replacement(
                f"{OFFSETS}/validation.py", "_parted",
                "if all(0 <= each.partition_index < count for each in partitions):",
                "if all(each.partition_index < count for each in partitions):",
            ),
        ),
    ),
    Mutant(
        "retention-of-zero-is-none", Side.OFFSET_EDGES, ("O-COMMIT-14",), "",
        "a retention of 0 ms in a commit counts as none",
        (
            Replacement(
                f"{OFFSETS}/commit.py", "_expire_timestamp",
                "body.retention_time_ms == NO_RETENTION", "body.retention_time_ms <= 0",
            ),
        ),
    ),
    Mutant(
        "retention-gone-one-version-early", Side.OFFSET_EDGES, ("O-COMMIT-14",), "",
        "OffsetCommit v4, which carries a retention, is treated as if it did not",
        (
            Replacement(
                f"{OFFSETS}/commit.py", "_expire_timestamp",
                "request.version > RETENTION_UNTIL", "request.version >= RETENTION_UNTIL",
            ),
        ),
    ),
    Mutant(
        "producers-of-32-bits", Side.OFFSET_EDGES, ("O-TXN-08", "O-TXN-07"), "",
        "two producers whose ids differ above 32 bits share a transaction",
        (
            Replacement(
                f"{OFFSETS}/offset_appliers.py", "change",
                "offsets.put_pending(producer.producer_id, key.group,",
                "offsets.put_pending(producer.producer_id & 0xFFFF_FFFF, key.group,",
            ),
            Replacement(
                f"{OFFSETS}/offset_appliers.py", "change",
                "offsets.end(producer.producer_id, committed",
                "offsets.end(producer.producer_id & 0xFFFF_FFFF, committed",
            ),
        ),
    ),
    Mutant(
        "topic-id-in-one-version-more", Side.OFFSET_EDGES, ("O-TXN-05", "V-129"), "",
        "TxnOffsetCommit v6 answers a stale member with ILLEGAL_GENERATION",
        (
            Replacement(
                f"{OFFSETS}/transactions.py", "_error_of_version",
                "request.version < TOPIC_IDS_SINCE", "request.version <= TOPIC_IDS_SINCE",
            ),
        ),
    ),
    Mutant(
        "text-length-in-characters", Side.CODEC, ("F-REC-10",), "",
        "the length of a text is written in characters and not in bytes",
        (Replacement("codec/writing.py", "text", "int16(len(data)) + data", "int16(len(value)) + data"),),
    ),
    Mutant(
        "compact-length-in-characters", Side.CODEC, ("F-REC-10",), "",
        "the length of a compact text is written in characters and not in bytes",
        (
            Replacement(
                "codec/writing.py", "compact_text",
                "varint(len(data) + 1) + data", "varint(len(value) + 1) + data",
            ),
        ),
    ),
    Mutant(
        "expiry-before-1970", Side.RECORDS, ("F-REC-20",), "",
        "an expiry below zero counts as none where many offsets are written together",
        (
            Replacement(
                "codec/bulk.py", "written",
                "or value.expire_timestamp != -1", "or value.expire_timestamp > -1",
            ),
        ),
    ),
    Mutant(
        "expiry-of-minus-one", Side.RECORDS, ("F-REC-20",), "",
        "an expiry that comes out as exactly -1 counts as none when its record is written",
        (
            Replacement(
                "codec/offsets.py", "written_version",
                "value.expire_timestamp != _NONE or value.expires_at_minus_one", "value.expire_timestamp != _NONE",
            ),
        ),
    ),
    Mutant(
        "leader-epoch-beside-an-expiry", Side.RECORDS, ("F-REC-20", "F-REC-11"), "",
        "a commit with an expiry is written in the version that has leader epochs, and its expiry is lost",
        (
            Replacement(
                "codec/offsets.py", "written_version",
                "_EXPIRING if has_expiry else layout",
                "_EXPIRING if has_expiry and value.leader_epoch < 0 else layout",
            ),
        ),
    ),
)  # fmt: skip
