"""The rules of offsets that a profile can change; see ``differences``.

The rules import this type, so it has no functions; ``switches`` has them, and the table of the releases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic

from ..differences import function, rule
from .state import Place, Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsVariant:
    """Values are as intended by default; ``switches.INTENDED`` adds the functions."""

    group_needs_record: bool = rule(
        True,
        "O-COMMIT-39",
        "O-COMMIT-20",
        "O-COMMIT-43",
        says="a commit without an accepted partition creates no group",
    )
    group_waits_for_records: bool = rule(
        True,
        "F-REPLAY-04",
        "F-REPLAY-06",
        says="offsets in the log create a group only if the whole log has no record of one",
    )
    stores_topic_ids: bool = rule(True, "O-COMMIT-14", "V-02", says="an offset is stored with its topic's id")
    transactions_store_topic_ids: bool = rule(
        True, "O-TXN-12", "V-129", says="an offset of a transaction is stored with its topic's id"
    )
    expiring_offset_has_topic_id: bool = rule(
        False, "O-COMMIT-14", "F-REC-20", says="an offset with an expiry time has no topic id, as in its record"
    )
    fetch_without_member: ErrorCode = rule(
        ErrorCode.UNKNOWN_MEMBER_ID, "O-FETCH-05", says="the error for a fetch with an epoch and without a member id"
    )
    belongs_to_topic: Callable[[Topic, Place, Stored], bool] = function(
        "O-EXP-23", "V-57", says="a deleted topic takes the offsets with its id, or without one"
    )
