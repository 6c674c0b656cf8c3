"""What a partition knows of its producers: which batches it has already, and which epochs are over."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from kio.schema.errors import ErrorCode as Code

from .batches import NO_PRODUCER, Batch

#: as many batches of a producer are known again as it may have under way
_KEPT: Final = 5
#: as many producers are known of a partition; those that were silent longest are forgotten, as Kafka does after a day
MOST: Final = 10_000


class Refused(Exception):
    """What was asked for is not done; ``code`` tells the client why. ``start``: where the log begins that a batch was
    for, if it came so far."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.start: int | None = None


@dataclass(slots=True)
class Written:
    """Sequences and place of a batch that is in the log."""

    first: int
    last: int
    base: int
    max_timestamp: int


@dataclass(slots=True)
class ProducerState:
    """``epoch`` is the highest that was seen; ``written`` the last batches of it. ``lost``: only a marker is left of
    what the producer wrote, so it may continue with any sequence."""

    epoch: int
    written: deque[Written] = field(default_factory=lambda: deque(maxlen=_KEPT))
    lost: bool = False


class Producers:
    """The producers of one partition, by id."""

    def __init__(self) -> None:
        self._known: dict[int, ProducerState] = {}

    def copy(self) -> Producers:
        """The same, of its own."""
        made = Producers()
        made._known = {
            each: ProducerState(state.epoch, deque(state.written, maxlen=_KEPT), state.lost)
            for each, state in self._known.items()
        }
        return made

    def again(self, batch: Batch, *, from_zero: bool = False) -> Written | None:
        """The batch as it is in the log already; None if it is new. ``from_zero``: a producer of which nothing is known
        begins with sequence 0. Raises ``Refused`` for a gap in the sequence, and for a producer of an epoch that is
        over."""
        if batch.producer_id == NO_PRODUCER:
            return None
        known = self._known.get(batch.producer_id)
        if known is None:
            if from_zero and batch.base_sequence != 0:
                raise Refused(Code.out_of_order_sequence_number, f"producer begins with {batch.base_sequence}, not 0")
            return None
        self.check_epoch(batch)
        if known.epoch < 0:  # a producer without an epoch is one of which nothing is known
            return None
        if batch.producer_epoch > known.epoch or not known.written:
            if batch.base_sequence != 0 and not known.lost:
                raise Refused(Code.out_of_order_sequence_number, f"epoch begins with {batch.base_sequence}, not 0")
            return None
        for each in known.written:
            if (each.first, each.last) == (batch.base_sequence, batch.last_sequence):
                return each
        last = known.written[-1].last
        if batch.base_sequence != (last + 1) & 0x7FFFFFFF:
            raise Refused(Code.out_of_order_sequence_number, f"sequence {batch.base_sequence} after {last}")
        return None

    def check_epoch(self, batch: Batch) -> None:
        """Raise ``Refused`` if the producer has written in a later epoch."""
        known = self._known.get(batch.producer_id)
        if known is not None and batch.producer_epoch < known.epoch:
            raise Refused(
                Code.invalid_producer_epoch, f"epoch {batch.producer_epoch} of the producer is over: {known.epoch}"
            )

    def wrote(self, batch: Batch, *, restored: bool) -> None:
        """The batch is in the log, at its place. ``restored``: as a restart has found it."""
        if batch.producer_id == NO_PRODUCER:
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
