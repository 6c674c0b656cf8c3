"""The leader among the nodes of one database: a lease that nodes claim atomically; and the list of live nodes.

All times are the database's, so the nodes' clocks need not agree. Each claim starts a new epoch. A lease says who
should lead; the leader epoch of each partition is what prevents an old leader from writing (F-CONS-07)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import uuid4

from .base import AppendError, ClosedStore, StoreError
from .postgres import PostgresConnection
from .tables import Appends
from .worker import JobRunner

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS nodes (
        node_id INTEGER PRIMARY KEY, host TEXT NOT NULL, port INTEGER NOT NULL, life TEXT NOT NULL,
        seen TIMESTAMPTZ NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS lease (
        place INTEGER PRIMARY KEY, node_id INTEGER NOT NULL, epoch INTEGER NOT NULL, until TIMESTAMPTZ NOT NULL,
        ids BIGINT NOT NULL)""",
    f"INSERT INTO lease VALUES (0, -1, 0, now(), {1 << 48}) ON CONFLICT DO NOTHING",
)
#: "fpsl": the advisory lock for the creation of tables, and for nodes that join.
_LOCK: Final = 0x6670736C
_SPAN: Final = "make_interval(secs => ?)"
_Value = TypeVar("_Value")


class NodeInUse(StoreError):
    """Another process uses that node id."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A live node, with its address for clients."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The live nodes, and which of them leads, in which epoch; ``leader`` None: none does."""

    peers: tuple[Peer, ...]
    leader: int | None
    epoch: int


class PostgresLease:
    """The lease as one node uses it; the store has created its tables before. ``seconds``: how long a node counts as
    live after its last sign, and how long a lease lasts without renewal. Each method raises ``StoreError`` while the
    database is unreachable."""

    def __init__(self, where: str, node_id: int, seconds: float, *, schema: str = "fencepost") -> None:
        self.node_id = node_id
        self.seconds = seconds
        self._connection = PostgresConnection(where, None, 1, schema)
        self._life = uuid4().hex
        self._worker: JobRunner | None = None

    async def open(self) -> None:
        """Connect, and create the tables if they are missing."""
        self._worker = worker = JobRunner(self._connection, Appends(self._connection), "lease")
        await worker.alone(self._connection.open)

        def act() -> None:
            self._connection.run("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
            for statement in _TABLES:
                self._connection.run(statement)

        await self._within(act)

    async def join(self, host: str, port: int) -> None:
        """Take the node id, with the address where this node listens. Raises ``NodeInUse`` if another process has it at
        another address and was live recently; at the same address it cannot be live."""
        on = self._connection

        def act() -> list[tuple[str, int]]:
            on.run("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
            taken = on.rows(
                "SELECT host, port FROM nodes WHERE node_id = ? AND (host <> ? OR port <> ?)"
                f" AND seen > now() - {_SPAN}",
                (self.node_id, host, port, self.seconds),
            )
            if not taken:
                on.run("DELETE FROM nodes WHERE node_id = ?", (self.node_id,))
                on.run("INSERT INTO nodes VALUES (?, ?, ?, ?, now())", (self.node_id, host, port, self._life))
            return taken

        taken = await self._within(act)
        if taken:
            at = f"{taken[0][0]}:{taken[0][1]}"
            raise NodeInUse(
                f"node {self.node_id} is already live at {at}; give this node another number (--node-id), or wait "
                f"{self.seconds:g} s if that process has just ended"
            )

    async def close(self) -> None:
        """Disconnect."""
        worker, self._worker = self._worker, None
        if worker is not None:
            closing = worker.alone(self._connection.close)
            await worker.close()
            await closing

    async def beat(self) -> Seen:
        """Record that this node is live, if it has joined; return the live nodes and the leader."""
        on = self._connection

        def act() -> Seen:
            on.run("UPDATE nodes SET seen = now() WHERE node_id = ? AND life = ?", (self.node_id, self._life))
            rows = on.rows(
                f"SELECT node_id, host, port FROM nodes WHERE seen > now() - {_SPAN} ORDER BY node_id", (self.seconds,)
            )
            ((leader, epoch, valid),) = on.rows("SELECT node_id, epoch, until > now() FROM lease")
            return Seen(tuple(Peer(*row) for row in rows), leader if valid else None, epoch)

        return await self._within(act)

    async def claim(self) -> int | None:
        """Become leader if there is none; return the new epoch, or None."""
        statement = (
            f"UPDATE lease SET node_id = ?, epoch = epoch + 1, until = clock_timestamp() + {_SPAN}"
            " WHERE until <= clock_timestamp() RETURNING epoch"
        )
        rows = await self._within(lambda: self._connection.rows(statement, (self.node_id, self.seconds)))
        return int(rows[0][0]) if rows else None

    async def renew(self, epoch: int) -> bool:
        """Extend the lease; return whether this node still leads."""
        statement = f"UPDATE lease SET until = clock_timestamp() + {_SPAN} WHERE node_id = ? AND epoch = ?"
        values = (self.seconds, self.node_id, epoch)
        return await self._within(lambda: self._connection.run(statement, values)) == 1

    async def release(self, epoch: int) -> None:
        """Give up the lease, so that another node can claim it immediately."""
        statement = "UPDATE lease SET until = now() WHERE node_id = ? AND epoch = ?"
        await self._within(lambda: self._connection.run(statement, (self.node_id, epoch)))

    async def producer_id(self) -> int:
        """Return a producer id that no other node assigns; the leader itself assigns smaller ones."""
        statement = "UPDATE lease SET ids = ids + 1 RETURNING ids"
        ((made,),) = await self._within(lambda: self._connection.rows(statement))
        return int(made)

    async def _within(self, act: Callable[[], _Value]) -> _Value:
        if self._worker is None:
            raise ClosedStore
        try:
            return await self._worker.within(act, "lease")
        except AppendError as failure:
            raise StoreError(str(failure)) from None
