"""The producers of a partition: their epochs, and their last batches, by which duplicates are found.

An idempotent producer numbers the records that it sends to a partition: 0, 1, 2 and so on, within one epoch of its
producer id. A batch has the number of its first and its last record. From this the partition decides about a batch:

- It has the numbers of one of the last five batches of the producer: the producer has sent it again, because it got no
  answer. The partition answers with the offset of the first copy and appends nothing. Five is the number of batches
  that a producer may have in flight, so a batch that is repeated is always among them.
- Its first number follows the last one in the log: the partition appends it. After 2,147,483,647 comes 0.
- It begins a new, higher epoch: its first number must be 0.
- Its epoch is lower than the highest one seen: another producer has replaced this one, which is fenced.
- Anything else is a gap: an earlier batch is missing, and the producer must send that first.

An unknown producer may begin with any number, because the partition may have forgotten it. A transactional producer may
not, if the transaction coordinator was asked about it first: ``LookedUp`` is the result of that question, and keeps a
batch that overtakes a rejected one out of the log.

Each partition has this state twice (``known``, ``partition``): with all batches in memory, by which the next batch is
checked, and with the durable ones only, to which the partition returns if a write fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field
from typing import Final, TypeAlias

from kio.schema.errors import ErrorCode as Code

from fencepost_server.data.batches import NO_PRODUCER, Batch

#: batches remembered of a producer: as many as it may have in flight
_KEPT: Final = 5
_NO_EPOCH: Final = -1
#: producers remembered of a partition; the one that has been idle longest is forgotten first (Kafka: after a day)
MOST: Final = 10_000


#: A producer as JSON has it: its id, its epoch, and the fields of its last batches.
ProducerRow: TypeAlias = tuple[int, int, Sequence[tuple[int, int, int, int]]]


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
    """A producer. ``epoch`` is its highest epoch, ``written`` its last batches in that epoch."""

    epoch: int
    written: deque[Written] = field(default_factory=lambda: deque(maxlen=_KEPT))


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The lowest sequence number, in one epoch, of a producer's batches that the transaction coordinator was asked
    about. ``bumps``: the end of the transaction bumps the epoch (KIP-890). So a producer without batches must begin
    with sequence number 0, and a marker of this epoch belongs to an earlier transaction."""

    epoch: int
    lowest: int
    bumps: bool


class Producers:
    """The producers of one partition, by id."""

    def __init__(self) -> None:
        self._known: dict[int, ProducerState] = {}

    def copy(self) -> Producers:
        """Return an independent copy."""
        made = Producers()
        made._known = {
            each: ProducerState(state.epoch, deque(state.written, maxlen=_KEPT)) for each, state in self._known.items()
        }
        return made

    def as_rows(self) -> list[ProducerRow]:
        """Return the producers as values for JSON."""
        return [(each, state.epoch, [astuple(one) for one in state.written]) for each, state in self._known.items()]

    @classmethod
    def of_rows(cls, rows: Iterable[ProducerRow]) -> Producers:
        """Return the producers of stored values."""
        made = cls()
        for each, epoch, written in rows:
            made._known[int(each)] = ProducerState(int(epoch), deque((Written(*one) for one in written), maxlen=_KEPT))
        return made

    def epoch(self, producer_id: int) -> int:
        """Return the highest epoch of a producer; -1, as in Kafka, if it has written nothing."""
        known = self._known.get(producer_id)
        return _NO_EPOCH if known is None else known.epoch

    def again(self, batch: Batch, looked_up: LookedUp | None = None) -> Written | None:
        """Return the earlier copy of a duplicate batch; None if the batch is new. ``looked_up``: what the transaction
        coordinator was asked about the producer. Raises ``Refused`` for a gap in the sequence numbers and for an old
        producer epoch."""
        if batch.producer_id <= NO_PRODUCER:  # as in Kafka, any negative id means that there is no producer
            return None
        known = self._known.get(batch.producer_id)
        if known is not None and known.epoch == batch.producer_epoch:
            for each in known.written:
                if (each.first, each.last) == (batch.base_sequence, batch.last_sequence):
                    return each
        self.check_epoch(batch)
        self._check_sequence(batch, known, looked_up)
        return None

    @staticmethod
    def _check_sequence(batch: Batch, known: ProducerState | None, looked_up: LookedUp | None) -> None:
        """Raise ``Refused`` for a gap in the sequence numbers."""
        first = batch.base_sequence
        if looked_up is not None:
            if looked_up.bumps and first != 0 and (known is None or not known.written):
                raise _out_of_order(f"a new producer must begin with sequence number 0 (got {first})")
            if first > looked_up.lowest:
                raise _out_of_order(f"sequence number {first} follows the rejected {looked_up.lowest}")
        if known is None or known.epoch < 0:  # a producer without an epoch counts as unknown
            return
        if batch.producer_epoch > known.epoch or not known.written:
            if first != 0:
                raise _out_of_order(f"a new producer epoch must begin with sequence number 0 (got {first})")
            return
        last = known.written[-1].last
        if first != (last + 1) & 0x7FFFFFFF:
            raise _out_of_order(f"sequence number {first} does not follow {last}")

    def check_epoch(self, batch: Batch) -> None:
        """Raise ``Refused`` if the producer has written in a later epoch."""
        epoch = self.epoch(batch.producer_id)
        if batch.producer_epoch < epoch:
            raise Refused(
                Code.invalid_producer_epoch, f"producer epoch must be >= {epoch} (got {batch.producer_epoch})"
            )

    def wrote(self, batch: Batch) -> None:
        """Note a batch that is in the log."""
        if batch.producer_id <= NO_PRODUCER:  # as in Kafka, any negative id means that there is no producer
            return
        known = self._known.get(batch.producer_id)
        if known is None or batch.producer_epoch > known.epoch:
            known = ProducerState(batch.producer_epoch)
        self._known.pop(batch.producer_id, None)
        self._known[batch.producer_id] = known
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        if not batch.control:
            known.written.append(Written(batch.base_sequence, batch.last_sequence, batch.base, batch.max_timestamp))


def _out_of_order(words: str) -> Refused:
    return Refused(Code.out_of_order_sequence_number, words)
