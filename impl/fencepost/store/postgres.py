"""A store in PostgreSQL, for several hosts: only the leader that was elected last can write.

The leader epoch is in the database, and each append checks it in its own transaction. So an old leader that does not
know of a new one adds nothing. Needs psycopg 3 (``pip install 'fencepost[postgres]'``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from . import tables, upgrade
from .base import StoreError, partitions_of
from .sql import SqlStore
from .sqlite import NewerFormat
from .tables import FORMAT

if TYPE_CHECKING:
    import psycopg

#: "fpst": the advisory lock for the creation of tables.
_LOCK: Final = 0x66707374
#: The SQL type of bytes, and the end of a CREATE TABLE statement.
_TYPES: Final = ("BYTEA", "")
#: Classes of errors after which a commit has no effect: conflicts, constraints, no room.
_NONE_THERE: Final = ("23", "40", "53")


class PostgresConnection:
    """A schema of a database. ``where``: a libpq connection string, a URL or ``key=value`` pairs."""

    def __init__(self, where: str, partitions: int | None, new_partitions: int, schema: str) -> None:
        self._where = where
        self._asked = partitions
        self._new = new_partitions
        self._schema = schema
        self._session: psycopg.Connection[tuple[Any, ...]] | None = None

    def open(self) -> int:
        """Connect, and create the tables if the schema has none; return the number of partitions. Raises
        ``NewerFormat``, ``OtherPartitions``, and ``StoreError`` without such a database, or without psycopg."""
        try:
            import psycopg  # noqa: PLC0415  # an extra
        except ImportError:
            raise StoreError("PostgreSQL needs psycopg; install it with: pip install 'fencepost[postgres]'") from None
        try:
            self._session = psycopg.connect(self._where, autocommit=True, connect_timeout=10, client_encoding="utf8")
            return self._look()
        except psycopg.Error as failure:
            self.abandon()
            raise self.translate_error(failure) from None
        except Exception:
            self.abandon()
            raise

    def _look(self) -> int:
        schema = '"' + self._schema.replace('"', '""') + '"'
        self.run("SET synchronous_commit = on")
        self.run("BEGIN")
        self.run("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        self.run(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        self.run(f"SET search_path = {schema}")
        if self.rows("SELECT 1 FROM information_schema.tables WHERE table_schema = ?", (self._schema,)):
            ((version,),) = self.rows("SELECT version FROM format")
            if version > FORMAT:
                raise NewerFormat(
                    f"schema {self._schema} has format {version}, but this release reads formats up to {FORMAT}; use "
                    "the release that wrote it, or a later one"
                )
            has = tables.count(self)
            partitions_of(self._asked, has, self._new)
            if version == upgrade.OLD:
                upgrade.upgrade(self, *_TYPES)
                self.run("UPDATE format SET version = ?", (FORMAT,))
        else:
            has = partitions_of(self._asked, None, self._new)
            self.run("CREATE TABLE format (version INTEGER NOT NULL)")
            self.run("INSERT INTO format VALUES (?)", (FORMAT,))
            tables.make(self, has, *_TYPES)
        self.run("COMMIT")
        return has

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # transactions

    def begin(self) -> None:
        self._connected().execute("BEGIN")

    def snapshot(self) -> None:
        self._connected().execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def commit(self) -> None:
        self.run("COMMIT")

    def rollback(self) -> None:
        if self._session is not None and not self._session.closed:
            self.run("ROLLBACK")

    def none_there(self, failure: Exception) -> bool:
        """Return whether the commit was rejected; one whose response was lost may have an effect."""
        state = getattr(failure, "sqlstate", None)
        return self._session is not None and not self._session.closed and str(state)[:2] in _NONE_THERE

    def abandon(self) -> None:
        self.close()

    def translate_error(self, failure: Exception) -> Exception:
        if type(failure).__module__.partition(".")[0] != "psycopg":
            return failure
        state = getattr(failure, "sqlstate", None)
        words = " ".join(str(failure).split())
        if state == "42P01":
            return StoreError(f"schema {self._schema} is not a store; nothing in it was changed ({words})")
        return StoreError(f"PostgreSQL: {words or type(failure).__name__}")

    # statements

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._on().execute(_of(statement), values).fetchall()

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._on().execute(_of(statement), values or None).rowcount

    def many(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        with self._on().cursor() as cursor:
            cursor.executemany(_of(statement), values)
            return cursor.rowcount

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        self.many(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Return the connection; connect again if it was lost."""
        if self._session is None or self._session.closed:
            self.open()
        return self._on()

    def _on(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._session is None:
            raise StoreError("PostgreSQL: the connection is lost")
        return self._session


def _of(statement: str) -> bytes:
    """Convert to psycopg's placeholders; as bytes, since psycopg rejects text that is built at run time."""
    return statement.replace("?", "%s").encode()


class PostgresStore(SqlStore):
    """Logs in a schema of a PostgreSQL database that several hosts share. Each partition is written
    by the host that was last elected its leader; the others are fenced.

    ``where``: a libpq connection string, a URL or ``key=value`` pairs. ``partitions``: the number that the store must
    have; None: any, and ``new_partitions`` in a new store. ``schema``: created if it is missing."""

    def __init__(
        self, where: str, partitions: int | None = None, *, new_partitions: int = 1, schema: str = "fencepost"
    ) -> None:
        super().__init__(PostgresConnection(where, partitions, new_partitions, schema), f"store {schema}")
