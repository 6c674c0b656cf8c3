"""The producers that committed offsets in transactions, by partition of the offsets topic.

A partition knows the last epoch of each of its producers, and whether a transaction of the producer is open in it. So
it decides some TxnOffsetCommit requests before the transaction coordinator is asked, as a partition with data does:

1. It rejects an epoch below the last one, even if the transactional id belongs to another producer.
2. If the producer has an open transaction in the partition, the transaction coordinator is not asked again, so the
   transactional id does not count.

This state is in memory. After a restart, only the transaction coordinator decides, until the producer commits again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode as Code

from fencepost_server.data.producers import MOST, Refused


@dataclass(slots=True)
class OffsetProducers:
    """The last epochs and open transactions. A key is a partition of the offsets topic and a producer id."""

    _epochs: dict[tuple[int, int], int] = field(default_factory=dict)
    _open: set[tuple[int, int]] = field(default_factory=set)

    def ongoing(self, partition: int, producer_id: int, epoch: int) -> bool:
        """Return whether the producer has an open transaction of this epoch in the partition. Raises ``Refused`` if the
        producer wrote there in a later epoch."""
        key = (partition, producer_id)
        last = self._epochs.get(key)
        if last is not None and epoch < last:
            raise Refused(Code.invalid_producer_epoch, f"producer epoch must be >= {last} (got {epoch})")
        return last == epoch and key in self._open

    def committed(self, partition: int, producer_id: int, epoch: int) -> None:
        """Note that offsets of a transaction were appended to the partition."""
        self._wrote((partition, producer_id), epoch)
        self._open.add((partition, producer_id))

    def ended(self, partition: int, producer_id: int, epoch: int) -> None:
        """Note that the marker of a transaction was appended to the partition."""
        self._wrote((partition, producer_id), epoch)
        self._open.discard((partition, producer_id))

    def _wrote(self, key: tuple[int, int], epoch: int) -> None:
        self._epochs[key] = max(epoch, self._epochs.pop(key, epoch))
        if len(self._epochs) > MOST:
            oldest = next(iter(self._epochs))
            del self._epochs[oldest]
            self._open.discard(oldest)
