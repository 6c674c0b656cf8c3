"""The values of Kafka's consumers that differ from the intended rules, by switch."""

from __future__ import annotations

from fencepost.quirks import Value, register_values
from fencepost_consumer.rules import ReaderRules

register_values(
    ReaderRules,
    # Commits
    Value(
        "old_offsets_by_name",
        "offsets_by_topic_id",
        False,
        "Up to 4.1 offset requests contain topic names (V-99).",
    ),
    Value(
        "old_unknown_topic_id_is_final",
        "unknown_topic_id_is_retried",
        False,
        "Up to 4.1 a synchronous commit does not retry UNKNOWN_TOPIC_ID (V-101).",
    ),
    Value(
        "old_close_waits_for_coordinator",
        "close_gives_up_unsent",
        False,
        "Up to 4.1 a close waits until its timeout for commits without a coordinator (V-103).",
    ),
    # Positions
    Value(
        "old_unknown_topic_fails_lookup",
        "unknown_topics_are_retried",
        False,
        "Up to 4.1 an unknown topic name or id ends a look-up of committed offsets (V-100).",
    ),
    Value(
        "fault_old_look_up_serves",
        "old_look_ups_dropped",
        False,
        "An old look-up is used again. The classic consumer's, sent outside a stable generation and not taken, answers "
        "the next question for the same partitions outside a stable generation, however much later. The new "
        "consumer's is used for a partition that was taken away and assigned again (K-POS-08).",
    ),
    Value(
        "old_revoked_is_initialised",
        "revoked_not_initialised",
        False,
        "Up to 4.1 the committed offset of a partition that is about to be revoked is looked up (V-82).",
    ),
    Value(
        "old_lag_waits_for_ever",
        "failed_lag_ends",
        False,
        "Up to 4.3 the new consumer asks for the log's end once. After new metadata it asks again if the leader "
        "returned an error or was unknown; if the request was lost, it never asks again (V-134, K-POS-09).",
    ),
    Value(
        "fault_search_fails_twice",
        "searches_throw_once",
        False,
        "The failure of a search is thrown twice: by the poll that began it and, because its time is over, by the "
        "next one (N-POLL-03).",
    ),
    # Records
    Value(
        "old_dropped_topic_is_read",
        "dropped_topics_not_read",
        False,
        "4.0 reads a topic that is no longer subscribed until it is taken away (V-81).",
    ),
    Value(
        "fault_unknown_error_loses_records",
        "records_before_problem",
        False,
        "An error code that is undefined for fetches is thrown in the poll that has already read the records before "
        "it. The positions have moved, and the application never gets those records (K-FETCH-04).",
    ),
    Value(
        "fault_poll_skips_the_check",
        "every_poll_checks",
        False,
        "A poll skips its event while records of the last one are queued. The new consumer then neither commits nor "
        "compares positions with newer metadata before it returns those records (K-POS-07, N-POLL-01).",
    ),
    Value(
        "fault_taken_partition_stays_queued",
        "taken_records_dropped",
        False,
        "Fetched records of a partition that is taken away are kept. The new consumer in a group returns them if the "
        "partition is assigned again and read from that position (K-FETCH-01).",
    ),
)
