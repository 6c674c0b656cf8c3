"""Upgrade of a store of format 1, which has one row for each record, when it is opened."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import groupby
from struct import Struct
from typing import Any, Final

from . import packed, tables
from .packed import Header
from .tables import DamagedStore, Statements

#: The format that is read here.
OLD: Final = 1
#: Number of rows to read at a time.
_CHUNK: Final = 20_000
_HEAD: Final = Struct(">iqqhih")


def upgrade(on: Statements, blob: str, end: str) -> None:
    """Upgrade the tables; call it in a transaction. Raises ``DamagedStore`` for a damaged record."""
    on.run("ALTER TABLE records RENAME TO old_records")
    on.run(tables.RECORDS.format(blob=blob, end=end))
    for (number,) in on.rows("SELECT number FROM partitions ORDER BY number"):
        place = -1
        while rows := on.rows(
            "SELECT place, leader_epoch, producer_id, producer_epoch, control, record_key, record_value, checksum"
            " FROM old_records WHERE number = ? AND place > ? ORDER BY place LIMIT ?",
            (number, place, _CHUNK),
        ):
            place = rows[-1][0]
            for begin in range(0, len(rows), packed.MOST):
                on.insert("records", [*_batches(number, rows[begin : begin + packed.MOST])])
    on.run("DROP TABLE old_records")


def _batches(number: int, rows: list[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    """Return rows of the current format."""
    for (leader_epoch, *header), some in groupby(rows, key=lambda row: row[1:5]):
        found = [(place, bytes(key), _value(value), checksum) for place, *_, key, value, checksum in some]
        first, head = found[0][0], Header(*header)
        for place, key, value, checksum in found:
            if checksum != _checksum(number, place, head, key, value):
                raise DamagedStore(f"partition {number}, offset {place}: wrong checksum, the record was changed")
        data = packed.repacked([(place - first, key, value) for place, key, value, _ in found])
        yield (number, first, leader_epoch, *head, data, packed.checksum(number, first, head, data))


def _value(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _checksum(number: int, place: int, header: Header, key: bytes, value: bytes | None) -> int:
    """Return the checksum as format 1 computes it."""
    producer = -1 if header.producer_id is None else header.producer_id
    none = -1 if value is None else 0
    head = _HEAD.pack(number, place, producer, header.producer_epoch or 0, len(key), 2 * header.control + none)
    return zlib.crc32(value or b"", zlib.crc32(key, zlib.crc32(head)))
