"""The producers of a partition: their epochs, and their last batches, by which duplicates are found."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from kio.schema.errors import ErrorCode as Code

from fencepost_server.data.batches import NO_PRODUCER, Batch

#: batches remembered of a producer: as many as it may have in flight
_KEPT: Final = 5
_NO_EPOCH: Final = -1
#: producers remembered of a partition; the one that has been idle longest is forgotten first (Kafka: after a day)
MOST: Final = 10_000


class Refused(Exception):
    """A request is rejected with an error code. ``start`` is the first offset of the partition, if the rejected request
    got as far as the partition."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.start: int | None = None


@dataclass(slots=True)
class Written:
    """The sequence numbers, base offset and timestamp of a batch in the log."""

    first: int
    last: int
    base: int
    max_timestamp: int


@dataclass(slots=True)
class ProducerState:
    """A producer. ``epoch`` is its highest epoch, ``written`` its last batches in that epoch. ``lost``: only a marker
    is left of its data, so it may continue with any sequence number."""

    epoch: int
    written: deque[Written] = field(default_factory=lambda: deque(maxlen=_KEPT))
    lost: bool = False


class Producers:
    """The producers of one partition, by id."""

    def __init__(self) -> None:
        self._known: dict[int, ProducerState] = {}

    def copy(self) -> Producers:
        """Return an independent copy."""
        made = Producers()
        made._known = {
            each: ProducerState(state.epoch, deque(state.written, maxlen=_KEPT), state.lost)
            for each, state in self._known.items()
        }
        return made

    def again(self, batch: Batch, *, from_zero: bool = False) -> Written | None:
        """Return the earlier copy of a duplicate batch; None if the batch is new. ``from_zero``: an unknown producer
        must begin with sequence number 0. Raises ``Refused`` for a gap in the sequence numbers and for an old producer
        epoch."""
        if batch.producer_id <= NO_PRODUCER:  # as in Kafka, any negative id means that there is no producer
            return None
        known = self._known.get(batch.producer_id)
        self.check_epoch(batch)
        if known is None:
            if from_zero and batch.base_sequence != 0:
                words = f"a new producer must begin with sequence number 0 (got {batch.base_sequence})"
                raise Refused(Code.out_of_order_sequence_number, words)
            return None
        if known.epoch < 0:  # a producer without an epoch counts as unknown
            return None
        if batch.producer_epoch > known.epoch or not known.written:
            if batch.base_sequence != 0 and not known.lost:
                words = f"a new producer epoch must begin with sequence number 0 (got {batch.base_sequence})"
                raise Refused(Code.out_of_order_sequence_number, words)
            return None
        for each in known.written:
            if (each.first, each.last) == (batch.base_sequence, batch.last_sequence):
                return each
        last = known.written[-1].last
        if batch.base_sequence != (last + 1) & 0x7FFFFFFF:
            words = f"sequence number {batch.base_sequence} does not follow {last}"
            raise Refused(Code.out_of_order_sequence_number, words)
        return None

    def check_epoch(self, batch: Batch) -> None:
        """Raise ``Refused`` if the producer has written in a later epoch. A producer that has written nothing has epoch
        -1, as in Kafka."""
        known = self._known.get(batch.producer_id)
        epoch = _NO_EPOCH if known is None else known.epoch
        if batch.producer_epoch < epoch:
            raise Refused(
                Code.invalid_producer_epoch, f"producer epoch must be >= {epoch} (got {batch.producer_epoch})"
            )

    def wrote(self, batch: Batch, *, restored: bool) -> None:
        """Note a batch that is in the log. ``restored``: the batch was read at a start."""
        if batch.producer_id <= NO_PRODUCER:  # as in Kafka, any negative id means that there is no producer
            return
        known = self._known.get(batch.producer_id)
        if known is None or batch.producer_epoch > known.epoch:
            known = ProducerState(batch.producer_epoch, lost=restored and known is None and batch.control)
        self._known.pop(batch.producer_id, None)
        self._known[batch.producer_id] = known
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        if not batch.control:
            known.lost = False
            known.written.append(Written(batch.base_sequence, batch.last_sequence, batch.base, batch.max_timestamp))
