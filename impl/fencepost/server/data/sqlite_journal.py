"""The journal in a file of SQLite: many changes in one transaction when they queue up, each durable before it is
acknowledged."""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from .journal import Change, DropBatches, JournalError, Put, PutBatch

_log = logging.getLogger(__name__)

#: "fpdj": says of a file that it is one of these
_APPLICATION: Final = 0x6670646A
VERSION: Final = 1
_TABLES: Final = (
    "CREATE TABLE kept (kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (kind, name))"
    " WITHOUT ROWID",
    "CREATE TABLE batches (topic BLOB NOT NULL, partition INTEGER NOT NULL, base INTEGER NOT NULL, data BLOB NOT NULL,"
    " PRIMARY KEY (topic, partition, base)) WITHOUT ROWID",
)
#: as many changes are in one transaction at most
_TOGETHER: Final = 1_000


@dataclass(frozen=True, slots=True)
class Kept:
    """What a file has: ``values`` by kind and name, ``batches`` by topic id and partition in order."""

    values: dict[str, dict[str, str]] = field(default_factory=dict)
    batches: dict[tuple[bytes, int], list[bytes]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Asked:
    changes: Sequence[Change]
    done: asyncio.Future[None]


class _End:
    """Ends the thread."""


_Item: TypeAlias = _Asked | _End


class SqliteJournal:
    """Make it within the loop that writes. Once a write has failed all others do, until the file is opened again: what
    follows a change that is not there would be about something else."""

    durable = True

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it. Raises ``JournalError`` for one that is locked, foreign, of another version or
        broken."""
        self.path = path
        self.failed = ""
        self._loop = asyncio.get_running_loop()
        self._asked: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        try:
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=2.0)
            self._open()
        except sqlite3.Error as reason:
            raise JournalError(_words(path, reason)) from None
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        run = self._file.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        (application,) = run("PRAGMA application_id").fetchone()
        (version,) = run("PRAGMA user_version").fetchone()
        (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION:
            raise JournalError(f"{self.path} is a database of something else; name another folder")
        if tables and version != VERSION:
            raise JournalError(f"{self.path} has format {version}, and this release reads {VERSION}")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("BEGIN IMMEDIATE")
        if not tables:
            run(f"PRAGMA application_id = {_APPLICATION}")
            run(f"PRAGMA user_version = {VERSION}")
            for statement in _TABLES:
                run(statement)
        run("COMMIT")

    def load(self) -> Kept:
        """All that is kept; before the first write. Raises ``JournalError``."""
        kept = Kept()
        try:
            for kind, name, value in self._file.execute("SELECT kind, name, value FROM kept"):
                kept.values.setdefault(kind, {})[name] = value
            rows = self._file.execute("SELECT topic, partition, data FROM batches ORDER BY topic, partition, base")
            for topic, partition, data in rows:
                kept.batches.setdefault((bytes(topic), partition), []).append(bytes(data))
        except sqlite3.Error as reason:
            raise JournalError(_words(self.path, reason)) from None
        return kept

    async def write(self, changes: Sequence[Change]) -> None:
        """Durable when it returns. Raises ``JournalError`` if nothing of it is there."""
        if self.failed:
            raise JournalError(self.failed)
        asked = _Asked(changes, self._loop.create_future())
        self._asked.put(asked)
        await asyncio.shield(asked.done)

    async def close(self) -> None:
        """Writes what was asked for, then closes the file."""
        self._asked.put(_End())
        await asyncio.to_thread(self._thread.join)
        self._file.close()

    def _work(self) -> None:
        while True:
            items = [self._asked.get()]
            while len(items) < _TOGETHER and not self._asked.empty():
                items.append(self._asked.get())
            asked = [each for each in items if isinstance(each, _Asked)]
            if asked:
                self._together(asked)
            if len(asked) < len(items):
                return

    def _together(self, asked: list[_Asked]) -> None:
        failure: JournalError | None = JournalError(self.failed) if self.failed else None
        if failure is None:
            try:
                self._file.execute("BEGIN")
                for each in asked:
                    for change in each.changes:
                        self._change(change)
                self._file.execute("COMMIT")
            except sqlite3.Error as reason:
                self.failed = _words(self.path, reason)
                failure = JournalError(self.failed)
                _log.error("nothing more is kept: %s", self.failed)
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
        self._loop.call_soon_threadsafe(_tell, asked, failure)

    def _change(self, change: Change) -> None:
        run = self._file.execute
        match change:
            case PutBatch():
                row = (change.topic_id, change.partition, change.base, change.data)
                run("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?)", row)
            case DropBatches(partition=None):
                run("DELETE FROM batches WHERE topic = ?", (change.topic_id,))
            case DropBatches():
                place = (change.topic_id, change.partition, change.below)
                run("DELETE FROM batches WHERE topic = ? AND partition = ? AND base < ?", place)
            case Put(value=None):
                run("DELETE FROM kept WHERE kind = ? AND name = ?", (change.kind, change.name))
            case Put():
                run("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", (change.kind, change.name, change.value))


def _tell(asked: list[_Asked], failure: JournalError | None) -> None:
    for each in asked:
        if each.done.done():
            continue
        if failure is None:
            each.done.set_result(None)
        else:
            each.done.set_exception(failure)
            each.done.exception()  # whoever asked may be gone


def _words(path: Path, reason: sqlite3.Error) -> str:
    text = str(reason)
    if "locked" in text:
        return f"{path} is in use by another server"
    if "not a database" in text or "malformed" in text:
        return f"{path} is no database, or a broken one: {text}"
    return f"{path}: {text}"
