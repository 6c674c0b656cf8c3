"""A connection. It handles one frame at a time, and reads the next one when it has answered, like Kafka.

A frame is a length of four bytes and a request. Clients send several requests without waiting for answers, and expect
the answers in the same order. So a connection never handles two requests at once; the bytes that arrive meanwhile wait
in its buffer.

There are two ways through this file:

- *With the task* (``_run``): wait for a whole frame, answer it, write the answer, repeat. This serves every API. A
  Fetch may wait here for seconds, and so do the requests behind it.
- *Without the task* (``_handle_buffered``): a request that only the coordinator handles, as a heartbeat or a commit, is
  handled where its bytes arrive. That saves a switch to the task and back. It is possible only while the task waits for
  a frame. ``begin`` returns the answer, or a ``Begun`` whose answer comes when the records are durable (``_finish``),
  or None for a frame that needs the task; then the task wakes up and handles it.

*Backpressure.* A peer that sends faster than it is served fills the buffer; above ``_AHEAD`` bytes the connection stops
reading, and TCP stops the peer. A peer that does not read its answers fills the transport's buffer; then the connection
handles nothing further until the peer has read (``pause_writing``). All connections together hold a limited number of
bytes (``Memory``); above that limit, connections with a long buffer are closed.

*Reading.* All connections of a listener receive into one buffer, and each copies its bytes before the loop reads for
another. Otherwise asyncio allocates 256 KiB for each read, which takes longer than the read itself.

*Ends.* ``doing`` says what the connection waits for, and ``overdue`` which time limit that has. A frame that Kafka does
not answer raises ``MalformedFrame`` and closes this connection only. ``drain`` lets the request under way finish;
``drop`` does not. When the connection is lost, the request under way is cancelled: a client that gives up a JoinGroup
must not keep its place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from fencepost.protocol.frozen import quick
from fencepost.protocol.messages import ResponseBody
from fencepost.wire.frames import MalformedFrame
from fencepost_server.options import Limits

_log = logging.getLogger(__name__)

#: bytes to read ahead while a request is being answered
_AHEAD: Final = 64 * 1024
#: bytes to receive at a time, as asyncio does
_RECEIVED: Final = 256 * 1024
_LENGTH: Final = 4


class Doing(Enum):
    """The state of a connection, which decides its time limit."""

    IDLE = "idle"
    READING = "reading"
    ANSWERING = "answering"
    WRITING = "writing"


#: Returns the answer to a frame; None if it has none. Raises ``MalformedFrame`` to close the connection.
Answer: TypeAlias = Callable[["Connection", bytes], Awaitable[bytes | None]]


class Memory:
    """The memory that unanswered requests of all connections use: a count of bytes with a limit. ``arrived``: the
    buffer in which they all receive."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.arrived = memoryview(bytearray(_RECEIVED))

    def add(self, size: int) -> None:
        """Add to the count; a negative size subtracts."""
        self.used += size

    @property
    def exhausted(self) -> bool:
        """Whether the count is above the limit."""
        return self.used > self.limit


@quick
@dataclass(frozen=True, slots=True)
class Begun:
    """A request that was begun. When ``done`` has ended, ``answer`` returns the frame of the answer; None if it has
    none."""

    done: asyncio.Future[ResponseBody]
    answer: Callable[[], bytes | None]


#: Answers a frame, or begins it, without awaiting. None: it has done nothing, and the frame needs an ``Answer``.
Begin: TypeAlias = Callable[["Connection", bytes], bytes | Begun | None]


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of a connection. It calls ``opened`` and ``closed`` with itself; if ``opened`` returns
    False, the connection is closed. ``session`` belongs to ``answer``."""

    def __init__(
        self,
        answer: Answer,
        limits: Limits,
        memory: Memory,
        opened: Callable[[Connection], bool],
        closed: Callable[[Connection], None],
        *,
        begin: Begin | None = None,
    ) -> None:
        self.session: object = None
        self.peer_host = ""
        self.peer = ""
        self.doing = Doing.IDLE
        self.requests = 0
        self._answer = answer
        self._begin = begin
        self._begun: Begun | None = None
        self._limits = limits
        self._memory = memory
        self._opened = opened
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self.since = self.opened_at = self._loop.time()
        self.local: tuple[str, int] | None = None
        self._buffer = bytearray()
        self._arrived: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._held = 0
        self._full = False
        self._paused = False
        self._draining = False
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    # calls of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the connection's task, or close the connection if there are too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        name = transport.get_extra_info("peername") or ("", 0)
        local = transport.get_extra_info("sockname")
        self.local = (str(local[0]), int(local[1])) if local else None
        self.peer_host, self.peer = str(name[0]), f"{name[0]}:{name[1]}"
        if not self._opened(self):
            transport.abort()
            self._transport = None
            return
        self._task = self._loop.create_task(self._run())

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to receive into."""
        return self._memory.arrived

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that were received."""
        self.data_received(self._memory.arrived[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        """Buffer the data and handle complete frames. Stop reading while the buffer is above ``_AHEAD``; close the
        connection if, in addition, all connections together are above their limit."""
        if self._transport is None or self._transport.is_closing():
            return
        self._buffer += data
        self._hold(len(data))
        if self.doing is Doing.IDLE:
            self._now(Doing.READING)
        if self._begun is None and not self._full and self._arrived is not None and not self._arrived.done():
            self._handle_buffered()
        elif len(self._buffer) > _AHEAD:
            self._pause()
        if self._memory.exhausted and len(self._buffer) > _AHEAD:
            self.drop(f"unanswered requests of all connections exceed {self._memory.limit} bytes")

    def pause_writing(self) -> None:
        """Note that the peer does not read its answers."""
        self._full = True

    def resume_writing(self) -> None:
        """Continue: the peer has read most of the data."""
        self._full = False
        if self._writable is not None:
            if not self._writable.done():
                self._writable.set_result(None)
        elif self.doing is Doing.WRITING:
            self._handle_buffered()

    def eof_received(self) -> bool:
        """Close the connection: the peer sends no further data."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Clean up and cancel the request under way: the connection is closed."""
        if self._transport is None:
            return
        self._transport = None
        self._hold(-self._held)
        self._buffer.clear()
        if self._task is not None:
            self._task.cancel()
        if self._begun is not None:
            self._begun.done.cancel()
        self._closed(self)

    # calls of the server

    def drop(self, reason: str) -> None:
        """Close the connection immediately, even if a request is under way."""
        if self._transport is not None:
            _log.warning("connection from %s closed: %s", self.peer, reason)
            self._hold(-self._held)
            self._buffer.clear()
            self._transport.abort()

    async def send(self, answer: bytes) -> None:
        """Write an additional answer, if the connection is still open. For injected faults."""
        if self._transport is not None:
            await self._write(answer)

    def drain(self) -> None:
        """Close the connection when the request under way is answered; immediately if there is none."""
        self._draining = True
        if self.doing in (Doing.IDLE, Doing.READING) and self._transport is not None:
            self._transport.close()

    def overdue(self, now: float) -> str:
        """Return which time limit the peer has exceeded, as text; empty if none."""
        waited = now - self.since
        if self.doing is Doing.READING and waited > self._limits.frame_s:
            return f"incomplete request after {waited:.0f} s"
        if self.doing is Doing.WRITING and waited > self._limits.write_s:
            return f"the client did not read its answer for {waited:.0f} s"
        if self.doing is Doing.IDLE and waited > self._limits.idle_s:
            return f"no request for {waited:.0f} s"
        return ""

    # the task

    def _now(self, doing: Doing) -> None:
        self.doing = doing
        self.since = self._loop.time()

    def _hold(self, size: int) -> None:
        """Add to the bytes of unanswered requests; a negative size subtracts."""
        self._held += size
        self._memory.add(size)

    def _pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._transport.pause_reading()
            self._paused = True

    def _resume(self) -> None:
        if self._paused and self._transport is not None:
            self._transport.resume_reading()
            self._paused = False

    async def _run(self) -> None:
        try:
            while not self._draining:
                frame = await self._frame()
                self._now(Doing.ANSWERING)
                self.requests += 1
                answer = await self._answer(self, frame)
                if answer is not None:
                    await self._write(answer)
                self._hold(-len(frame) - _LENGTH)
                self._now(Doing.READING if self._buffer else Doing.IDLE)
        except MalformedFrame as reason:
            _log.warning("connection from %s closed: %s", self.peer, reason)
        except asyncio.CancelledError:
            pass
        except Exception:
            _log.exception("connection from %s closed: internal error", self.peer)
        if self._transport is not None:
            self._transport.close()

    def _whole(self) -> bytes | None:
        """Return the next frame if it is complete; it stays in the buffer. Raises ``MalformedFrame`` for an invalid
        length."""
        if len(self._buffer) < _LENGTH:
            return None
        length = int.from_bytes(self._buffer[:_LENGTH], "big", signed=True)
        if not 0 <= length <= self._limits.frame_bytes:
            raise MalformedFrame(
                f"the length of a request must be between 0 and {self._limits.frame_bytes} bytes (got {length})"
            )
        end = _LENGTH + length
        return bytes(self._buffer[_LENGTH:end]) if len(self._buffer) >= end else None

    async def _frame(self) -> bytes:
        while (frame := self._whole()) is None:
            self._arrived = self._loop.create_future()
            self._resume()
            await self._arrived
        self._arrived = None
        del self._buffer[: _LENGTH + len(frame)]
        return frame

    async def _write(self, answer: bytes) -> None:
        assert self._transport is not None
        self._transport.write(len(answer).to_bytes(_LENGTH, "big") + answer)
        if self._full:
            self._now(Doing.WRITING)
            self._writable = self._loop.create_future()
            await self._writable
            self._writable = None

    # without the task

    def _handle_buffered(self) -> None:
        """Handle frames that need no task, while the task waits for one. Wake the task at the first that needs it."""
        if self._draining:
            self._close()
            return
        out: list[bytes] = []
        wake = False
        try:
            while self._begun is None and (frame := self._whole()) is not None:
                begun = None if self._begin is None else self._begin(self, frame)
                if begun is None:
                    wake = True
                    break
                size = _LENGTH + len(frame)
                del self._buffer[:size]
                self.requests += 1
                if isinstance(begun, Begun):
                    self._begun = begun
                    begun.done.add_done_callback(lambda _, size=size: self._finish(size))  # type: ignore[misc]
                else:
                    out += (len(begun).to_bytes(_LENGTH, "big"), begun)
                    self._hold(-size)
        except MalformedFrame:
            wake = True  # the task finds the same error and closes the connection
        if out and self._transport is not None:
            self._transport.write(b"".join(out))
        if self._full:
            self._now(Doing.WRITING)
        elif self._begun is not None:
            self._now(Doing.ANSWERING)
        elif out or not self._buffer or self.doing is not Doing.READING:  # the time limit of a partial frame starts now
            self._now(Doing.READING if self._buffer else Doing.IDLE)
        if self._begun is None and not self._full:
            self._resume()
            if wake and self._arrived is not None and not self._arrived.done():
                self._arrived.set_result(None)

    def _finish(self, size: int) -> None:
        """Send the answer to the request that was begun."""
        begun, self._begun = self._begun, None
        if begun is None or self._transport is None or begun.done.cancelled():
            return
        self._hold(-size)
        try:
            answer = begun.answer()
        except Exception:
            _log.exception("connection from %s closed: internal error", self.peer)
            self._close()
            return
        if answer is not None:
            self._transport.write(len(answer).to_bytes(_LENGTH, "big") + answer)
        if self._full:
            self._now(Doing.WRITING)
        else:
            self._now(Doing.IDLE)
            self._handle_buffered()

    def _close(self) -> None:
        """Close the connection when all data is sent."""
        if self._transport is not None:
            self._transport.close()
