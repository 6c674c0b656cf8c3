"""Faults that single cases do not show: only one of several elements, pages or chunks is handled."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

CLASSIC, CONSUMER, OFFSETS = (f"coordinator/{package}" for package in ("classic", "consumer", "offsets"))

FAULTS = (
    Mutant(
        "last-group-decides-whether-to-wait", Side.OFFSET_EDGES, ("O-FETCH-08",), "",
        "a stable read of several groups does not wait if the last group needs no wait",
        (
            Replacement(
                f"{OFFSETS}/fetch.py", "fetch",
                "if any(each.waits for each in read):", "if read and read[-1].waits:",
            ),
        ),
    ),
    Mutant(
        "first-deleted-topic-alone", Side.OFFSET_EDGES, ("O-EXP-23",), "",
        "if several topics are deleted together, only one loses its offsets",
        (
            Replacement(
                f"{OFFSETS}/deletion.py", "topics_deleted",
                "of_deleted(step, offsets, deleted)", "of_deleted(step, offsets, deleted[:1])",
            ),
        ),
    ),
    Mutant(
        "first-producer-alone-dropped", Side.OFFSET_EDGES, ("O-TXN-10",), "",
        "a deleted offset stays pending in the transactions of all producers but one",
        (
            Replacement(
                "coordinator/kernel/stored_offsets.py", "_GroupDraft.drop_pending",
                "    gone.append(producer)", "    gone.append(producer)\nbreak",
            ),
        ),
    ),
    Mutant(
        "first-partition-alone-committed", Side.OFFSET_EDGES, ("O-TXN-08",), "",
        "of several partitions of a group in one transaction only the first is committed",
        (
            Replacement(
                "coordinator/kernel/stored_offsets.py", "OffsetDraft.end",
                "for partition, offset in group.end(producer).items():",
                "for partition, offset in list(group.end(producer).items())[:1]:",
            ),
        ),
    ),
    Mutant(
        "end-of-the-leader-is-forgotten", Side.LOG, ("F-SURV-01",), "",
        "a complete copy ends at its last batch, although compaction has emptied the leader's end",
        (
            Replacement(
                "log/partition.py", "catch_up",
                "end = leader.end if len(fetched) == len(lacking) else fetched[-1].end if fetched else mine.end",
                "end = fetched[-1].end if fetched else mine.end",
            ),
        ),
    ),
    Mutant(
        "one-page-is-compacted", Side.STORE, ("F-REPLAY-18",), "",
        "a compaction reads only the first page of batches",
        (
            Replacement(
                "store/sql.py", "SqlStore.compact",
                "while True:", "while not seen:",
            ),
        ),
    ),
    Mutant(
        "one-chunk-is-deleted", Side.STORE, ("F-REPLAY-18",), "",
        "a compaction deletes only the first chunk of records",
        (
            Replacement(
                "store/sql.py", "SqlStore.compact",
                "for begin in range(0, len(places), CHUNK):", "for begin in range(0, len(places), CHUNK)[:1]:",
            ),
        ),
    ),
    Mutant(
        "only-first-queued-append-fails", Side.STORE, ("F-RT-05",), "",
        "after a failed append, one that was queued behind it is still written",
        (
            Replacement(
                "store/worker.py", "JobRunner._run",
                "if self._dead.get(job.line, -1) >= job.term:", "if self._dead.get(job.line, -1) > job.term:",
            ),
        ),
    ),
)  # fmt: skip
