"""A server in this process, without sockets.

The bytes of a request go to the server's connection, and those of its answer come back. So all code between the port
and the coordinator runs. A request costs a third of one over TCP.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from fencepost.functions import KafkaFunctions
from fencepost.protocol.profiles import KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost.store import Change, MemoryStore
from fencepost_server.data.offsets_topic import OffsetsTopic
from fencepost_server.net.connection import Connection
from fencepost_server.node import Node
from fencepost_server.options import Options
from fencepost_server.restore import restore
from fencepost_server.run import Setup, hosted
from fencepost_server.security.acl import Acl, parse_rules
from fencepost_server.security.sasl import Users
from fencepost_server.server import Server

from .lines import Line
from .play import NO_LOGINS, Logins

_LENGTH: Final = 4
_HOST: Final = "127.0.0.1"
_SERVER: Final = (_HOST, 9092)


class _Transport(asyncio.Transport):
    """Both ends of a connection to a server in this process; bytes go from one to the other without a socket."""

    def __init__(self, connection: Connection, number: int) -> None:
        super().__init__({"peername": (_HOST, number), "sockname": _SERVER})
        self._connection = connection
        self._frames: deque[bytes | None] = deque()
        self._rest = b""
        self._closing = False
        self._arrived: asyncio.Future[None] | None = None
        connection.connection_made(self)

    # methods that the server calls

    def write(self, data: Any) -> None:
        data = self._rest + data
        at = 0
        while len(data) - at >= _LENGTH:
            end = at + _LENGTH + int.from_bytes(data[at : at + _LENGTH], "big")
            if end > len(data):
                break
            self._put(bytes(data[at + _LENGTH : end]))
            at = end
        self._rest = data[at:]

    def _put(self, frame: bytes | None) -> None:
        self._frames.append(frame)
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._put(None)
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    # methods that the client calls

    def send(self, data: bytes) -> None:
        if not self._closing:
            self._connection.data_received(data)

    async def receive(self) -> bytes | None:
        while not self._frames:
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        return self._frames.popleft()


class _DirectLine:
    def __init__(self, transport: _Transport) -> None:
        self._transport = transport
        self.send, self.receive = transport.send, transport.receive

    async def close(self) -> None:
        self._transport.close()


@dataclass(slots=True)
class Within:
    """A server in this process. ``connections``: all that were opened."""

    server: Server
    settled: bool = True
    connections: int = 0

    async def connect(self) -> Line:
        """Open a connection."""
        self.connections += 1
        line = _DirectLine(_Transport(self.server.listener.connection(), self.connections))
        await asyncio.sleep(0)  # the connection's task waits for the first frame
        return line


@asynccontextmanager
async def within(
    offsets_partitions: int, logins: Logins = NO_LOGINS, rules: Sequence[str] = (), rows: Sequence[Change] = ()
) -> AsyncIterator[Within]:
    """Run a server in this process. ``logins``: users that log in by PLAIN, with ``rules``, lines of ``--acl``.
    ``rows``: the initial rows of its store."""
    options = Options(offsets_partitions=offsets_partitions)
    setup = Setup(options=options, settings=Settings(group_initial_rebalance_delay_ms=0), profile=KAFKA_4_4)
    store = MemoryStore(offsets_partitions)
    async with store, hosted(setup, store, KafkaFunctions()) as groups:
        await store.write(rows)
        node = Node(
            options,
            setup.settings,
            groups,
            store,
            acl=Acl(parse_rules("\n".join(rules)), [f"User:{logins.superuser}"]) if logins.passwords else None,
            users=Users(logins.passwords, ("PLAIN",)) if logins.passwords else None,
            offsets=OffsetsTopic(groups, store),
        )
        await restore(node)
        server = Server(node)
        await server.begin()
        try:
            yield Within(server)
        finally:
            await server.stop()
