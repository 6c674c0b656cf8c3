"""The log that a coordinator writes and is loaded from, as persistent data: what is appended, what of it is replicated,
what a compaction leaves, and where two copies part.

``partition`` holds one copy on one broker, ``compaction`` what may be left out of it. A store keeps such a log
(``fencepost.store``); nothing here waits, reads a clock or touches a disk.
"""

from .compaction import Entry, Outlived, compact, due, left, outlived, worth
from .partition import (
    Batch,
    BehindLog,
    Epoch,
    FencedEpoch,
    PartitionLog,
    Row,
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
    "Row",
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
