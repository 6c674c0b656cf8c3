"""The listener: it accepts connections up to a limit, closes those that exceed a time limit, and drains at the end."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable

from fencepost_server.net.connection import Answer, Begin, Connection, Doing, Memory
from fencepost_server.net.port import BACKLOG, Port
from fencepost_server.options import Address, Limits

_log = logging.getLogger(__name__)


class Listener:
    """Accepts connections; call ``start``, then ``stop``. ``overdue`` returns a further reason to close a connection,
    or an empty text. A frame goes to ``begin`` first, and to ``answer`` only if ``begin`` returns None."""

    def __init__(
        self,
        answer: Answer,
        limits: Limits,
        overdue: Callable[[Connection, float], str] = lambda _, __: "",
        begin: Begin | None = None,
    ) -> None:
        self.memory = Memory(limits.buffered_bytes)
        self.connections: set[Connection] = set()
        self.accepted = 0
        self.refused = 0
        self.dropped = 0
        self._answer = answer
        self._begin = begin
        self._limits = limits
        self._overdue = overdue
        self._servers: list[asyncio.Server] = []
        self._closed = False
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self, listen: Address, tls: ssl.SSLContext | None = None, port: Port | None = None) -> Address:
        """Listen on an address, or accept connections on an open ``port``. Returns the address with its port. Raises
        ``OSError`` if it cannot listen."""
        loop = asyncio.get_running_loop()
        self._closed = False
        if port is None:
            made = await loop.create_server(self.connection, listen.host, listen.port, ssl=tls, backlog=BACKLOG)
            self._servers.append(made)
            address = Address(host=listen.host, port=made.sockets[0].getsockname()[1])
        else:
            address = port.address
            for each in port.sockets:
                self._servers.append(await loop.create_server(self.connection, sock=each, ssl=tls, backlog=BACKLOG))
        self._sweeper = loop.create_task(self._sweep())
        return address

    def close(self) -> None:
        """Accept no further connections and requests; each connection closes after the answer under way."""
        self._closed = True
        for server in self._servers:
            server.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for each in list(self.connections):
            each.drain()

    async def stop(self) -> None:
        """Call ``close``, wait at most ``drain_s`` seconds for the answers under way, then close all connections."""
        if not self._servers:
            return
        self.close()
        deadline = asyncio.get_running_loop().time() + self._limits.drain_s
        while self.connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for each in list(self.connections):
            each.drop("the server stops")
        await asyncio.sleep(0)
        self._servers.clear()

    def connection(self) -> Connection:
        """Return a new connection, for a transport that the caller makes."""
        return Connection(self._answer, self._limits, self.memory, self._open, self._close, begin=self._begin)

    def _open(self, connection: Connection) -> bool:
        if self._closed:  # its TLS handshake has taken until now
            return False
        if len(self.connections) >= self._limits.connections:
            self.refused += 1
            _log.warning("connection from %s rejected: %s are open", connection.peer, len(self.connections))
            return False
        self.accepted += 1
        self.connections.add(connection)
        return True

    def _close(self, connection: Connection) -> None:
        self.connections.discard(connection)

    async def _sweep(self) -> None:
        limits = self._limits
        every = min(1.0, min(limits.frame_s, limits.write_s, limits.idle_s, limits.login_s) / 4)
        while True:
            await asyncio.sleep(every)
            now = asyncio.get_running_loop().time()
            for each in list(self.connections):
                reason = each.overdue(now) or ("" if each.doing is Doing.ANSWERING else self._overdue(each, now))
                if reason:
                    self.dropped += 1
                    each.drop(reason)
