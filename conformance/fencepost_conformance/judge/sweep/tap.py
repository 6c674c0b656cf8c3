"""A tap between the recorder and the broker: it keeps the frames that pass, so that both sides can be compared."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Final

from fencepost.wire.frames import MAX_RESPONSE_BYTES, MalformedFrame, close, connect, framed, read_frame

HOST: Final = "127.0.0.1"
#: How long connections may take to end, in seconds.
_ENDING_S: Final = 5.0


@dataclass(slots=True, eq=False)
class Seen:
    """The frames of one request and its answer. ``closed``: the broker closed the connection."""

    asked: bytes
    answer: bytes | None = None
    closed: bool = False


@dataclass(slots=True)
class Tap:
    """A proxy that keeps frames. ``port``: set once it has started. ``seen``: frames by correlation id, which the sweep
    never uses twice."""

    host: str
    broker_port: int
    port: int = 0
    seen: dict[int, Seen] = field(default_factory=dict)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Wait for connections to end, as they do when the recorder has closed its side; then close the rest."""
        assert self._server is not None
        self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_ENDING_S)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(asyncio.CancelledError):
            await self._serve(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker = await connect(self.host, self.broker_port)
        mine: dict[int, Seen] = {}
        asks = asyncio.ensure_future(self._asks(reader, broker[1], mine))
        answers = asyncio.ensure_future(self._answers(broker[0], writer, mine))
        try:
            done, _ = await asyncio.wait({asks, answers}, return_when=asyncio.FIRST_COMPLETED)
            if answers in done:
                for each in mine.values():
                    each.closed = True
        finally:
            for pump in (asks, answers):
                pump.cancel()
            await asyncio.gather(asks, answers, return_exceptions=True)
            await asyncio.gather(close(writer), close(broker[1]))

    async def _asks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mine: dict[int, Seen]) -> None:
        with contextlib.suppress(ConnectionError, MalformedFrame):
            while (frame := await read_frame(reader, MAX_RESPONSE_BYTES)) is not None:
                correlation = int.from_bytes(frame[4:8], "big", signed=True)
                mine[correlation] = self.seen[correlation] = Seen(frame)
                writer.write(framed(frame))
                await writer.drain()

    @staticmethod
    async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mine: dict[int, Seen]) -> None:
        with contextlib.suppress(ConnectionError, MalformedFrame):
            while (frame := await read_frame(reader, MAX_RESPONSE_BYTES)) is not None:
                if (each := mine.get(int.from_bytes(frame[:4], "big", signed=True))) is not None:
                    each.answer = frame
                writer.write(framed(frame))
                await writer.drain()
