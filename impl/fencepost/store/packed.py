"""Batches of records in a store: consecutive records form one batch, which is one row of its table.

A batch has one producer or none, like Kafka's batches; the producer is in its header, with a checksum over the batch.
Records keep their places when others between them are compacted away.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import groupby
from struct import Struct, pack, unpack_from
from typing import Final, NamedTuple, TypeAlias

from fencepost.codec import Codec
from fencepost.protocol.logged import PlainCommit
from fencepost.protocol.offset_records import ControlKey, Producer
from fencepost.protocol.records import Record

#: Key and value of a record, in Kafka's bytes.
Pair: TypeAlias = tuple[bytes, bytes | None]
#: Distance of a record from the first place of its batch, its key and its value.
Kept: TypeAlias = tuple[int, bytes, bytes | None]

CODEC: Final = Codec()
#: Largest number of records in a batch.
MOST: Final = 1_000
_HEAD: Final = Struct(">iqqhi")
_COUNT: Final = Struct(">i")
_NUMBERS: Final = 3  #: of each record: its place, and the lengths of key and value
_NONE: Final = -1


class Header(NamedTuple):
    """Common data of the records in a batch: the producer of their transaction, and whether they end it."""

    producer_id: int | None
    producer_epoch: int | None
    control: int

    @property
    def producer(self) -> Producer | None:
        if self.producer_id is None or self.producer_epoch is None:
            return None
        return Producer(self.producer_id, self.producer_epoch)


PLAIN: Final = Header(None, None, 0)


class Run(NamedTuple):
    """Consecutive records with the same header."""

    header: Header
    pairs: Sequence[Pair]


def encoded(records: Sequence[Record]) -> list[Run]:
    """Encode records; the result is empty for no records. Raises ``Unwritable``."""
    if not records:
        return []
    pairs = CODEC.encoded_all(records)
    if isinstance(records, PlainCommit):
        return [Run(PLAIN, pairs)]
    headers = [_header(record) for record in records]
    if all(header is PLAIN for header in headers):
        return [Run(PLAIN, pairs)]
    rows = groupby(zip(headers, pairs, strict=True), key=lambda row: row[0])
    return [Run(header, [pair for _, pair in some]) for header, some in rows]


def _header(record: Record) -> Header:
    producer, control = record.producer, isinstance(record.key, ControlKey)
    if producer is None:
        return Header(None, None, 1) if control else PLAIN
    return Header(producer.producer_id, producer.producer_epoch, int(control))


def packed(pairs: Iterable[Pair]) -> bytes:
    """Encode a batch whose records have no gaps between them."""
    return repacked([(place, key, value) for place, (key, value) in enumerate(pairs)])


def repacked(rows: Iterable[Kept]) -> bytes:
    """Encode a batch: the number of records, their numbers, and then all keys and values."""
    numbers: list[int] = []
    texts: list[bytes] = []
    for place, key, value in rows:
        if value is None:
            numbers += (place, len(key), _NONE)
            texts.append(key)
        else:
            numbers += (place, len(key), len(value))
            texts += (key, value)
    return b"".join((pack(f">i{len(numbers)}i", len(numbers) // _NUMBERS, *numbers), *texts))


def unpacked(data: bytes) -> list[Kept]:
    """Decode the records of an undamaged batch."""
    (count,) = _COUNT.unpack_from(data)
    numbers = unpack_from(f">{count * _NUMBERS}i", data, _COUNT.size)
    at = _COUNT.size * (1 + count * _NUMBERS)
    rows: list[Kept] = []
    for place, key_size, size in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        begin = at + key_size
        key = data[at:begin]
        if size == _NONE:
            at = begin
            rows.append((place, key, None))
        else:
            at = begin + size
            rows.append((place, key, data[begin:at]))
    return rows


def keys(data: bytes) -> tuple[Sequence[int], list[bytes], list[bytes | None]]:
    """Decode the distances of the records in an undamaged batch, and their keys; and ``b""`` in place of each value."""
    (count,) = _COUNT.unpack_from(data)
    numbers = unpack_from(f">{count * _NUMBERS}i", data, _COUNT.size)
    at = _COUNT.size * (1 + count * _NUMBERS)
    found: list[bytes] = []
    values: list[bytes | None] = [b""] * count
    for place, (key_size, size) in enumerate(zip(numbers[1::3], numbers[2::3], strict=True)):
        begin = at + key_size
        found.append(data[at:begin])
        at = begin + size
        if size == _NONE:
            at = begin
            values[place] = None
    return numbers[::3], found, values


def checksum(number: int, place: int, header: Header, data: bytes) -> int:
    """Return the checksum of a batch, over its whole row."""
    producer = _NONE if header.producer_id is None else header.producer_id
    head = _HEAD.pack(number, place, producer, header.producer_epoch or 0, header.control)
    return zlib.crc32(data, zlib.crc32(head))
