"""A partition as Kafka describes it: a plain list of batches, searched from the beginning for every question."""

from __future__ import annotations

import gzip
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import crc32c

TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
LAST_SEQUENCE: Final = (1 << 31) - 1


def _varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*made, value))


def produced(
    times: Sequence[int], producer: int, epoch: int, sequence: int, *, transactional: bool, zipped: bool, padding: int
) -> bytes:
    """A batch as a producer sends it, with one record for each time."""
    base, records = times[0], bytearray()
    for at, time in enumerate(times):
        value = bytes(padding)
        body = b"\0" + _varint(time - base) + _varint(at) + _varint(-1) + _varint(len(value)) + value + _varint(0)
        records += _varint(len(body)) + body
    attributes = TRANSACTIONAL * transactional + zipped
    rest = struct.pack(
        ">hiqqqhii", attributes, len(times) - 1, base, max(times), producer, epoch, sequence, len(times)
    ) + (gzip.compress(bytes(records), mtime=0) if zipped else bytes(records))
    return struct.pack(">qiibI", 0, len(rest) + 9, -1, 2, crc32c.crc32c(rest)) + rest


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch in the log. ``committed``: the outcome in a marker. ``times``: the time of each record."""

    data: bytes
    base: int
    last: int
    producer: int
    epoch: int
    sequence: int
    transactional: bool
    committed: bool | None
    times: tuple[int, ...]
    leader_epoch: int


@dataclass(slots=True)
class ProducerEntry:
    """ProducerStateEntry: epoch, its last five batches, and the start of its transaction."""

    epoch: int
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=5))
    began: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Kafka's answer to a batch: the name of an error, or the place of the batch and whether it was appended."""

    error: str = ""
    base: int = -1
    new: bool = False


def _last_sequence(entry: Entry) -> int:
    last = entry.sequence + entry.last - entry.base
    return last if last <= LAST_SEQUENCE else last - LAST_SEQUENCE - 1


@dataclass(slots=True)
class Replayed:
    """The state of ProducerStateManager after some entries."""

    producers: dict[int, ProducerEntry] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)

    def take(self, entry: Entry) -> None:
        if entry.producer < 0:
            return
        state = self.producers.setdefault(entry.producer, ProducerEntry(entry.epoch))
        if entry.epoch > state.epoch:
            state.epoch = entry.epoch
            state.batches.clear()
        if entry.committed is None:
            state.batches.append((entry.sequence, _last_sequence(entry), entry.base))
            if entry.transactional and state.began is None:
                state.began = entry.base
            return
        if state.began is not None and not entry.committed:
            self.aborted.append((entry.producer, state.began, entry.last))
        state.began = None


def replayed(entries: Iterable[Entry]) -> Replayed:
    made = Replayed()
    for entry in entries:
        made.take(entry)
    return made


@dataclass(slots=True)
class Verification:
    """VerificationStateEntry: ``lowest`` sequence number of the ``epoch``. ``bumps``: supportsEpochBump."""

    epoch: int
    lowest: int
    bumps: bool


@dataclass(slots=True)
class Model:
    """A partition.

    - ``entries``: the log, of which ``durable`` entries are below the high watermark.
    - ``history``: everything that producers wrote, including deleted entries, until a restart without any entry.
    - ``verifications``: by producer, until one of its transactional batches or markers is in the log; but if it bumps
      the epoch, a marker of its epoch belongs to an earlier transaction.
    """

    entries: list[Entry] = field(default_factory=list)
    durable: int = 0
    history: list[Entry] = field(default_factory=list)
    verifications: dict[int, Verification] = field(default_factory=dict)
    start: int = 0
    first_end: int = 0  #: the end while the log is empty
    leader_epoch: int = 0

    @property
    def end(self) -> int:
        return self.entries[-1].last + 1 if self.entries else self.first_end

    @property
    def high(self) -> int:
        return self.entries[self.durable - 1].last + 1 if self.durable else self.first_end

    @property
    def known(self) -> Replayed:
        return replayed(self.history)

    @property
    def durable_history(self) -> list[Entry]:
        pending = len(self.entries) - self.durable
        return self.history[: len(self.history) - pending]

    @property
    def stable(self) -> int:
        began = [each.began for each in replayed(self.durable_history).producers.values() if each.began is not None]
        first = self.entries[0].base if self.entries else self.start
        return min([self.high, *(max(each, first) for each in began)])

    def answer(self, entry: Entry) -> Answer:
        """Check a client's batch as analyzeAndValidateProducerState and ProducerAppendInfo do."""
        state = self.known.producers.get(entry.producer) if entry.producer >= 0 else None
        if state is not None:
            if entry.epoch == state.epoch:
                for first, last, base in state.batches:
                    if (first, last) == (entry.sequence, _last_sequence(entry)):
                        return Answer(base=base)
            if entry.epoch < state.epoch:
                return Answer("invalid_producer_epoch")
        verification = self.verifications.get(entry.producer)
        if verification is not None:
            unknown = state is None or not state.batches
            if entry.sequence > (0 if verification.bumps and unknown else verification.lowest):
                return Answer("out_of_order_sequence_number")
            if entry.sequence > verification.lowest:
                return Answer("out_of_order_sequence_number")
        if state is not None:
            last = state.batches[-1][1] if state.batches and entry.epoch == state.epoch else -1
            expected = 0 if last == LAST_SEQUENCE else last + 1
            if entry.sequence != expected:
                return Answer("out_of_order_sequence_number")
            if state.began is not None and not entry.transactional:
                return Answer("invalid_txn_state")
        return Answer(base=self.end, new=True)

    def verify(self, entry: Entry, *, bumps: bool) -> Answer:
        """maybeStartTransactionVerification."""
        state = self.known.producers.get(entry.producer)
        if state is not None and entry.epoch < state.epoch:
            return Answer("invalid_producer_epoch")
        if state is not None and state.began is not None and entry.epoch == state.epoch:
            return Answer()
        made = self.verifications.setdefault(entry.producer, Verification(entry.epoch, entry.sequence, bumps))
        if entry.epoch == made.epoch:
            made.lowest = min(made.lowest, entry.sequence)
        elif entry.epoch > made.epoch:
            made.epoch, made.lowest = entry.epoch, entry.sequence
        return Answer()

    def append(self, entry: Entry) -> None:
        placed = replace(entry, base=self.end, last=self.end + entry.last - entry.base, leader_epoch=self.leader_epoch)
        self.entries.append(placed)
        self.history.append(placed)
        made = self.verifications.get(entry.producer)
        if entry.transactional and made is not None:
            earlier = made.bumps and entry.committed is not None and entry.epoch == made.epoch
            if not earlier:
                del self.verifications[entry.producer]

    def retract(self) -> None:
        gone = len(self.entries) - self.durable
        if gone:
            del self.entries[-gone:], self.history[-gone:]

    def delete_before(self, offset: int) -> None:
        self.start = max(self.start, offset)
        high = self.high
        while self.durable and self.entries[0].last < self.start:
            del self.entries[0]
            self.durable -= 1
        if not self.durable:
            self.first_end = high

    def restart(self) -> None:
        self.retract()
        self.verifications.clear()
        if self.start == self.end:  # truncateAndReload drops the snapshot
            self.history.clear()

    # visible to readers

    def fetch(self, offset: int, most: int, limit: int, *, one_at_least: bool) -> list[Entry]:
        found: list[Entry] = []
        size = 0
        for entry in self.entries[: self.durable]:
            if entry.last < offset:
                continue
            size += len(entry.data)
            if entry.last >= limit or (size > most and not (one_at_least and not found)):
                break
            found.append(entry)
        return found

    def aborted(self, offset: int, found: Sequence[Entry]) -> list[tuple[int, int, int]]:
        rows = replayed(self.durable_history).aborted
        return [each for each in rows if found and each[2] >= offset and each[1] <= found[-1].last]

    def times(self, limit: int) -> list[tuple[int, int]]:
        """Return time and offset of each readable record below the limit, including markers."""
        return [
            (time, entry.base + at)
            for entry in self.entries[: self.durable]
            for at, time in enumerate(entry.times)
            if self.start <= entry.base + at < limit
        ]

    def end_of_epoch(self, epoch: int) -> int:
        """Return the end offset as LeaderEpochFileCache.endOffsetFor does; its entries end at the log's start; -1 for a
        future epoch."""
        if epoch > self.leader_epoch:
            return -1
        later = [each.base for each in self.entries[: self.durable] if each.leader_epoch > epoch]
        return max(min([*later, self.high]), self.start)
