"""Check whether a store file is undamaged, and whether a coordinator can be loaded from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.coordinator import initial_state, replay
from fencepost.coordinator.kernel.errors import InternalError
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

from . import tables
from .base import StoreError
from .sqlite import SqliteConnection
from .tables import DamagedStore

#: First bytes of every SQLite file.
_HEADER: Final = b"SQLite format 3\0"
#: Bytes of batches to read at a time.
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Checked:
    """The content of a store. ``faults``: a message for each fault, with its place; empty if there is none."""

    partitions: int = 0
    records: int = 0
    batches: int = 0
    values: int = 0
    faults: tuple[str, ...] = ()


def stores_in(folder: Path) -> list[Path]:
    """Return the files of a folder that may be stores, even damaged ones, by name: those that end in ``.db``, and
    SQLite databases. Raises ``OSError`` for a folder that cannot be read."""
    files = sorted(each for each in folder.iterdir() if each.is_file())
    return [each for each in files if each.suffix == ".db" or _begins_as_sqlite(each)]


def _begins_as_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def check_file(path: str | Path) -> Checked:
    """Check every page, every record and all other data, and load each partition. The first fault of each partition is
    reported. No other process may have the file open. Its write-ahead log after a crash is applied, as at any start.

    Raises ``StoreError`` for a missing file, or one that is not a store of a known format."""
    if not Path(path).is_file():
        raise StoreError(f"{path} does not exist, or is not a file")
    connection = SqliteConnection(Path(path), None)
    try:
        partitions = connection.open()
    except DamagedStore as failure:
        return Checked(faults=(str(failure),))
    try:
        faults = [*_pages(connection)]
        records = 0
        for number in range(partitions):
            try:
                records += _partition(connection, number)
            except StoreError as failure:
                faults.append(str(failure))
        batches = values = 0
        try:
            values = sum(map(len, tables.kept(connection).values.values()))
            batches = sum(_batches(connection, *place) for place in tables.places(connection))
        except (sqlite3.Error, StoreError) as failure:
            faults.append(str(connection.translate_error(failure)))
        return Checked(partitions, records, batches, values, tuple(faults))
    finally:
        connection.close()


def _pages(connection: SqliteConnection) -> Iterable[str]:
    try:
        messages = [str(text) for (text,) in connection.rows("PRAGMA integrity_check(10)")]
    except sqlite3.Error as failure:
        return [str(connection.translate_error(failure))]
    return [] if messages == ["ok"] else [" ".join(text.split()) for text in messages]


def _batches(connection: SqliteConnection, topic_id: bytes, number: int) -> int:
    """Return the number of batches. Raises ``StoreError`` for the first damaged one."""
    count, base = 0, 0
    while found := tables.batches(connection, topic_id, number, base, _PIECE, within=False):
        count += len(found)
        base = found[-1][0] + 1
    return count


def _partition(connection: SqliteConnection, number: int) -> int:
    """Return the number of records. Raises ``StoreError`` for the first fault."""
    try:
        known, rows = tables.read(connection, number)
    except sqlite3.Error as failure:
        raise StoreError(f"partition {number}: {connection.translate_error(failure)}") from None
    records = tables.decoded(number, known, rows)
    try:
        replay(initial_state(Settings(), INTENDED), records)
    except InternalError:
        raise DamagedStore(f"partition {number} has records that no coordinator writes") from None
    return len(records)
