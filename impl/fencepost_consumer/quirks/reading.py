"""Differences of Kafka's consumers from the intended protocol when they look up positions and read records."""

from __future__ import annotations

from fencepost.hash_order import in_table, made_for, of_partition
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import Next, quirk
from fencepost_consumer import background, committed, handing, lag, positions, state, subscribing
from fencepost_consumer.events import Problem, ProblemKind
from fencepost_consumer.state import Lookup, LookupKey, Reader
from fencepost_consumer.turn import Turn


@quirk("old_dropped_topic_is_read", of=state.is_subscribed)
def whatever_is_owned(_: Next[bool], reader: Reader, topic: str) -> bool:
    """In 4.0, read a topic that is no longer subscribed until it is taken away (V-81)."""
    return True


@quirk("old_revoked_is_initialised", of=state.not_initialised)
def none(_: Next[frozenset[TopicPartition]], reader: Reader) -> frozenset[TopicPartition]:
    """Up to 4.1, look up the committed offset of a partition that is about to be revoked (V-82)."""
    return frozenset()


@quirk("fault_unknown_error_loses_records", of=handing.waits)
def at_once(_: Next[bool], turn: Turn, problem: Problem) -> bool:
    """Throw an error code that is undefined for fetches in the poll that has already read the records before it. The
    positions have moved, and the application never gets those records (K-FETCH-04)."""
    return problem.kind is not ProblemKind.ILLEGAL_STATE


@quirk("old_unknown_topic_fails_lookup", of=committed.unknown_passes)
def is_fatal(_: Next[bool], turn: Turn) -> bool:
    """Up to 4.1, an unknown topic name or id ends a look-up of committed offsets (V-100)."""
    return False


@quirk("fault_gone_partition_voids_answer", of=positions.asked_again)
def until_one_is_gone(_: Next[bool], turn: Turn, partitions: list[TopicPartition], asked: int) -> bool:
    """Stop at the first partition to ask about again that is no longer assigned. Then no partition of the response is
    validated, and those after it in the order of a hash table are not asked about again before the request timeout
    (K-POS-07)."""
    for each in in_table(partitions, lambda at: of_partition(at.topic, at.partition), made_for(asked)):
        if each not in turn.reader.partitions:
            return False
        positions.put_off(turn, [each], turn.reader.settings.retry_backoff_ms)
    if partitions:
        turn.want_metadata()
    return True


@quirk("fault_old_look_up_serves", of=committed.forgets)
def while_it_is_for_the_same(_: Next[bool], turn: Turn) -> bool:
    """Reuse an old look-up. The classic consumer's, sent outside a stable generation and not taken, answers the next
    question for the same partitions outside a stable generation, however much later. The new consumer's is used for a
    partition that was taken away and assigned again (K-POS-08)."""
    return not turn.java


@quirk("old_lag_waits_for_ever", of=lag.ends_with_failure)
def never(_: Next[bool], turn: Turn) -> bool:
    """Up to 4.3, the new consumer asks for the log's end once. After new metadata it asks again if the leader returned
    an error or was unknown; if the request was lost, it never asks again (V-134, K-POS-09)."""
    return not turn.in_background


@quirk("fault_poll_skips_the_check", of=background.checks_again)
def with_the_next_poll(_: Next[bool], turn: Turn) -> bool:
    """Skip the poll event while records of the last one are queued. The new consumer then neither commits nor compares
    positions with newer metadata before it returns those records (K-POS-07, N-POLL-01)."""
    return False


@quirk("fault_taken_partition_stays_queued", of=subscribing.drops_at_once)
def when_its_turn_comes(_: Next[bool], turn: Turn) -> bool:
    """Keep fetched records of a partition that is taken away. The new consumer in a group returns them if the partition
    is assigned again and read from that position (K-FETCH-01)."""
    return not turn.in_background or not turn.reader.mode.automatic


@quirk("fault_search_fails_twice", of=background.tells_again)
def once_more(_: Next[bool], turn: Turn) -> bool:
    """Throw the failure of a search twice: by the poll that began it and, because its time is over, by the next one
    (N-POLL-03)."""
    return True


@quirk("old_shared_look_up_is_lost", of=committed.pass_on)
def alone(_: Next[None], turn: Turn, key: LookupKey, lookup: Lookup, sharing: list[LookupKey]) -> None:
    """Up to 4.3, after a retriable failure of a shared look-up only the search that began it asks again. The others are
    forgotten, and wait until their time is over (V-135, N-CMT-04)."""
    del key, lookup
    committed.forsake(turn, sharing)
