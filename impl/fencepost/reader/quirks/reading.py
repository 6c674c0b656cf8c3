"""What older consumers of Kafka do otherwise when they look for positions and records."""

from __future__ import annotations

from fencepost.hash_order import in_table, made_for, of_partition
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import quirk

from .. import background, committed, handing, lag, positions, state, subscribing
from ..events import Problem, ProblemKind
from ..settings import Client
from ..state import Lookup, LookupKey, Reader
from ..turn import Turn


@quirk("old_dropped_topic_is_read", of=state.is_subscribed)
def whatever_is_owned(reader: Reader, topic: str) -> bool:
    """In 4.0 a topic that is not subscribed to any more is read until it is taken away (V-81)."""
    return True


@quirk("old_revoked_is_initialised", of=state.not_initialised)
def none(reader: Reader) -> frozenset[TopicPartition]:
    """Up to 4.1 a committed offset is looked up for a partition that is about to be revoked (V-82)."""
    return frozenset()


@quirk("fault_unknown_error_loses_records", of=handing.waits)
def at_once(turn: Turn, problem: Problem) -> bool:
    """A code that no fetch knows is thrown by the poll that has read what came before it: positions have moved, and
    nobody gets the records (K-FETCH-04)."""
    return problem.kind is not ProblemKind.ILLEGAL_STATE


@quirk("old_unknown_topic_fails_lookup", of=committed.unknown_passes)
def is_fatal(turn: Turn) -> bool:
    """Up to 4.1 an unknown topic or id ends a look-up of committed offsets (V-100)."""
    return False


@quirk("fault_gone_partition_voids_answer", of=positions.asked_again)
def until_one_is_gone(turn: Turn, partitions: list[TopicPartition], asked: int) -> bool:
    """One that is to be asked about again and is not assigned any more breaks the answer off: no partition of it is
    checked, and those that a hash table has behind it are not asked about before the request's time is over
    (K-POS-07)."""
    for each in in_table(partitions, lambda at: of_partition(at.topic, at.partition), made_for(asked)):
        if each not in turn.reader.partitions:
            return False
        positions.put_off(turn, [each], turn.reader.settings.retry_backoff_ms)
    if partitions:
        turn.want_metadata()
    return True


@quirk("fault_old_look_up_serves", of=committed.forgets)
def while_it_is_for_the_same(turn: Turn) -> bool:
    """What was asked outside of a stable generation and not taken answers the next question about the same partitions
    outside of one, however long after; what the new consumer has asked is taken for a partition that was taken away and
    has come back (K-POS-08)."""
    return turn.client is Client.KAFKA_PYTHON


@quirk("old_lag_waits_for_ever", of=lag.ends_with_failure)
def never(turn: Turn) -> bool:
    """Up to 4.3 the new consumer asks for the log's end once, and after new metadata again if the leader said no or was
    not known; if the question was lost it never asks again (V-134, K-POS-09)."""
    return turn.client is not Client.CONSUMER


@quirk("fault_poll_skips_the_check", of=background.checks_again)
def with_the_next_poll(turn: Turn) -> bool:
    """The new consumer's poll that comes while records of the last one are in the queue leaves no event: nothing is
    committed, and no position held against newer metadata, before they are handed out (K-POS-07, N-POLL-01)."""
    return False


@quirk("fault_taken_partition_stays_queued", of=subscribing.drops_at_once)
def when_its_turn_comes(turn: Turn) -> bool:
    """What the new consumer in a group has fetched of a partition that is taken away stays in its queue, and is handed
    out if the partition comes back and is read from there (K-FETCH-01)."""
    return turn.client is not Client.CONSUMER or not turn.reader.mode.automatic


@quirk("fault_search_fails_twice", of=background.tells_again)
def once_more(turn: Turn) -> bool:
    """What a search for positions has met is thrown by the poll that began it and, since its time is over, by the next
    one too (N-POLL-03)."""
    return True


@quirk("old_shared_look_up_is_lost", of=committed.pass_on)
def alone(turn: Turn, key: LookupKey, lookup: Lookup, sharing: list[LookupKey]) -> None:
    """Up to 4.3, when a look-up that others wait for too fails for now, only who began it asks again; the others are
    forgotten, and wait until their time is over (V-135, N-CMT-04)."""
    del key, lookup
    committed.forsake(turn, sharing)
