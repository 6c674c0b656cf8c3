"""The records within a batch, compressed or not."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from fencepost.protocol.offset_records import Producer
from fencepost_server.data.batches import COMPRESSION, HEADER_BYTES, NO_PRODUCER, Batch

from .rows import NO_TIME, LogRow

_GZIP: Final = 1
_WITH_HEADER: Final = 16 + zlib.MAX_WBITS
_CODECS: Final = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
#: the codecs that pyarrow reads as Kafka writes them
_BY_PYARROW: Final = {3: "lz4", 4: "zstd"}
#: the attribute of a batch whose records all have the time of its append
_APPEND_TIME: Final = 0x08


class Unreadable(ValueError):
    """A batch whose records cannot be read; the message says why."""


def rows_of(batch: Batch, partition: int) -> Iterator[LogRow]:
    """Yield the records of a batch. Raises ``Unreadable``; then the records before were yielded."""
    data = _unpacked(batch)
    producer = None
    if batch.producer_id != NO_PRODUCER and (batch.transactional or batch.control):
        producer = Producer(batch.producer_id, batch.producer_epoch)
    control, base = batch.control, batch.base
    begin, fixed = batch.base_timestamp, batch.max_timestamp if batch.attributes & _APPEND_TIME else None
    at, most = 0, len(data)
    try:
        for _ in range(batch.count):
            length, at = _varint(data, at)
            end = at + length
            if end > most or length < 0:
                raise IndexError
            at += 1  # the attributes
            if not data[at]:  # usual: the first time of the batch
                later = 0
                at += 1
            else:
                later, at = _varint(data, at)
            further = data[at]
            if further < 0x80 and not further & 1:  # as _varint, without the cost of a call
                further >>= 1
                at += 1
            else:
                further, at = _varint(data, at)
            size, at = _varint(data, at)
            key = value = None
            if size >= 0:
                key = data[at : at + size]
                at += size
            size = data[at]
            if size < 0x80 and not size & 1:
                size >>= 1
                at += 1
            else:
                size, at = _varint(data, at)
            if size >= 0:
                value = data[at : at + size]
                at += size
            if at > end:
                raise IndexError
            time = begin + later if fixed is None else fixed
            yield LogRow(partition, base + further, max(time, NO_TIME), key, value, producer, control)
            at = end  # after the headers
    except IndexError:
        raise Unreadable(f"the batch at offset {base} does not contain the {batch.count} records it names") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + 1
        shift += 7
        if shift > 63:
            raise IndexError


def _unpacked(batch: Batch) -> bytes:
    kind, data = batch.attributes & COMPRESSION, batch.data[HEADER_BYTES:]
    if kind == 0:
        return data
    name = _CODECS.get(kind, f"codec {kind}")
    try:
        if kind == _GZIP:
            return zlib.decompress(data, _WITH_HEADER)
        if kind in _BY_PYARROW:
            return _by_pyarrow(data, _BY_PYARROW[kind])
    except (zlib.error, OSError) as wrong:
        raise Unreadable(f"the batch at offset {batch.base} cannot be decompressed ({name}): {wrong}") from None
    raise Unreadable(f"batches that are compressed with {name} cannot be read")


def _by_pyarrow(data: bytes, codec: str) -> bytes:
    try:
        import pyarrow  # noqa: PLC0415
    except ImportError:
        raise Unreadable(f"batches that are compressed with {codec} need pyarrow: pip install '.[spark]'") from None
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), codec) as stream:
        found: bytes = stream.read()
    return found
