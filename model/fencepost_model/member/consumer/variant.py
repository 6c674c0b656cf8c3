"""The rules of a KIP-848 member that a profile can change; see ``differences``.

The rules import this type, so it has no functions; ``switches`` has them, and the table of the releases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from fencepost.protocol.errors import ErrorCode

from ...differences import function, rule
from ..inputs import Partition

#: ``draft.ClientDraft`` holds these rules, so this module stands below its own.
ClientDraft: TypeAlias = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientVariant:
    """Values are as intended by default; ``switches.INTENDED`` adds the functions."""

    # heartbeats
    joining_waits_for_backoff: bool = rule(
        True, "N-HB-07", "N-ERR-03", says="a joining member that is rejected waits for the back-off"
    )
    sends_rack: bool = rule(True, "N-HB-02", "V-90", says="a joining member sends its rack")
    reports_pending_partitions: bool = rule(
        True,
        "N-HB-05",
        "INV-KIP-09",
        says="a heartbeat includes partitions given to the application since the last reconciliation",
    )
    late_answers_count: bool = rule(False, "N-HB-11", says="a late heartbeat answer has no effect on a later request")
    adopts_negative_epoch: bool = rule(False, "N-HB-10", "V-91", says="a negative epoch in an answer is ignored")

    # leaving
    counts_after_leave: Callable[[ClientDraft, ErrorCode], bool] = function(
        "N-TR-08", says="the answer to a leave only ends it"
    )
    unknown_group_counts: bool = rule(False, "N-ERR-05", "V-94", says="a leave from an unknown group succeeds")
    has_close_options: bool = rule(True, "N-CLOSE-01", "V-21", "V-80", says="close has options")
    remaining_member_is_silent: bool = rule(
        True, "N-HB-09", says="a dynamic member that should remain in its group sends no leave"
    )
    remaining_static_is_silent: bool = rule(
        False, "N-HB-09", "V-92", says="a static member that should remain in its group sends a leave with epoch -2"
    )
    given_up_at_close: Callable[[ClientDraft], tuple[frozenset[Partition], bool]] = function(
        "N-CLOSE-01", "INV-CL-01", says="a close gives up each partition once"
    )
    fenced_member_stops_fetching: bool = rule(
        True, "N-TR-06", "V-98", says="a member that was fenced fetches nothing more"
    )
    drop_callbacks: Callable[[ClientDraft], None] = function(
        "N-TR-06",
        "N-TR-07",
        "N-TR-09",
        "INV-CL-01",
        says="a member that gives up its partitions runs no queued callback of a reconciliation",
    )
    aborted_calls_nothing: bool = rule(
        True, "N-REC-05", "INV-CL-01", says="an aborted reconciliation assigns no partitions"
    )

    # reconciliation
    background_revokes: bool = rule(
        False, "N-REC-01", "V-95", says="between polls the background begins no reconciliation that revokes"
    )
    poll_replaces_assignment: bool = rule(
        True, "N-REC-07", "V-97", says="the assignment is replaced within a poll, and not by a leaving member"
    )
    revocation_mark_ends: bool = rule(
        True, "N-REC-11", says="a partition that is given back before its revocation is fetched again"
    )
    acknowledges_part_once: bool = rule(
        True, "N-REC-03", says="while a topic cannot be resolved, the rest is acknowledged once"
    )
    repairs_failed_assignment: bool = rule(
        True, "N-REC-03", "N-REC-09", says="partitions whose callback threw are reconciled again when withdrawn"
    )
