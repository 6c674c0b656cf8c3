"""The order of quirks that change the same function.

Two switches may change one function. ``ORDER`` has each such function, and its switches from the first to the last: the
quirk of a switch is called before those after it, and gets the next one as ``call_next``. For a pair in ``COMMUTING``
both orders do the same. A function with two quirks that is missing here cannot be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ORDER: Final[Mapping[str, tuple[str, ...]]] = {
    # 4.0 knows no topic ids. The ids of transactions came later than those of plain commits (V-02, V-129).
    "coordinator.offsets.commit.id_to_store": (
        "old_no_topic_ids",
        "old_transactions_without_topic_ids",
        "fault_expiring_offset_keeps_topic_id",
    ),
    # A release that compares with the group's epoch does not look at targets, so no member starves (V-61, V-62).
    "coordinator.mixed.classic_member.is_behind": (
        "old_classic_members_follow_group_epoch",
        "fault_classic_members_starve",
    ),
}

#: Pairs of switches whose order makes no difference, on every function that both change.
COMMUTING: Final[frozenset[frozenset[str]]] = frozenset(
    {
        frozenset({"old_no_topic_ids", "old_transactions_without_topic_ids"}),
    }
)
