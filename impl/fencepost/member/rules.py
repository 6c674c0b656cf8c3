"""Small choices of a member, as values that it reads.

The default of a field is the intended rule. ``member.quirks.values`` has the values of Kafka's clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fencepost.protocol.profile import Profile
from fencepost.quirks import values_of


@dataclass(frozen=True, slots=True)
class MemberRules:
    """The rules of a profile for members of both protocols; get them with ``member_rules_of``."""

    # Classic members
    sync_load_is_retried: bool = True  #: a SyncGroup that finds the coordinator loading joins again (K-ERR-02)

    # Responses to KIP-848 members
    leave_errors_ignored: bool = True  #: a member that has left ignores error codes (N-TR-08)
    only_missing_group_ignored: bool = False  #: of these only GROUP_ID_NOT_FOUND, unless it joins again (N-TR-08)
    negative_epochs_ignored: bool = True  #: a negative epoch echoes a leave (N-HB-10)
    lost_partitions_not_fetched: bool = True  #: a member stops fetching before the listener is called (N-TR-06)

    # Sending heartbeats
    joins_back_off: bool = True  #: a join that failed is repeated after a back-off (N-ERR-03)
    static_member_remains_silently: bool = False  #: a static member that closes to remain sends nothing (N-HB-09)
    dynamic_member_remains: bool = True  #: a dynamic member that closes to remain sends nothing (N-HB-09)
    rack_sent: bool = True  #: a member sends its rack when it joins (N-HB-01)

    # Reconciliation
    unchanged_target_compared: bool = True  #: with what the application owns (N-REC-03, N-REC-09)
    acknowledged_once: bool = True  #: the resolved part of a target is acknowledged once (N-REC-03)
    revocation_waits_for_poll: bool = True  #: the application's thread begins a revocation (N-REC-01)
    target_topics_watched: bool = True  #: metadata of the target's topics is requested by id (N-REC-02)
    poll_replaces_assignment: bool = True  #: the application's thread replaces the assignment (N-REC-07)
    queued_callback_withdrawn: bool = True  #: what waits for a poll ends with the membership (N-REC-05, INV-CL-01)
    revocation_marks_cleared: bool = True  #: a partition that is given back is fetched again (N-REC-11)

    # Leaving
    close_options_honoured: bool = True  #: the application decides how the member leaves (K-LEAVE-01)


@lru_cache(maxsize=256)
def member_rules_of(profile: Profile) -> MemberRules:
    """Return the rules of this profile."""
    values: dict[str, Any] = values_of(MemberRules, profile)
    return MemberRules(**values)
