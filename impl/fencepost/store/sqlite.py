"""A store in an SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from . import tables, upgrade
from .base import StoreError, partitions_of
from .sql import SqlStore
from .tables import FORMAT, DamagedStore

#: "fpst": the application id of these files.
APPLICATION: Final = 0x66707374
#: The first release with RETURNING.
_LEAST: Final = (3, 35, 0)
#: How long to wait for another process that is about to close the file, in seconds.
_PATIENCE: Final = 2.0
_PRIMARY: Final = 0xFF
#: The SQL type of bytes, and the end of CREATE TABLE for a table without row ids.
_TYPES: Final = ("BLOB", " WITHOUT ROWID")
#: Largest number of rows to insert with one statement.
_ROWS: Final = 256


class LockedStore(StoreError):
    """Another process has the file open."""


class ForeignFile(StoreError):
    """The file is not a store."""


class NewerFormat(StoreError):
    """The file was written by a newer release."""


class SqliteConnection:
    """A file that no other process may open at the same time. A commit is durable when it returns. Without ``flush`` it
    is then in the operating system's cache, which writes it to the disk later."""

    def __init__(self, path: Path, partitions: int | None, new_partitions: int = 1, *, flush: bool = True) -> None:
        self._path = path
        self._flush = flush
        self._asked = partitions
        self._new = new_partitions
        self._file: sqlite3.Connection | None = None

    def open(self) -> int:
        """Create the file if it is missing, else check that it is a store; return the number of partitions. Raises
        ``LockedStore``, ``ForeignFile``, ``NewerFormat``, ``DamagedStore``, ``OtherPartitions``."""
        if sqlite3.sqlite_version_info < _LEAST:
            raise StoreError(f"SQLite must be 3.35 or later (got {sqlite3.sqlite_version})")
        try:
            return self._connect()
        except sqlite3.Error as failure:
            self.abandon()
            raise self._translate(failure) from None
        except Exception:
            self.abandon()
            raise

    def _connect(self) -> int:
        self._file = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=_PATIENCE)
        self.run("PRAGMA locking_mode = EXCLUSIVE")
        self._look()
        ((mode,),) = self.rows("PRAGMA journal_mode = WAL")
        if mode != "wal":
            raise StoreError(f"{self._path}: SQLite cannot use a write-ahead log here; use a file on a local disk")
        self.run(f"PRAGMA synchronous = {'FULL' if self._flush else 'NORMAL'}")
        self.run("BEGIN EXCLUSIVE")
        if self._look():
            has = tables.count(self)
            partitions_of(self._asked, has, self._new)
            if self.rows("PRAGMA user_version") == [(upgrade.OLD,)]:
                upgrade.upgrade(self, *_TYPES)
        else:
            has = partitions_of(self._asked, None, self._new)
            tables.make(self, has, *_TYPES)
            self.run(f"PRAGMA application_id = {APPLICATION}")
        self.run(f"PRAGMA user_version = {FORMAT}")
        self.run("COMMIT")
        return has

    def _look(self) -> bool:
        """Return whether the file is a store; if not, it is empty."""
        ((application,),) = self.rows("PRAGMA application_id")
        ((version,),) = self.rows("PRAGMA user_version")
        ((names,),) = self.rows("SELECT count(*) FROM sqlite_master")
        if application == APPLICATION and version > FORMAT:
            raise NewerFormat(
                f"{self._path} has format {version}, but this release reads formats up to {FORMAT}; use the release "
                "that wrote it, or a later one"
            )
        if application == APPLICATION and names:
            return True
        if application or names:
            raise ForeignFile(f"{self._path} is a database, but not a store; nothing in it was changed")
        return False

    def close(self) -> None:
        """Close the file, after the write-ahead log is written into it."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    # transactions

    def begin(self) -> None:
        if self._file is None:
            self.open()
        self.run("BEGIN IMMEDIATE")

    def snapshot(self) -> None:
        if self._file is None:
            self.open()
        self.run("BEGIN")

    def commit(self) -> None:
        self.run("COMMIT")

    def rollback(self) -> None:
        if self._file is not None and self._file.in_transaction:
            self.run("ROLLBACK")

    def none_there(self, failure: Exception) -> bool:
        """Return whether the commit has no effect: on a full disk it has none, on a failing disk it may."""
        return _code(failure) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY)

    def abandon(self) -> None:
        self.close()

    def translate_error(self, failure: Exception) -> Exception:
        return self._translate(failure) if isinstance(failure, sqlite3.Error) else failure

    # statements

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._on().execute(statement, values).fetchall()

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._on().execute(statement, values).rowcount

    def many(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        return self._on().executemany(statement, values).rowcount

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows with each statement, since after each one the thread waits for its turn again. The numbers
        of rows are powers of two, so that few different statements are parsed."""
        one = f"({', '.join('?' * len(rows[0]))})"
        begin = 0
        while begin < len(rows):
            count = min(_ROWS, 1 << (len(rows) - begin).bit_length() - 1)
            some = rows[begin : begin + count]
            self.run(f"INSERT INTO {table} VALUES {', '.join([one] * count)}", list(chain.from_iterable(some)))
            begin += count

    def _on(self) -> sqlite3.Connection:
        if self._file is None:
            raise StoreError(f"{self._path} is not open; call open() first")
        return self._file

    def _translate(self, failure: sqlite3.Error) -> StoreError:
        """Return the error with a helpful message."""
        code = _code(failure)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return LockedStore(f"{self._path} is in use by another process; stop that process, or use another file")
        if code == sqlite3.SQLITE_NOTADB:
            return ForeignFile(f"{self._path} is not a database; nothing in it was changed")
        if code == sqlite3.SQLITE_CORRUPT:
            return DamagedStore(f"{self._path} is damaged: {failure}; the store does not open it; restore a backup")
        if code == sqlite3.SQLITE_FULL:
            return StoreError(f"{self._path}: the disk is full; free some space, acknowledged data is safe")
        if code == sqlite3.SQLITE_CANTOPEN:
            return StoreError(f"{self._path} cannot be opened; check that its folder exists and is writable")
        return StoreError(f"{self._path}: {failure}")


def _code(failure: Exception) -> int:
    """Return the primary code of an SQLite error."""
    return int(getattr(failure, "sqlite_errorcode", 0) or 0) & _PRIMARY


class SQLiteStore(SqlStore):
    """Logs in one file, which one process can have open at a time. Acknowledged data is durable: it
    survives when the process is killed, and when the machine fails, if its disk keeps what it has confirmed.

    ``partitions``: the number that the file must have; None: any, and ``new_partitions`` in a new file. Without
    ``flush`` data survives only the process, as with Kafka, and not the machine: nothing waits for the disk."""

    def __init__(
        self, path: str | Path, partitions: int | None = None, *, new_partitions: int = 1, flush: bool = True
    ) -> None:
        self.path = Path(path)
        super().__init__(
            SqliteConnection(self.path, partitions, new_partitions, flush=flush), f"store {self.path.name}"
        )
