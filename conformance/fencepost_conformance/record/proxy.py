"""The proxy: one listener before one broker.

Each client connection has a connection of its own to the broker, and two tasks that move frames, one a direction. All
run on one event loop, so the order of the journal's lines is the order in which the proxy saw the frames. A request is
written down before it is passed on, an answer likewise: whatever the broker did with a request it did between its two
lines.

Nothing is interpreted but what must be: the APIs of the journal are decoded, answers with broker addresses are
rewritten, and ApiVersions answers offer no version of those APIs that could not be decoded.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencepost.server.wire.frames import (
    API_KEYS,
    MAX_REQUEST_BYTES,
    MAX_RESPONSE_BYTES,
    MalformedFrame,
    RequestHeader,
    UnknownErrorCode,
    close,
    framed,
    read_correlation_id,
    read_frame,
    read_request,
    read_request_header,
    read_response,
    write_response,
)

from ..wire.access import OPEN, Access
from .addresses import WITH_ADDRESSES, Address, SeveralBrokers, on_proxy, within_known_versions
from .journal import FETCH, RECORDED, Journal, groups_of
from .reading import Quiet, says_something

#: Decoded on the way back; every other answer passes as it is.
_AWAITED = RECORDED | WITH_ADDRESSES | {"api_versions"}
_UNSUPPORTED_VERSION = 35
#: bytes that are kept of a Fetch's answer that cannot be decoded
_KEPT_OF_FETCH = 64
#: Listening on every interface: a client is told the one that it came in by.
_WILDCARDS = ("0.0.0.0", "::", "")


class UpstreamClosed(Exception):
    """The broker cannot be reached any more."""


@dataclass(slots=True)
class _Link:
    """One client's connection and the broker's end of it; ``here`` is what this client is told to be the broker."""

    number: int
    here: Address
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    server: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    #: correlation id -> the open request of an API in _AWAITED, and whether it is written down.
    open: dict[int, tuple[RequestHeader, bool]] = field(default_factory=dict)
    #: which fetches say nothing new, and those that are open, by correlation id
    quiet: Quiet = field(default_factory=Quiet)
    held: dict[int, dict[str, Any]] = field(default_factory=dict)


class Proxy:
    """Use ``start``, then ``finished`` until it is time to stop, then ``stop``.

    ``groups``: only requests about these are written down; empty means all. ``complain`` gets one line for each
    connection that was closed because of a malformed frame.
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
    ) -> None:
        self.connections = 0
        self.malformed = 0
        self._upstream = upstream
        self._journal = journal
        self._groups = groups
        self._patience_s = patience_s
        self._access = access
        self._away_since: float | None = None
        self._complain = complain
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._failure: asyncio.Future[None] | None = None
        self._server: asyncio.Server | None = None
        self._here = upstream

    async def start(self, listen: Address) -> Address:
        """Listen; returns the address that clients are told. Raises OSError if that address cannot be had."""
        self._failure = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._accept, listen.host, listen.port)
        port = self._server.sockets[0].getsockname()[1]
        self._here = Address(listen.host, port)
        return self._here

    async def finished(self) -> None:
        """Wait for what ends a recording from outside: raises UpstreamClosed or SeveralBrokers."""
        assert self._failure is not None
        await self._failure

    async def stop(self) -> None:
        """Close all connections and stop listening."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*[close(writer) for writer in self._writers])

    def _fail(self, reason: Exception) -> None:
        if self._failure is not None and not self._failure.done():
            self._failure.set_exception(reason)

    def _away(self, reason: str) -> None:
        """The broker does not answer: that ends the recording, unless it may come back and was not away too long."""
        now = asyncio.get_running_loop().time()
        self._away_since = now if self._away_since is None else self._away_since
        if now - self._away_since >= self._patience_s:
            self._fail(UpstreamClosed(reason))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(asyncio.CancelledError):
            await self._serve(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await self._access.streams(self._upstream.host, self._upstream.port)
        except OSError as error:
            await close(writer)
            self._away(f"the broker at {self._upstream} refuses connections: {error.strerror or error}")
            return
        self._away_since = None
        self._writers |= {writer, server[1]}
        self.connections += 1
        local = writer.get_extra_info("sockname")
        here = Address(local[0], local[1]) if self._here.host in _WILDCARDS else self._here
        link = _Link(self.connections, here, (reader, writer), server)
        peer = writer.get_extra_info("peername")
        self._journal.connected(link.number, str(Address(*peer[:2])), str(self._upstream))
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
            await self._probe()

    def _explain(self, link: _Link, error: BaseException | None) -> None:
        if isinstance(error, MalformedFrame):
            self.malformed += 1
            self._complain(f"connection {link.number} is closed: {error}")
        elif isinstance(error, SeveralBrokers):
            self._fail(error)
        elif error is not None:
            raise error

    async def _probe(self) -> None:
        """The broker closed a connection: was it that one (idle, refused), or is the broker gone?"""
        try:
            _, writer = await self._access.streams(self._upstream.host, self._upstream.port)
            await close(writer)
        except OSError:
            self._away(f"the broker at {self._upstream} is gone")

    async def _requests(self, link: _Link) -> None:
        """Client to broker, until the client closes."""
        reader, writer = link.client[0], link.server[1]
        with contextlib.suppress(ConnectionError):
            while (frame := await read_frame(reader, MAX_REQUEST_BYTES)) is not None:
                header = read_request_header(frame)
                if header.api in _AWAITED:
                    link.open[header.correlation_id] = header, self._note_request(link, header, frame)
                writer.write(framed(frame))
                await writer.drain()

    def _note_request(self, link: _Link, header: RequestHeader, frame: bytes) -> bool:
        if header.api not in RECORDED:
            return False
        try:
            entity = read_request(header, frame)
        except MalformedFrame:
            self._journal.sent_undecoded(link.number, header, frame)
            raise
        groups = groups_of(header.api, entity)
        if self._groups and groups is not None and not groups & self._groups:
            return False
        if header.api == FETCH and link.quiet.is_one(body := self._journal.asked(entity)):
            link.held[header.correlation_id] = body
        else:
            self._journal.sent(link.number, header, entity)
        return True

    def _note_undecoded(self, link: _Link, header: RequestHeader, frame: bytes, code: int | None) -> None:
        if (held := link.held.pop(header.correlation_id, None)) is not None:
            self._journal.fetches(link.number, header, {**held, "late": True})
        kept = frame[:_KEPT_OF_FETCH] if header.api == FETCH else frame  # its records are nobody's business
        self._journal.received_undecoded(link.number, header, kept, code)

    def _brings_something(self, link: _Link, header: RequestHeader, entity: Any) -> bool:
        """Whether the answer is to be written down; a Fetch that said nothing new is then, before it."""
        held = link.held.pop(header.correlation_id, None)
        if held is None:
            return True
        if not says_something(self._journal.told(entity)):
            return False
        self._journal.fetches(link.number, header, {**held, "late": True})
        return True

    async def _answers(self, link: _Link) -> None:
        """Broker to client, until the broker closes."""
        reader, writer = link.server[0], link.client[1]
        with contextlib.suppress(ConnectionError):
            while (frame := await read_frame(reader, MAX_RESPONSE_BYTES)) is not None:
                correlation = read_correlation_id(frame)
                if correlation in link.open:
                    header, noted = link.open.pop(correlation)
                    frame = self._answer(link, header, frame, noted)
                writer.write(framed(frame))
                await writer.drain()

    def _answer(self, link: _Link, header: RequestHeader, frame: bytes, noted: bool) -> bytes:
        if header.api in RECORDED and not noted and header.api not in WITH_ADDRESSES:
            return frame
        if header.api == "api_versions" and int.from_bytes(frame[4:6], "big", signed=True) == _UNSUPPORTED_VERSION:
            return frame  # Kafka answers an unknown version in version 0, for the client to ask again
        try:
            entity: Any = read_response(header.api, header.api_version, frame)
        except UnknownErrorCode as odd:  # for the client to make of it what it can
            if noted:
                self._note_undecoded(link, header, frame, odd.code)
            return frame
        except MalformedFrame:
            if noted:
                self._note_undecoded(link, header, frame, None)
            raise
        changed = entity
        if header.api == "api_versions":
            changed = within_known_versions(entity, _AWAITED, API_KEYS)
        elif header.api in WITH_ADDRESSES:
            changed = on_proxy(entity, link.here)
            if header.api == "metadata":
                self._journal.learn(entity)
        if noted and self._brings_something(link, header, entity):
            self._journal.received(link.number, header, entity)
        return frame if changed is entity else write_response(header.correlation_id, changed)
