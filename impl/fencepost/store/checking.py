"""Whether a store in a file is as it was written, and a coordinator can be loaded from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fencepost.coordinator import initial_state, replay
from fencepost.coordinator.kernel.errors import InternalError
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

from . import tables
from .shared import StoreError
from .sqlite import SqliteConnection
from .tables import DamagedStore


@dataclass(frozen=True, slots=True)
class Checked:
    """What there is, and what is wrong with it: ``faults``, each in words with its place; none if all is well."""

    partitions: int = 0
    records: int = 0
    batches: int = 0
    values: int = 0
    faults: tuple[str, ...] = ()


def check_file(path: str | Path) -> Checked:
    """Looks at every page, every record and all that is kept beside them, and has each partition loaded. Of each
    partition the first fault is told. Nobody may have the file open meanwhile; what a crash has left in its log goes
    into it, as at any start.

    Raises ``StoreError`` for a file that is not there, or is no store that this release reads."""
    if not Path(path).is_file():
        raise StoreError(f"{path} is no file")
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
            kept = tables.kept(connection)
            batches, values = sum(map(len, kept.batches.values())), sum(map(len, kept.values.values()))
        except (sqlite3.Error, StoreError) as failure:
            faults.append(str(connection.told(failure)))
        return Checked(partitions, records, batches, values, tuple(faults))
    finally:
        connection.close()


def _pages(connection: SqliteConnection) -> Iterable[str]:
    try:
        told = [str(text) for (text,) in connection.rows("PRAGMA integrity_check(10)")]
    except sqlite3.Error as failure:
        return [str(connection.told(failure))]
    return [] if told == ["ok"] else [" ".join(text.split()) for text in told]


def _partition(connection: SqliteConnection, number: int) -> int:
    """How many records it has. Raises ``StoreError`` for the first thing that is wrong."""
    try:
        known, rows = tables.read(connection, number)
    except sqlite3.Error as failure:
        raise StoreError(f"partition {number}: {connection.told(failure)}") from None
    records = tables.decoded(number, known, rows)
    try:
        replay(initial_state(Settings(), INTENDED), records)
    except InternalError:
        raise DamagedStore(f"partition {number} holds records that no coordinator writes") from None
    return len(records)
