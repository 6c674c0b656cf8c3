"""Records as a batch (magic 2), uncompressed: the bytes that a Fetch returns and a log segment holds."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

import crc32c

from fencepost.protocol.offset_records import Producer

_HEAD: Final = Struct(">qiibI")
_REST: Final = Struct(">hiqqqhii")
_MAGIC: Final = 2
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_NONE: Final = -1
#: the bytes of a batch from its leader epoch to its checksum, which its length counts
_COUNTED: Final = 9


def encode_batch(
    rows: Sequence[tuple[int, bytes | None, bytes | None]],
    at_ms: int,
    *,
    leader_epoch: int = 0,
    producer: Producer | None = None,
    control: bool = False,
) -> bytes:
    """Return a batch. ``rows``: offset, key and value of each record, in order; ``at_ms``: the time of all of them;
    ``producer``: of their transaction; ``control``: they end it."""
    base, last = rows[0][0], rows[-1][0]
    body = bytearray()
    for offset, key, value in rows:
        record = bytearray(b"\x00\x00")  # attributes, and the time, which is that of the batch
        _varint(record, offset - base)
        _bytes(record, key)
        _bytes(record, value)
        record.append(0)  # no headers
        _varint(body, len(record))
        body += record
    attributes = (_TRANSACTIONAL if producer is not None else 0) | (_CONTROL if control else 0)
    number, epoch = (_NONE, _NONE) if producer is None else (producer.producer_id, producer.producer_epoch)
    rest = _REST.pack(attributes, last - base, at_ms, at_ms, number, epoch, _NONE, len(rows)) + body
    return _HEAD.pack(base, len(rest) + _COUNTED, leader_epoch, _MAGIC, crc32c.crc32c(rest)) + rest


def _bytes(to: bytearray, data: bytes | None) -> None:
    _varint(to, _NONE if data is None else len(data))
    if data is not None:
        to += data


def _varint(to: bytearray, number: int) -> None:
    left = (number << 1) ^ (number >> 63)
    while left > 0x7F:
        to.append(left & 0x7F | 0x80)
        left >>= 7
    to.append(left)
