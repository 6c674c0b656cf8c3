"""One connection: frames are taken one at a time, and each is answered before the next is looked at, as Kafka does.

A task takes them; but what needs nobody but the coordinator is answered where its bytes come in, without waking it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from ..options import Limits
from ..wire.frames import MalformedFrame
from .memory import Memory

_log = logging.getLogger(__name__)

#: more than this is not read ahead while a request is being answered
_AHEAD: Final = 64 * 1024
_LENGTH: Final = 4


class Doing(Enum):
    """What a connection waits for, which decides how long it may."""

    IDLE = "idle"
    READING = "reading"
    ANSWERING = "answering"
    WRITING = "writing"


#: Answers a frame; None for what has no answer. Raises ``MalformedFrame`` to have the connection closed.
Answer: TypeAlias = Callable[["Connection", bytes], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class Begun:
    """A request that is answered when ``done`` is; ``answer`` then gives the frame, None if there is none."""

    done: asyncio.Future[Any]
    answer: Callable[[], bytes | None]


#: Answers a frame on the spot, or begins to; None: nothing was done, it is for an ``Answer``.
Begin: TypeAlias = Callable[["Connection", bytes], bytes | Begun | None]


class Connection(asyncio.Protocol):
    """``opened`` and ``closed`` are told of it; ``opened`` says whether it may stay. ``session`` is for who answers."""

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

    # what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The peer is connected; it is told to go if there are too many."""
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

    def data_received(self, data: bytes) -> None:
        """Keeps what came; reads no further while too much waits, here or at all connections together."""
        if self._transport is None or self._transport.is_closing():
            return
        self._buffer += data
        self._hold(len(data))
        if self.doing is Doing.IDLE:
            self._now(Doing.READING)
        if self._begun is None and not self._full and self._arrived is not None and not self._arrived.done():
            self._go_on()
        elif len(self._buffer) > _AHEAD:
            self._pause()
        if self._memory.exhausted and len(self._buffer) > _AHEAD:
            self.drop("all connections together have sent more than is kept of them")

    def pause_writing(self) -> None:
        """The peer does not take what is written."""
        self._full = True

    def resume_writing(self) -> None:
        """The peer has taken most of it."""
        self._full = False
        if self._writable is not None:
            if not self._writable.done():
                self._writable.set_result(None)
        elif self.doing is Doing.WRITING:
            self._go_on()

    def eof_received(self) -> bool:
        """The peer sends no more: the connection is closed."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The peer is gone; what was begun for it is given up."""
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

    # what others call

    def drop(self, reason: str) -> None:
        """Close at once, whatever is under way."""
        if self._transport is not None:
            _log.warning("connection from %s is closed: %s", self.peer, reason)
            self._hold(-self._held)
            self._buffer.clear()
            self._transport.abort()

    async def send(self, answer: bytes) -> None:
        """Write one more answer than was asked for, if the connection is still there."""
        if self._transport is not None:
            await self._write(answer)

    def drain(self) -> None:
        """Close when the request that is under way is answered; at once if there is none."""
        self._draining = True
        if self.doing in (Doing.IDLE, Doing.READING) and self._transport is not None:
            self._transport.close()

    def overdue(self, now: float) -> str:
        """Why the peer has kept this server waiting for too long; empty if it has not."""
        waited = now - self.since
        if self.doing is Doing.READING and waited > self._limits.frame_s:
            return f"a frame is not whole after {waited:.0f} s"
        if self.doing is Doing.WRITING and waited > self._limits.write_s:
            return f"an answer is not taken after {waited:.0f} s"
        if self.doing is Doing.IDLE and waited > self._limits.idle_s:
            return f"it was silent for {waited:.0f} s"
        return ""

    # the work

    def _now(self, doing: Doing) -> None:
        self.doing = doing
        self.since = self._loop.time()

    def _hold(self, size: int) -> None:
        """So many bytes more of requests that are not answered; fewer if negative."""
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
            _log.warning("connection from %s is closed: %s", self.peer, reason)
        except asyncio.CancelledError:
            pass
        except Exception:
            _log.exception("connection from %s is closed: a fault of this server", self.peer)
        if self._transport is not None:
            self._transport.close()

    def _whole(self) -> bytes | None:
        """The next frame, if it is whole; it stays in the buffer. Raises ``MalformedFrame``."""
        if len(self._buffer) < _LENGTH:
            return None
        length = int.from_bytes(self._buffer[:_LENGTH], "big", signed=True)
        if not 0 <= length <= self._limits.frame_bytes:
            raise MalformedFrame(
                f"a frame of {length} bytes is announced; at most {self._limits.frame_bytes} are allowed"
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

    def _go_on(self) -> None:
        """The task waits for a frame. Take those that are answered on the spot, up to one that is not."""
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
            wake = True  # the task says so
        if out and self._transport is not None:
            self._transport.write(b"".join(out))
        if self._full:
            self._now(Doing.WRITING)
        elif self._begun is not None:
            self._now(Doing.ANSWERING)
        elif out or not self._buffer or self.doing is not Doing.READING:  # the time of a half frame begins now
            self._now(Doing.READING if self._buffer else Doing.IDLE)
        if self._begun is None and not self._full:
            self._resume()
            if wake and self._arrived is not None and not self._arrived.done():
                self._arrived.set_result(None)

    def _finish(self, size: int) -> None:
        """What was begun is answered."""
        begun, self._begun = self._begun, None
        if begun is None or self._transport is None or begun.done.cancelled():
            return
        self._hold(-size)
        try:
            answer = begun.answer()
        except Exception:
            _log.exception("connection from %s is closed: a fault of this server", self.peer)
            self._close()
            return
        if answer is not None:
            self._transport.write(len(answer).to_bytes(_LENGTH, "big") + answer)
        if self._full:
            self._now(Doing.WRITING)
        else:
            self._now(Doing.IDLE)
            self._go_on()

    def _close(self) -> None:
        """When all is sent."""
        if self._transport is not None:
            self._transport.close()
