"""Faults in compound conditions: one half of the condition is dropped."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

CLASSIC, CONSUMER, OFFSETS = (f"coordinator/{package}" for package in ("classic", "consumer", "offsets"))

FAULTS = (
    Mutant(
        "epochless-commit-to-members", Side.OFFSET_EDGES, ("O-COMMIT-29", "O-COMMIT-30"), "",
        "a commit without an epoch is accepted for a consumer group that has members",
        (
            Replacement(
                f"{OFFSETS}/validation.py", "_member_may_commit",
                "if who.epoch < 0 and not group.members:", "if who.epoch < 0:",
            ),
        ),
    ),
    Mutant(
        "pending-offset-not-deleted", Side.OFFSET_EDGES, ("O-DEL-05", "O-TXN-10"), "",
        "OffsetDelete ignores a partition that has only a pending offset",
        (
            Replacement(
                f"{OFFSETS}/deletion.py", "delete",
                "if each in offsets.committed or each in offsets.unstable", "if each in offsets.committed",
            ),
        ),
    ),
    Mutant(
        "topic-of-no-id-stays", Side.OFFSET_EDGES, ("O-EXP-23",), "",
        "an offset that was stored without a topic id outlives its topic",
        (
            Replacement(
                f"{OFFSETS}/deletion.py", "of_deleted",
                "{(topic.name, topic.topic_id) for topic in deleted} | {(topic.name, ZERO_ID) for topic in deleted}",
                "{(topic.name, topic.topic_id) for topic in deleted}",
            ),
        ),
    ),
    Mutant(
        "tombstone-retention-restarts", Side.LOG, ("F-REPLAY-18",), "",
        "each compaction gives a tombstone another retention time",
        (
            Replacement(
                "log/compaction.py", "compact",
                "if batch.horizon_ms is None and any(", "if any(",
            ),
        ),
    ),
)  # fmt: skip
