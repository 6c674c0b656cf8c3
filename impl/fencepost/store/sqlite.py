"""A store in a file of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from . import tables, upgrade
from .shared import StoreError, partitions_of
from .sql import SqlStore
from .tables import FORMAT, DamagedStore

#: "fpst": says of a file that it is one of these.
APPLICATION: Final = 0x66707374
#: RETURNING came with this release.
_LEAST: Final = (3, 35, 0)
#: How long to wait for another process that is about to end, in seconds.
_PATIENCE: Final = 2.0
_PRIMARY: Final = 0xFF
#: The type of bytes, and what ends a table that is kept by its key alone.
_TYPES: Final = ("BLOB", " WITHOUT ROWID")
#: As many rows at most go into a table with one statement.
_ROWS: Final = 256


class LockedStore(StoreError):
    """Another process has the file open."""


class ForeignFile(StoreError):
    """The file is something else than a store."""


class NewerFormat(StoreError):
    """The file was written by a newer release."""


class SqliteConnection:
    """A file, which no other process may open meanwhile. In its log every commit is durable before it returns; without
    ``flush`` it is the system's by then, which writes it to the disk in its own time."""

    def __init__(self, path: Path, partitions: int | None, *, flush: bool = True) -> None:
        self._path = path
        self._flush = flush
        self._asked = partitions
        self._file: sqlite3.Connection | None = None

    def open(self) -> int:
        """Make the file if there is none, else look whether it is a store. Raises ``LockedStore``, ``ForeignFile``,
        ``NewerFormat``, ``DamagedStore``, ``OtherPartitions``."""
        if sqlite3.sqlite_version_info < _LEAST:
            raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; 3.35 or later is needed")
        try:
            return self._connect()
        except sqlite3.Error as failure:
            self.abandon()
            raise self._told(failure) from None
        except Exception:
            self.abandon()
            raise

    def _connect(self) -> int:
        self._file = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=_PATIENCE)
        self.run("PRAGMA locking_mode = EXCLUSIVE")
        self._look()
        ((mode,),) = self.rows("PRAGMA journal_mode = WAL")
        if mode != "wal":
            raise StoreError(f"{self._path}: SQLite cannot keep a write-ahead log there; use a file on a local disk")
        self.run(f"PRAGMA synchronous = {'FULL' if self._flush else 'NORMAL'}")
        self.run("BEGIN EXCLUSIVE")
        if self._look():
            has = tables.count(self)
            partitions_of(self._asked, has)
            if self.rows("PRAGMA user_version") == [(upgrade.OLD,)]:
                upgrade.upgrade(self, *_TYPES)
        else:
            has = partitions_of(self._asked, None)
            tables.make(self, has, *_TYPES)
            self.run(f"PRAGMA application_id = {APPLICATION}")
        self.run(f"PRAGMA user_version = {FORMAT}")
        self.run("COMMIT")
        return has

    def _look(self) -> bool:
        """Whether it is a store; else it is empty."""
        ((application,),) = self.rows("PRAGMA application_id")
        ((version,),) = self.rows("PRAGMA user_version")
        ((names,),) = self.rows("SELECT count(*) FROM sqlite_master")
        if application == APPLICATION and version > FORMAT:
            raise NewerFormat(
                f"{self._path} has format {version}, and this release reads up to {FORMAT}; use the release that wrote "
                "it, or a later one"
            )
        if application == APPLICATION and names:
            return True
        if application or names:
            raise ForeignFile(f"{self._path} is a database of something else; nothing in it was changed")
        return False

    def close(self) -> None:
        """What is in the log goes into the file first."""
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
        """A full disk has not taken the end of the transaction; a disk that fails may have."""
        return _code(failure) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY)

    def abandon(self) -> None:
        self.close()

    def told(self, failure: Exception) -> Exception:
        return self._told(failure) if isinstance(failure, sqlite3.Error) else failure

    # statements

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._on().execute(statement, values).fetchall()

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._on().execute(statement, values).rowcount

    def many(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        return self._on().executemany(statement, values).rowcount

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Many in a statement: after each statement the thread has to get its turn again. Their numbers are powers of
        two, so that few statements are read."""
        one = f"({', '.join('?' * len(rows[0]))})"
        begin = 0
        while begin < len(rows):
            count = min(_ROWS, 1 << (len(rows) - begin).bit_length() - 1)
            some = rows[begin : begin + count]
            self.run(f"INSERT INTO {table} VALUES {', '.join([one] * count)}", list(chain.from_iterable(some)))
            begin += count

    def _on(self) -> sqlite3.Connection:
        if self._file is None:
            raise StoreError(f"{self._path} is not open")
        return self._file

    def _told(self, failure: sqlite3.Error) -> StoreError:
        """The same in words that help."""
        code = _code(failure)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return LockedStore(f"{self._path} is in use by another process; stop it, or use another file")
        if code == sqlite3.SQLITE_NOTADB:
            return ForeignFile(f"{self._path} is no database; nothing in it was changed")
        if code == sqlite3.SQLITE_CORRUPT:
            return DamagedStore(f"{self._path} is damaged: {failure}; take a copy from before, it is not served")
        if code == sqlite3.SQLITE_FULL:
            return StoreError(f"{self._path}: the disk is full; make room, what was acknowledged is safe")
        if code == sqlite3.SQLITE_CANTOPEN:
            return StoreError(f"{self._path} cannot be opened; is there such a folder, and may it be written?")
        return StoreError(f"{self._path}: {failure}")


def _code(failure: Exception) -> int:
    """The kind of an error of SQLite."""
    return int(getattr(failure, "sqlite_errorcode", 0) or 0) & _PRIMARY


class SQLiteStore(SqlStore):
    """Logs of many partitions in one file, which one process may have open at a time. What is acknowledged is durable:
    it survives that the process is killed, and that the machine goes down if its disk keeps what it says it has.

    ``partitions``: of a new file, 50 if not given; one that stands keeps its own number. Without ``flush`` it survives
    the process, as with Kafka, and not the machine: nothing waits for the disk."""

    def __init__(self, path: str | Path, partitions: int | None = None, *, flush: bool = True) -> None:
        self.path = Path(path)
        super().__init__(SqliteConnection(self.path, partitions, flush=flush), f"store {self.path.name}")
