"""The header of a record batch (magic 2). What is in a batch is its producer's, and is not looked into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from struct import Struct
from typing import Final

import crc32c
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from fencepost.codec.markers import write_marker, write_marker_key
from fencepost.protocol.offset_records import ControlKey, ControlValue

_HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = _HEADER.size
#: base offset and length, which stand before what the length counts
_BEFORE_LENGTH: Final = 12
_CRC_FROM: Final = 21
_UP_TO_MAGIC: Final = 17
_PLACE: Final = Struct(">qi")
_EPOCH: Final = Struct(">i")
_MAGIC: Final = 2
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
COMPRESSION: Final = 0x07

NO_PRODUCER: Final = -1


class CorruptBatch(ValueError):
    """Bytes that are no batch, or not the one that their checksum is of."""


class OldBatch(ValueError):
    """A batch of a format before Kafka 0.11."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch and what its header says. ``base`` and ``last`` are offsets; times in ms."""

    data: bytes
    base: int
    last: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def last_sequence(self) -> int:
        """Sequences go round after 2^31 - 1."""
        return (self.base_sequence + self.last - self.base) & 0x7FFFFFFF


def batches(data: bytes) -> Iterator[Batch]:
    """The batches in the records of a Produce request. Raises ``CorruptBatch`` and ``OldBatch``."""
    at = 0
    while at < len(data):
        if len(data) - at < _UP_TO_MAGIC:
            return  # so few bytes are none, for Kafka too
        if at + _BEFORE_LENGTH + int.from_bytes(data[at + 8 : at + 12], "big", signed=True) > len(data):
            return  # the rest of a batch that does not come is none, for Kafka too
        if len(data) - at < HEADER_BYTES:
            if data[at + 16] < _MAGIC:
                raise OldBatch(f"message format {data[at + 16]}")
            raise CorruptBatch(f"{len(data) - at} bytes are no batch")
        (base, length, _, magic, crc, attributes, delta, first, latest, producer, epoch, sequence, count) = (
            _HEADER.unpack_from(data, at)
        )
        if magic < _MAGIC:
            raise OldBatch(f"message format {magic}")
        end = at + _BEFORE_LENGTH + length
        if magic != _MAGIC or length < HEADER_BYTES - _BEFORE_LENGTH:
            raise CorruptBatch(f"a batch of {length} bytes, magic {magic}, where {len(data) - at} are left")
        if crc32c.crc32c(memoryview(data)[at + _CRC_FROM : end]) != crc:
            raise CorruptBatch("the checksum of a batch does not agree")
        yield Batch(data[at:end], base, base + delta, attributes, first, latest, producer, epoch, sequence, count)
        at = end


def read_header(data: bytes) -> Batch:
    """A batch that was looked at before it was kept."""
    (base, _, _, _, _, attributes, delta, first, latest, producer, epoch, sequence, count) = _HEADER.unpack_from(data)
    return Batch(data, base, base + delta, attributes, first, latest, producer, epoch, sequence, count)


def leader_epoch_of(batch: Batch) -> int:
    """The leader epoch in which it was written."""
    (epoch,) = _EPOCH.unpack_from(batch.data, _BEFORE_LENGTH)
    return int(epoch)


def placed(batch: Batch, base: int, leader_epoch: int) -> Batch:
    """The batch where it stands in a log; its checksum covers neither its offset nor the epoch."""
    data = _PLACE.pack(base, len(batch.data) - _BEFORE_LENGTH) + _EPOCH.pack(leader_epoch) + batch.data[16:]
    return Batch(
        data,
        base,
        base + batch.last - batch.base,
        batch.attributes,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.count,
    )


def marker(producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int, at_ms: int) -> Batch:
    """The control batch that ends a transaction in a partition (F-REC-26)."""
    key, value = BytesIO(), BytesIO()
    key.write(write_marker_key(ControlKey(committed)))
    value.write(write_marker(ControlValue(coordinator_epoch)))
    record = Record(
        attributes=i8(0),
        timestamp=TZAwareMicros.parse(datetime.fromtimestamp(at_ms / 1000, UTC)),
        offset=i64(0),
        key=key.getvalue(),
        value=value.getvalue(),
        headers=(),
    )
    buffer = BytesIO()
    write_new_batch(
        buffer,
        NewRecordBatch(
            producer_id=i64(producer_id),
            producer_epoch=i16(producer_epoch),
            base_sequence=i32(-1),
            attributes=i16(_TRANSACTIONAL | _CONTROL),
            records=(record,),
        ),
    )
    (made,) = batches(buffer.getvalue())
    return made
