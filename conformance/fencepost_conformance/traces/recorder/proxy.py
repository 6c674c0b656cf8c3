"""The proxy: one listener in front of each broker.

The first listener is in front of the broker that the caller names. Each other broker of the cluster gets one as soon as
an answer names it: before that answer is passed on, which has the listeners' addresses in place of the brokers'.

Each client connection has its own connection to the broker, and two tasks that move frames, one for each direction. All
run on one event loop, so the journal's lines have the order in which the proxy saw the frames. Requests and answers are
recorded before they are passed on: whatever the broker did with a request, it did between its two lines.

The proxy passes on every frame, even if it cannot decode it; the journal says so, and the checker judges. Only a stream
that cannot be cut into frames is closed, as a broker would close it. The proxy changes two things: broker addresses in
answers, and in ApiVersions answers the highest version of such an API, if the proxy could not read its addresses
(``addresses``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fencepost.wire.frames import (
    MAX_REQUEST_BYTES,
    MAX_RESPONSE_BYTES,
    MalformedFrame,
    RequestHeader,
    close,
    framed,
    read_frame,
)
from fencepost.wire.read import BadBytes

from ...common.addresses import Address
from ..wire.access import OPEN, Access
from .addresses import WITH_ADDRESSES, Limited, readdressed, with_readable_addresses
from .exchange import Exchanges, Reader
from .journal import Journal

_UNSUPPORTED_VERSION = 35
#: Listening on every interface: clients get the address that they connected to.
_WILDCARDS = ("0.0.0.0", "::", "")


class UpstreamClosed(Exception):
    """No broker can be reached any longer."""


class CannotListen(Exception):
    """The address of a listener is not available."""


@dataclass(slots=True)
class _Front:
    """A listener in front of a broker. ``here``: its address. ``away_since``: when the broker was first missed."""

    upstream: Address
    here: Address
    server: asyncio.Server
    away_since: float | None = None


@dataclass(slots=True)
class _Link:
    """One client's connection and the broker's end of it; ``host``: the proxy's host for this client."""

    number: int
    front: _Front
    host: str
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    server: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    open: Exchanges


class Proxy:
    """Call ``start``, then wait for ``finished`` until it is time to stop, then call ``stop``.

    ``upstream``: the first broker. ``nodes``: the brokers of its cluster, by id. ``node``: the id of the first one, if
    known. ``groups``: record only requests about these; empty
    means all. ``complain`` gets one line for each connection whose stream has no frames, for each kind of frame that
    could not be decoded, and for each API of which clients are offered fewer versions.
    """

    def __init__(
        self,
        upstream: Address,
        journal: Journal,
        *,
        groups: frozenset[str] = frozenset(),
        patience_s: float = 0.0,
        complain: Callable[[str], None] = lambda _: None,
        access: Access = OPEN,
        nodes: Mapping[int, Address] | None = None,
        node: int | None = None,
    ) -> None:
        self.connections = 0
        self.malformed = 0
        self._nodes = dict(nodes or {})
        self._node = node
        self._fronts: dict[int | None, _Front] = {}  #: by node id
        self._places: dict[Address, _Front] = {}  #: by each address that a broker has had
        self._opening = asyncio.Lock()
        self._upstream = upstream
        self._journal = journal
        self._reader = Reader(journal, groups, complain)
        self._patience_s = patience_s
        self._access = access
        self._complain = complain
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._failure: asyncio.Future[None] | None = None
        self._listen = upstream

    @property
    def undecoded(self) -> int:
        return self._reader.undecoded

    async def start(self, listen: Address) -> tuple[tuple[Address, Address], ...]:
        """Listen in front of each broker; returns the addresses for clients, each with its broker's.

        The first listener has the address ``listen``, the others have the next ports; free ones if its port is 0.
        Raises CannotListen.
        """
        self._failure = asyncio.get_running_loop().create_future()
        self._listen = listen
        self._places[self._upstream] = await self._open(self._node, self._upstream)
        await self._meet(self._nodes)
        return tuple((front.here, front.upstream) for front in self._fronts.values())

    async def _open(self, node: int | None, upstream: Address) -> _Front:
        host, port = self._listen.host, self._listen.port
        where = Address(host, port + len(self._fronts) if port else 0)
        try:
            # it serves once ``front`` is known
            server = await asyncio.start_server(
                lambda *ends: self._accept(front, *ends), host, where.port, start_serving=False
            )
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CannotListen(f"cannot listen on {where} for the broker at {upstream}: {reason}") from None
        front = _Front(upstream, Address(host, server.sockets[0].getsockname()[1]), server)
        self._fronts[node] = front
        await server.start_serving()
        return front

    async def _meet(self, nodes: Mapping[int, Address]) -> None:
        """Listen in front of brokers that are new, and learn new addresses of the others. Raises CannotListen."""
        async with self._opening:
            for node, address in nodes.items():
                front = self._fronts.get(node)
                if front is None:
                    front = await self._open(node, address)
                elif node != self._node and front.upstream != address:
                    front.upstream = address  # it moved; the first broker stays where the caller found it
                self._places[address] = front

    async def finished(self) -> None:
        """Wait for an external end of the recording: raises UpstreamClosed or CannotListen."""
        assert self._failure is not None
        await self._failure

    async def stop(self) -> None:
        """Close all connections and stop listening."""
        for front in self._fronts.values():
            front.server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*[close(writer) for writer in self._writers])

    def _fail(self, reason: Exception) -> None:
        if self._failure is not None and not self._failure.done():
            self._failure.set_exception(reason)

    def _away(self, front: _Front, reason: str) -> None:
        """Handle a broker that does not answer: end the recording if no broker does, and the time for it is over."""
        now = asyncio.get_running_loop().time()
        front.away_since = now if front.away_since is None else front.away_since
        away = [each.away_since for each in self._fronts.values() if each.away_since is not None]
        if len(away) == len(self._fronts) and now - max(away) >= self._patience_s:
            self._fail(UpstreamClosed(reason))

    async def _accept(self, front: _Front, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(asyncio.CancelledError):
            await self._serve(front, reader, writer)

    async def _serve(self, front: _Front, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = front.upstream
        try:
            server = await self._access.streams(upstream.host, upstream.port)
        except OSError as error:
            await close(writer)
            self._away(front, f"the broker at {upstream} refuses connections: {error.strerror or error}")
            return
        front.away_since = None
        self._writers |= {writer, server[1]}
        self.connections += 1
        host = writer.get_extra_info("sockname")[0] if self._listen.host in _WILDCARDS else self._listen.host
        link = _Link(self.connections, front, host, (reader, writer), server, Exchanges(self.connections))
        peer = writer.get_extra_info("peername")
        self._journal.connected(link.number, str(Address(*peer[:2])), str(upstream))
        by: str | None = None
        directions = {
            asyncio.ensure_future(self._requests(link)): "client",
            asyncio.ensure_future(self._answers(link)): "server",
        }
        try:
            done, _ = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            ended = [directions[task] for task in done if task.exception() is None]
            by = ended[0] if ended else None
            for task in done:
                self._explain(link, task.exception())
        finally:
            # Before anything is awaited: the recording may be ending at this very moment.
            self._journal.disconnected(link.number, by)
            for task in directions:
                task.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            await asyncio.gather(close(writer), close(server[1]))
            self._writers -= {writer, server[1]}
        if by == "server":
            await self._probe(front)

    def _explain(self, link: _Link, error: BaseException | None) -> None:
        if isinstance(error, MalformedFrame):
            self.malformed += 1
            self._complain(f"connection {link.number} is closed: {error}")
        elif isinstance(error, CannotListen):
            self._fail(error)
        elif error is not None:
            raise error

    async def _probe(self, front: _Front) -> None:
        """After the broker closed a connection, find out whether it closed that one only (idle, rejected) or is
        gone."""
        try:
            _, writer = await self._access.streams(front.upstream.host, front.upstream.port)
            await close(writer)
        except OSError:
            self._away(front, f"the broker at {front.upstream} is gone")

    # ---- requests -------------------------------------------------------------------------------------------------

    async def _requests(self, link: _Link) -> None:
        """Pass requests from client to broker, until the client closes."""
        reader, writer = link.client[0], link.server[1]
        with contextlib.suppress(ConnectionError):
            while (frame := await read_frame(reader, MAX_REQUEST_BYTES)) is not None:
                self._reader.request(link.open, frame)
                writer.write(framed(frame))
                await writer.drain()

    # ---- answers --------------------------------------------------------------------------------------------------

    async def _answers(self, link: _Link) -> None:
        """Pass answers from broker to client, until the broker closes."""
        reader, writer = link.server[0], link.client[1]
        with contextlib.suppress(ConnectionError):
            while (frame := await read_frame(reader, MAX_RESPONSE_BYTES)) is not None:
                writer.write(framed(await self._answer(link, frame)))
                await writer.drain()

    async def _answer(self, link: _Link, frame: bytes) -> bytes:
        """Record the answer, and return the frame for the client."""
        read = self._reader.answer(link.open, frame)
        if read is None:
            return frame
        if read.header.api == "api_versions":
            return self._versions(read.header, frame)
        await self._meet(read.nodes)
        if read.header.api not in WITH_ADDRESSES:
            return frame
        places = {at: Address(link.host, front.here.port) for at, front in self._places.items()}
        return readdressed(frame, places)

    def _versions(self, header: RequestHeader, frame: bytes) -> bytes:
        if int.from_bytes(frame[4:6], "big", signed=True) == _UNSUPPORTED_VERSION:
            return frame  # Kafka answers an unknown version in version 0, so that the client can ask again
        try:
            frame, limited = with_readable_addresses(frame, header.api_version, several=len(self._fronts) > 1)
        except BadBytes as odd:
            self._reader.not_decoded("an answer", header, odd)
            return frame
        for each in limited:
            self._reader.complain_once(_limit_words(each))
        return frame


def _limit_words(limited: Limited) -> str:
    why = (
        "the recorder must read it to replace the broker's address"
        if limited.api in WITH_ADDRESSES
        else "later versions name a new leader's address, which would lead clients past the recorder"
    )
    return f"clients are offered {limited.api} up to v{limited.offered}, not v{limited.has}: {why}"
