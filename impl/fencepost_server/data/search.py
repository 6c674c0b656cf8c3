"""The search for offsets by timestamp (ListOffsets)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from fencepost_server.data.batches import COMPRESSION, HEADER_BYTES, Batch
from fencepost_server.data.index import NEVER
from fencepost_server.data.partition import PartitionLog

_GZIP: Final = 1
_WITH_HEADER: Final = 16 + zlib.MAX_WBITS
#: The search decompresses at most so many bytes of a batch.
_MOST_BYTES: Final = 16 * 1024 * 1024


async def first_since(log: PartitionLog, timestamp: int, limit: int) -> tuple[int, int] | None:
    """Return timestamp and offset of the first record below ``limit`` with at least this timestamp; None if there is
    none. For a batch that it cannot decompress (not gzip, or too large), it takes the offset of the first record."""
    for begin, end, latest in list(log.blocks.blocks()):
        if latest < timestamp:
            continue
        async for batch in log.scan(begin, min(end, limit)):
            if batch.max_timestamp >= timestamp:
                for at, offset in _times(batch):
                    if at >= timestamp and log.start <= offset < limit:
                        return at, offset
    return None


async def newest(log: PartitionLog, limit: int) -> tuple[int, int] | None:
    """Return timestamp and offset of the first record with the greatest timestamp. None if there is no record, or, as
    in Kafka, if that record is not below ``limit``."""
    greatest = NEVER
    for begin, end, latest in list(log.blocks.blocks()):
        if begin >= log.start:
            greatest = max(greatest, latest)
            continue
        async for batch in log.scan(begin, end):
            greatest = max(greatest, _latest(batch, log.start))
    return None if greatest == NEVER else await first_since(log, greatest, limit)


def _latest(batch: Batch, start: int) -> int:
    """Return the greatest timestamp of a batch's records from offset ``start`` on."""
    if batch.base >= start:
        return batch.max_timestamp
    return max((at for at, offset in _times(batch) if offset >= start), default=NEVER)


def _times(batch: Batch) -> Iterator[tuple[int, int]]:
    found = _records(batch)
    if found is None:
        yield batch.max_timestamp, batch.base
        return
    at = 0
    try:
        for _ in range(batch.count):
            length, at = varint(found, at)
            end = at + length
            time_delta, at = varint(found, at + 1)  # after the attributes
            offset_delta, _ = varint(found, at)
            yield batch.base_timestamp + time_delta, batch.base + offset_delta
            at = end
    except IndexError:  # the records do not match the header, which the server does not check
        yield batch.max_timestamp, batch.base


def _records(batch: Batch) -> bytes | None:
    data = batch.data[HEADER_BYTES:]
    kind = batch.attributes & COMPRESSION
    if kind == 0:
        return data
    if kind != _GZIP:
        return None
    unpacker = zlib.decompressobj(_WITH_HEADER)
    try:
        unpacked = unpacker.decompress(data, _MOST_BYTES)
    except zlib.error:
        return None
    return None if unpacker.unconsumed_tail else unpacked


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a signed number of variable length. Returns it and the position after it. Raises ``IndexError`` at the end
    of the data."""
    value = 0
    for place in range(10):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1), at
