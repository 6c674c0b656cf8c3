"""The header of a record batch (magic 2). The server does not decode the records of a batch."""

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
#: the bytes of the base offset and the length, which the length does not count
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
    """Bytes that are not a batch, or have a wrong checksum."""


class OldBatch(ValueError):
    """A batch in a message format from before Kafka 0.11."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch with the fields of its header. ``base`` and ``last`` are offsets; times are in ms."""

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
    def marked(self) -> bool:
        """Whether the batch says that it is transactional."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def transactional(self) -> bool:
        """Whether the batch belongs to a transaction. As in Kafka, a batch without a producer does not."""
        return self.marked and self.producer_id > NO_PRODUCER

    @property
    def control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; 0 follows 2^31 - 1."""
        return (self.base_sequence + self.last - self.base) & 0x7FFFFFFF


def batches(data: bytes) -> Iterator[Batch]:
    """Yield the batches in the records of a Produce request. Raises ``CorruptBatch`` and ``OldBatch``."""
    for batch in unchecked_batches(data):
        check_checksum(batch)
        yield batch


def check_checksum(batch: Batch) -> None:
    """Raise ``CorruptBatch`` if a batch has a wrong checksum."""
    data = batch.data
    if crc32c.crc32c(memoryview(data)[_CRC_FROM:]) != int.from_bytes(data[_CRC_FROM - 4 : _CRC_FROM], "big"):
        raise CorruptBatch("a batch has a wrong checksum")


def unchecked_batches(data: bytes) -> Iterator[Batch]:
    """Yield the batches in the records of a Produce request, also those with a wrong checksum. Raises ``CorruptBatch``
    for another form, and ``OldBatch``."""
    at = 0
    while at < len(data):
        if len(data) - at < _UP_TO_MAGIC:
            return  # Kafka ignores a rest of so few bytes too
        if at + _BEFORE_LENGTH + int.from_bytes(data[at + 8 : at + 12], "big", signed=True) > len(data):
            return  # Kafka ignores an incomplete batch at the end too
        if len(data) - at < HEADER_BYTES:
            if data[at + 16] < _MAGIC:
                raise OldBatch(f"message format must be 2 (got {data[at + 16]})")
            raise CorruptBatch(f"a batch has at least {HEADER_BYTES} bytes (got {len(data) - at})")
        (base, length, _, magic, _, attributes, delta, first, latest, producer, epoch, sequence, count) = (
            _HEADER.unpack_from(data, at)
        )
        if magic < _MAGIC:
            raise OldBatch(f"message format must be 2 (got {magic})")
        end = at + _BEFORE_LENGTH + length
        if magic != _MAGIC or length < HEADER_BYTES - _BEFORE_LENGTH:
            raise CorruptBatch(f"invalid batch: length {length}, magic {magic}, {len(data) - at} bytes left")
        yield Batch(data[at:end], base, base + delta, attributes, first, latest, producer, epoch, sequence, count)
        at = end


def read_header(data: bytes) -> Batch:
    """Return a stored batch, which was checked before it was stored."""
    (base, _, _, _, _, attributes, delta, first, latest, producer, epoch, sequence, count) = _HEADER.unpack_from(data)
    return Batch(data, base, base + delta, attributes, first, latest, producer, epoch, sequence, count)


def leader_epoch_of(batch: Batch) -> int:
    """Return the leader epoch in which a batch was written."""
    (epoch,) = _EPOCH.unpack_from(batch.data, _BEFORE_LENGTH)
    return int(epoch)


def placed(batch: Batch, base: int, leader_epoch: int) -> Batch:
    """Return a batch with its offset and leader epoch in a log; its checksum covers neither."""
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
    """Return the control batch that ends a transaction in a partition (F-REC-26)."""
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
