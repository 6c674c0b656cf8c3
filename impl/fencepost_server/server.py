"""A server: a node behind a port."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping

from fencepost.wire import flat
from fencepost.wire.frames import warm
from fencepost_server.apis.table import ANNOUNCED, TABLE
from fencepost_server.dispatch import Dispatch
from fencepost_server.net.connection import Answer, Connection, Doing
from fencepost_server.net.listener import Listener
from fencepost_server.net.port import Port
from fencepost_server.node import Node
from fencepost_server.options import Address
from fencepost_server.security.session import Session

_log = logging.getLogger(__name__)


class Server:
    """A node that listens on a port; call ``start``, then ``stop``. The caller owns the node and its groups.
    ``between`` may wrap the dispatch in a function of the caller, which then gets every frame. ``port`` is an open
    port."""

    def __init__(
        self,
        node: Node,
        *,
        tls: ssl.SSLContext | None = None,
        observe: Callable[[str, int, float], None] = lambda *_: None,
        between: Callable[[Dispatch], Answer] = lambda dispatch: dispatch,
        port: Port | None = None,
    ) -> None:
        self.node = node
        self._tls = tls
        self._port = port
        node.announced = ANNOUNCED
        dispatch = self._core = Dispatch(node, observe)
        self._dispatch = between(dispatch)
        begin = dispatch.begin if self._dispatch is dispatch else None  # a wrapper gets every frame
        self.listener = Listener(self._answer, node.options.limits, self._overdue, begin)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, topics: Mapping[str, int] | None = None) -> Address:
        """Create missing topics and listen. Returns the address. Raises ``OSError`` if the server cannot listen on it,
        and ``Refused`` for an invalid topic."""
        await self.begin(topics)
        return await self.listen()

    async def begin(self, topics: Mapping[str, int] | None = None) -> None:
        """Create missing topics and begin the work of the node, without a port. Raises ``Refused`` for an invalid
        topic."""
        await _begin(self.node, topics or {})
        self._tasks.append(asyncio.ensure_future(self.node.transactions.abort_late()))

    async def listen(self) -> Address:
        """Listen without creating topics or ending transactions, for a node that stands by. Returns the address."""
        self.node.address = await self.listener.start(self.node.options.listen, self._tls, self._port)
        self._tasks.append(asyncio.ensure_future(_warm()))
        return self.node.address

    async def become(self, node: Node, topics: Mapping[str, int] | None = None) -> None:
        """Replace the node that is served on this port."""
        node.announced, node.address = ANNOUNCED, self.node.address
        await _begin(node, topics or {})
        self._tasks.append(asyncio.ensure_future(node.transactions.abort_late()))
        self.node = self._core.node = node

    async def stop(self) -> None:
        """Answer the requests under way, then close all connections.

        The server first gives up its groups, like Kafka: a waiting JoinGroup, SyncGroup or heartbeat is answered
        NOT_COORDINATOR (F-UNLOAD-01). A waiting Fetch is answered with the available data.
        """
        for task in self._tasks:
            task.cancel()
        self.listener.close()
        self.node.end_waits()
        drained = asyncio.ensure_future(self.node.groups.drain())
        await asyncio.wait({drained}, timeout=self.node.options.limits.drain_s)
        if not drained.done():
            _log.error(
                "the groups were not given up within %s s: the store does not answer", self.node.options.limits.drain_s
            )
            drained.cancel()
        await self.listener.stop()

    async def _answer(self, connection: Connection, frame: bytes) -> bytes | None:
        if connection.session is None:
            local = connection.local
            connection.session = Session(
                connection.peer_host,
                asyncio.get_running_loop().time(),
                Address(host=local[0], port=local[1]) if local else None,
            )
        return await self._dispatch(connection, frame)

    def _overdue(self, connection: Connection, now: float) -> str:
        if self.node.users is None or connection.doing is Doing.ANSWERING:
            return ""
        session = connection.session
        if isinstance(session, Session) and session.logged_in:
            return ""
        waited = now - connection.opened_at
        return f"no login within {waited:.0f} s" if waited > self.node.options.limits.login_s else ""


async def _begin(node: Node, topics: Mapping[str, int]) -> None:
    """Create missing topics, and write the markers of transactions that were decided before."""
    node.serve_topics()
    for name, partitions in topics.items():
        if name not in node.topics.by_name:
            await node.create_topic(name, partitions)
    await node.transactions.finish_endings()


async def _warm() -> None:
    """Build the readers and writers of the newest versions, so that the first request of each need not wait for
    them."""
    for api in TABLE.values():
        for version in range(max(api.low, api.least, api.high - 1), api.high + 1):
            warm(api.name, version)
            flat.warm(api.name, version)
            await asyncio.sleep(0)
