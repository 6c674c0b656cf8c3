"""The log that a coordinator writes and is loaded from, as immutable data: appends, replication, compaction, and the
point where two copies diverge.

``partition`` has one copy on one broker, ``compaction`` the records that can be deleted. A store holds such a log
(``fencepost.store``). Nothing here waits, reads a clock or uses a disk.
"""

from .compaction import Entry, Outlived, compact, due, left, outlived, worth
from .partition import (
    Batch,
    BehindLog,
    Epoch,
    FencedEpoch,
    PartitionLog,
    StoredRecord,
    append,
    catch_up,
    high_watermark,
    lead,
    of_records,
    parting,
    read,
    replicated,
    truncate,
)

__all__ = [
    "Batch",
    "BehindLog",
    "Entry",
    "Epoch",
    "FencedEpoch",
    "Outlived",
    "PartitionLog",
    "StoredRecord",
    "append",
    "catch_up",
    "compact",
    "due",
    "high_watermark",
    "lead",
    "left",
    "of_records",
    "outlived",
    "parting",
    "read",
    "replicated",
    "truncate",
    "worth",
]
