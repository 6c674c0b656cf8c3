"""Faults of the host of many coordinators, and of its log."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

C = Side.CLUSTER
BROKER, PARTS, LOOKUP = (f"host/{name}.py" for name in ("broker", "parts", "lookup"))
PARTITION, COMPACTION = (f"log/{name}.py" for name in ("partition", "compaction"))

HOST = (
    Mutant(
        "rows-by-partition",
        C,
        ("F-FIND-05",),
        "",
        "an answer for many groups has its rows in the order of the partitions",
        (Replacement(PARTS, "_in_order", "tuple(rows[at] for at in order)", "tuple(rows)"),),
    ),
    Mutant(
        "first-partition-answers-for-all",
        C,
        ("F-FIND-05",),
        "",
        "a request for groups of several partitions is answered when one of them has answered",
        (Replacement(BROKER, "step", "if missing:", "if False:"),),
    ),
    Mutant(
        "neighbour-coordinates",
        C,
        ("F-LOC-01", "F-FIND-04"),
        "",
        "FindCoordinator names the leader of the next partition",
        (
            Replacement(
                LOOKUP,
                "_row",
                "leaders.get(partition_for(group_id, partitions))",
                "leaders.get((partition_for(group_id, partitions) + 1) % partitions)",
            ),
        ),
    ),
    Mutant(
        "topic-change-reaches-one-partition",
        C,
        ("M-META-03",),
        "",
        "a change of the topics reaches only the coordinator of the first partition",
        (
            Replacement(
                BROKER,
                "step",
                "[(place, event) for place in range(len(coordinators))]",
                "[(0, event)]",
            ),
        ),
    ),
)

LOG = (
    Mutant(
        "leader-counts-for-all",
        C,
        ("F-RT-04", "F-SURV-01"),
        "",
        "records that only the leader has count as replicated",
        (Replacement(PARTITION, "high_watermark", "min((log.end, *in_sync))", "log.end"),),
    ),
    Mutant(
        "fastest-follower-counts",
        C,
        ("F-RT-04", "F-SURV-01"),
        "",
        "records that a single follower has count as replicated",
        (
            Replacement(
                PARTITION,
                "high_watermark",
                "min((log.end, *in_sync))",
                "min(log.end, max((*in_sync, 0)))",
            ),
        ),
    ),
    Mutant(
        "copy-is-not-cut-off",
        C,
        ("F-SURV-01",),
        "",
        "a follower keeps records that its leader does not have",
        (Replacement(PARTITION, "catch_up", "mine = truncate(log, parting(log, leader))", "mine = log"),),
    ),
    Mutant(
        "cut-at-own-high-watermark",
        C,
        ("F-SURV-01",),
        "KIP-101",
        "a follower truncates its copy at the high watermark that it knows, which may be old",
        (Replacement(PARTITION, "catch_up", "truncate(log, parting(log, leader))", "truncate(log, log.committed)"),),
    ),
    Mutant(
        "high-watermark-beyond-the-copy",
        C,
        ("F-SURV-01",),
        "",
        "a follower uses its leader's high watermark before it has the records",
        (
            Replacement(
                PARTITION,
                "catch_up",
                "max(mine.committed, min(leader.committed, end))",
                "max(mine.committed, leader.committed)",
            ),
        ),
    ),
)

COMPACTED = (
    Mutant(
        "open-transactions-are-compacted",
        C,
        ("F-REPLAY-05", "O-TXN-08"),
        "",
        "a record is removed because of a later one in an open transaction",
        (
            Replacement(
                COMPACTION,
                "outlived",
                "min((places[0] for places in opened.values()), default=len(records))",
                "len(records)",
            ),
        ),
    ),
    Mutant(
        "aborted-records-supersede",
        C,
        ("F-REPLAY-05", "O-TXN-08"),
        "",
        "a record is removed because of a later one that was aborted",
        (Replacement(COMPACTION, "outlived", "if place in aborted or place in marked:", "if place in marked:"),),
    ),
    Mutant(
        "marks-go-before-their-records",
        C,
        ("F-REPLAY-05",),
        "",
        "the end of a transaction is removed although records of the transaction remain",
        (Replacement(COMPACTION, "outlived", "and superseded.issuperset(of)", ""),),
    ),
)

FAULTS = (*HOST, *LOG, *COMPACTED)
