"""A relay between the recorder and a broker that is not ours. It makes the trouble of a case.

The bundled server makes its trouble itself. Any other broker, such as Apache Kafka, gets a relay in front of it. So the
same case shows how a client behaves there. The relay handles one request of a connection after another, as Kafka does.
It imitates a coordinator that moves: for that time it rejects each request to it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kio.schema.errors import ErrorCode as Code

from fencepost.protocol.errors import ErrorCode
from fencepost.wire.frames import (
    MAX_REQUEST_BYTES,
    MAX_RESPONSE_BYTES,
    MalformedFrame,
    close,
    connect,
    framed,
    read_frame,
)
from fencepost_server.apis.refusal import refused
from fencepost_server.faults import Fault, Hostile, Plan

from ...common.addresses import Address

#: requests to a coordinator, by the names of faults
_TO_COORDINATOR: Final = (
    *("join_group", "sync_group", "heartbeat", "leave_group", "consumer_group_heartbeat"),
    *("offset_commit", "offset_fetch"),
)


@dataclass(slots=True, eq=False)
class _Link:
    """One connection of a client, and the broker's end of it."""

    client: asyncio.StreamWriter
    broker: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    session: object = None
    dropped: bool = False

    async def send(self, answer: bytes) -> None:
        """Send an answer, if the connection is still open."""
        if not self.dropped:
            self.client.write(framed(answer))
            await self.client.drain()

    def drop(self, reason: str) -> None:
        """Close the connection without an answer."""
        self.dropped = True


class _Upstream:
    """The broker, as the faults see it."""

    async def __call__(self, connection: _Link, frame: bytes) -> bytes | None:
        reader, writer = connection.broker
        writer.write(framed(frame))
        await writer.drain()
        answer = await read_frame(reader, MAX_RESPONSE_BYTES)
        if answer is None:
            connection.drop("the broker closed it")
        return answer

    def refuse(self, frame: bytes, code: ErrorCode) -> bytes:
        """Return the answer that rejects a request."""
        return refused(frame, Code(int(code)))


@dataclass(slots=True)
class Relay:
    """Call ``start``, which returns the address for clients, and ``stop``. ``faults``: of the case."""

    upstream: Address
    faults: Sequence[Fault]
    _server: asyncio.Server | None = None
    _hostile: Hostile[_Link] | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> Address:
        """Listen on a free port; the times of faults count from now on."""
        plan = Plan(tuple(each for fault in self.faults for each in _imitated(fault)))
        self._hostile = Hostile(_Upstream(), plan)
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return Address("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close all connections and stop listening."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(asyncio.CancelledError, ConnectionError, MalformedFrame):
            await self._serve(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._hostile is not None
        link = _Link(writer, await connect(self.upstream.host, self.upstream.port))
        try:
            while not link.dropped and (frame := await read_frame(reader, MAX_REQUEST_BYTES)) is not None:
                answer = await self._hostile(link, frame)
                if answer is not None:
                    await link.send(answer)
        finally:
            link.dropped = True
            await asyncio.gather(close(writer), close(link.broker[1]))


def _imitated(fault: Fault) -> Iterator[Fault]:
    """Return the faults that imitate this one in front of a broker that cannot move a coordinator on request."""
    if fault.do != "move":
        yield fault
        return
    window = replace(fault, do="error", after_ms=fault.ms, until_ms=fault.ms + fault.for_ms, times=None)
    for api in _TO_COORDINATOR:
        yield replace(window, api=api, code=ErrorCode.NOT_COORDINATOR.name)
    yield replace(window, api="find_coordinator", code=ErrorCode.COORDINATOR_NOT_AVAILABLE.name)
