"""A server in the event loop of the test, and a client that sends the messages of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from kio.index import load_entity_schema
from kio.static.constants import EntityType

from fencepost.wire import frames
from fencepost.wire.fill import fill
from fencepost.wire.later import LATER
from fencepost_server.options import Address, Limits, Options
from fencepost_server.run import Ready, Setup, serve

_OPEN: list[Client] = []
LOOPBACK = Address(host="127.0.0.1", port=0)


@asynccontextmanager
async def running(
    *, limits: Limits | None = None, auto_create: int = 0, login_ms: int = 0, **setup: Any
) -> AsyncIterator[Ready]:
    """Start a server; it ends with the block."""
    until, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    options = Options(listen=LOOPBACK, limits=limits or Limits(drain_s=2.0), auto_create=auto_create, login_ms=login_ms)
    task = asyncio.ensure_future(serve(Setup(options=options, **setup), ready.set_result, until))
    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield ready.result()
    finally:
        until.set()
        await task


def play(session: Coroutine[Any, Any, None], loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
    """Run the test; close the clients that it leaves open. ``loop`` makes another event loop."""

    async def closing() -> None:
        try:
            await session
        finally:
            for each in _OPEN:
                each.close()
            await asyncio.gather(*[each.writer.wait_closed() for each in _OPEN], return_exceptions=True)
            _OPEN.clear()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(closing())


class Client:
    """A client of any version of any API."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._count = 0

    @classmethod
    async def to(cls, at: Address, **more: Any) -> Client:
        made = cls(*await asyncio.open_connection(at.host, at.port, **more))
        _OPEN.append(made)
        return made

    async def ask(self, api: str, version: int, **values: Any) -> Any:
        """Return kio's answer. Raise ``ConnectionError`` if the connection was closed instead."""
        self.send(api, version, **values)
        return await self.answer(api, version)

    def send(self, api: str, version: int, **values: Any) -> None:
        self._count += 1
        kind = EntityType.request
        schema = LATER.get((api, version, kind)) or load_entity_schema(api, version, kind)
        header = frames.RequestHeader(frames.API_KEYS[api], version, self._count, "client")
        self.writer.write(frames.framed(frames.write_request(header, fill(schema, values))))

    async def answer(self, api: str, version: int) -> Any:
        frame = await asyncio.wait_for(frames.read_frame(self.reader, 1 << 30), 60)
        if frame is None:
            raise ConnectionResetError("closed")
        return frames.read_response(api, version, frame)

    async def closed(self, seconds: float = 60.0) -> bool:
        """Whether the server closes the connection within that time."""
        try:
            return await asyncio.wait_for(self.reader.read(1), seconds) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True

    def close(self) -> None:
        self.writer.close()
