"""Differences of Kafka's consumers from the intended protocol when they look up positions and read records."""

from __future__ import annotations

from fencepost.hash_order import in_table, made_for, of_partition
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import Next, quirk
from fencepost_consumer import committed, positions
from fencepost_consumer.state import Lookup, LookupKey
from fencepost_consumer.turn import Turn


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


@quirk("old_shared_look_up_is_lost", of=committed.pass_on)
def alone(_: Next[None], turn: Turn, key: LookupKey, lookup: Lookup, sharing: list[LookupKey]) -> None:
    """Up to 4.3, after a retriable failure of a shared look-up only the search that began it asks again. The others are
    forgotten, and wait until their time is over (V-135, N-CMT-04)."""
    del key, lookup
    committed.forsake(turn, sharing)
