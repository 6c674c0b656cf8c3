"""Small choices of a consumer that reads and commits, as values that it reads.

The default of a field is the intended rule. ``fencepost_consumer.quirks.values`` has the values of Kafka's consumers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fencepost.protocol.profile import Profile
from fencepost.quirks import values_of


@dataclass(frozen=True, slots=True)
class ReaderRules:
    """The rules of a profile for consumers; get them with ``reader_rules_of``."""

    # Commits
    offsets_by_topic_id: bool = True  #: offset requests of consumer groups name topics by id (N-CMT-01, G-WIRE-30)
    unknown_topic_id_is_retried: bool = True  #: by a synchronous commit, like an unknown name (N-CMT-06)
    close_gives_up_unsent: bool = True  #: a close fails commits that wait for an unknown coordinator (N-CLOSE-01)

    # Positions
    unknown_topics_are_retried: bool = True  #: a look-up of the new consumer retries an unknown topic (N-CMT-04)
    old_look_ups_dropped: bool = True  #: a look-up ends when one of its partitions is taken away (K-POS-08)
    revoked_not_initialised: bool = True  #: no offset is looked up for a partition to be revoked (K-SUB-10)
    failed_lag_ends: bool = True  #: after a failed request for the log's end, the next call asks again (K-POS-09)
    searches_throw_once: bool = True  #: a problem that was thrown is not kept for the next search (N-POLL-03)

    # Records
    dropped_topics_not_read: bool = True  #: a topic is not read after it is no longer subscribed (K-SUB-03)
    records_before_problem: bool = True  #: a poll returns its records, the next one throws (K-FETCH-04)
    every_poll_checks: bool = True  #: a poll passes an event to the background even if records are queued (N-POLL-01)
    taken_records_dropped: bool = True  #: records of a partition are dropped when it is taken away (K-FETCH-01)


@lru_cache(maxsize=256)
def reader_rules_of(profile: Profile) -> ReaderRules:
    """Return the rules of this profile."""
    values: dict[str, Any] = values_of(ReaderRules, profile)
    return ReaderRules(**values)
