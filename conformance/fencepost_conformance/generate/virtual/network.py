"""A network between clients and a server on one virtual loop: it delays, stalls and closes connections.

It is a proxy for frames. For each connection it keeps the correlation ids of open requests, and checks the answers:
each must belong to the oldest open request. With TLS it sees only bytes, and may lose half a record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from random import Random

from .broken import Broken

_SIZE_BYTES = 4
#: where the correlation id begins in a request, and in an answer
_IN_REQUEST, _IN_ANSWER = 4, 0


@dataclass(frozen=True, slots=True)
class NetworkFaults:
    """The faults of a network. ``latency_s``: the longest delay of a frame. ``lose``: the chance that a frame is lost
    and its connection closed. ``stall``: the chance that a frame takes ``stall_s`` longer."""

    latency_s: float = 0.0
    lose: float = 0.0
    stall: float = 0.0
    stall_s: float = 0.0


@dataclass(slots=True, eq=False)
class _Pair:
    """The two halves of one connection; ``waiting``: the correlation ids of open requests."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    waiting: deque[int] = field(default_factory=deque)

    def close(self) -> None:
        self.client.close()
        self.server.close()


class Network:
    """A proxy that listens at ``at`` and forwards frames to ``to``, or bytes if it is ``opaque``. Once it is ``calm``,
    it loses and stalls nothing, and delivers stalled frames at once: a stall may outlast the time in which a schedule
    must come to rest."""

    def __init__(
        self,
        at: tuple[str, int],
        to: tuple[str, int],
        faults: NetworkFaults,
        random: Random,
        *,
        opaque: bool = False,
    ) -> None:
        self._opaque = opaque
        self.calm = asyncio.Event()
        self.broken: Broken | None = None
        self.late_s = -inf  #: the last time of a request whose client had closed the connection before it arrived
        self._at, self._to = at, to
        self._faults = faults
        self._random = random
        self._pairs: set[_Pair] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, *self._at)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Close every connection."""
        for pair in [*self._pairs]:
            pair.close()

    @property
    def unanswered(self) -> int:
        """The number of open requests on all open connections."""
        return sum(len(pair.waiting) for pair in self._pairs)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.append(writer)
        try:
            answers, server = await asyncio.open_connection(*self._to)
        except OSError:
            writer.close()
            return
        finally:
            self._tasks.discard(task)
        self._writers.append(server)
        pair = _Pair(writer, server)
        self._pairs.add(pair)
        for source, sink, requests in ((reader, server, True), (answers, writer, False)):
            carry = asyncio.create_task(self._carry(pair, source, sink, requests), name="network")
            self._tasks.add(carry)
            carry.add_done_callback(self._tasks.discard)

    async def _carry(
        self, pair: _Pair, source: asyncio.StreamReader, sink: asyncio.StreamWriter, requests: bool
    ) -> None:
        """Forward frames until one side closes or a frame is lost."""
        try:
            while True:
                data = await self._next(source)
                await self._wait()
                if not data or (not self.calm.is_set() and self._random.random() < self._faults.lose):
                    return
                if requests and source._eof:  # type: ignore[attr-defined]  # at_eof() is false while bytes are left
                    self.late_s = asyncio.get_running_loop().time()
                if not self._opaque:
                    self._note(pair, data[_SIZE_BYTES:], requests)
                sink.write(data)
                await sink.drain()
        except (OSError, asyncio.IncompleteReadError):
            return
        except Broken as broken:
            self.broken = self.broken or broken
        finally:
            self._pairs.discard(pair)
            pair.close()

    async def _next(self, source: asyncio.StreamReader) -> bytes:
        """A frame with its size, or some bytes; none at the end."""
        if self._opaque:
            return await source.read(self._random.choice((100, 4_096, 4_096)))
        size = await source.readexactly(_SIZE_BYTES)
        return size + await source.readexactly(int.from_bytes(size, "big"))

    async def _wait(self) -> None:
        await asyncio.sleep(self._random.random() * self._faults.latency_s)
        if not self.calm.is_set() and self._random.random() < self._faults.stall:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.calm.wait(), self._faults.stall_s)

    def _note(self, pair: _Pair, frame: bytes, requests: bool) -> None:
        at = _IN_REQUEST if requests else _IN_ANSWER
        number = int.from_bytes(frame[at : at + 4], "big")
        if requests:
            pair.waiting.append(number)
        elif not pair.waiting or pair.waiting.popleft() != number:
            raise Broken(f"an answer has correlation id {number}, which is not that of the oldest open request")
