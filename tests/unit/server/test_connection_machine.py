"""One connection in virtual time: frames in pieces, together, and behind each other; peers that are slow, or
disconnect.

The model has the received bytes and the answered frames. There are three kinds of frames: ``at once`` is answered where
its bytes arrive, ``task`` by the connection's task, and ``later`` on request of the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from fencepost_conformance.generate.virtual.loop import run
from fencepost_server.net.connection import Begun, Connection, Memory
from fencepost_server.net.listener import Listener
from fencepost_server.options import Address, Limits

LIMITS = Limits(frame_bytes=500, frame_s=3.0, write_s=2.0, idle_s=50.0)
AT_ONCE, TASK, LATER = b"a", b"t", b"l"


class Peer(asyncio.Transport):
    """A transport. ``chokes``: the peer reads nothing from the next write on, for which ``full`` is called."""

    def __init__(self, full: Callable[[], None]) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = self.paused = self.chokes = False
        self._full = full

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: Any) -> None:
        self.written += data
        if self.chokes:
            self.chokes = False
            self._full()

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Machine:
    """The connection beside its model."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.memory = Memory(1 << 20)
        self.peer = Peer(self.fill)
        self.handled = 0
        self.waiting: asyncio.Future[bytes] | None = None
        self.connection = Connection(self.answer, LIMITS, self.memory, lambda _: True, lambda _: None, begin=self.begin)
        self.connection.connection_made(self.peer)
        self.sent: list[bytes] = []  #: frames that the peer sends, in order
        self.stream = bytearray()  #: so many bytes of them are still missing
        self.came = 0
        self.full = False
        self.ending = False
        self.state, self.since = "idle", self.now()

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    # frames in the server

    async def answer(self, connection: Connection, frame: bytes) -> bytes:
        self.handled += 1
        if frame[:1] == LATER:
            self.waiting = asyncio.get_running_loop().create_future()
            await self.waiting
        return frame

    def begin(self, connection: Connection, frame: bytes) -> bytes | Begun | None:
        if frame[:1] == TASK:
            return None
        self.handled += 1
        assert not self.full, "a frame is begun although the peer takes no answers"
        if frame[:1] == AT_ONCE:
            return frame
        self.waiting = waiting = asyncio.get_running_loop().create_future()
        return Begun(waiting, lambda: frame)

    # actions on the connection

    def send(self) -> None:
        kind = self.random.choice((AT_ONCE, AT_ONCE, TASK, LATER))
        frame = kind + bytes(self.random.choice((0, 5, 60, 499)))
        self.sent.append(frame)
        self.stream += len(frame).to_bytes(4, "big") + frame

    def deliver(self) -> None:
        size = self.random.choice((1, 3, 20, 300, len(self.stream)))
        piece, self.stream = bytes(self.stream[:size]), self.stream[size:]
        if piece:
            self.came += len(piece)
            arrived = self.connection.get_buffer(-1)
            arrived[: len(piece)] = piece
            self.connection.buffer_updated(len(piece))
            arrived[: len(piece)] = b"?" * len(piece)  # the next connection receives into the same buffer

    def fill(self) -> None:
        self.full = True
        self.connection.pause_writing()

    def empty(self) -> None:
        if self.full:
            self.full = False
            self.connection.resume_writing()

    def choke(self) -> None:
        self.peer.chokes = True

    def resolve(self) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(b"")

    # invariants

    @property
    def answered(self) -> int:
        return sum(1 for _ in frames(bytes(self.peer.written)))

    def model(self) -> str:
        """Return what the connection waits for; the first unanswered frame decides."""
        whole, at = 0, 0
        for frame in self.sent:
            at += 4 + len(frame)
            whole += at <= self.came
        if self.full:
            return "full"
        if self.waiting is not None and not self.waiting.done():
            return "later"
        assert self.answered == whole, "frames that are whole are answered"
        rest = self.came - sum(4 + len(frame) for frame in self.sent[:whole])
        return "partial" if rest else "idle"

    def check(self) -> None:
        assert list(frames(bytes(self.peer.written))) == self.sent[: self.answered]
        state = self.model()
        key = f"{state} {self.answered}"
        if key != self.state:
            self.state, self.since = key, self.now()
        if state != "full":
            held = self.came - sum(4 + len(frame) for frame in self.sent[: self.answered])
            assert self.memory.used == held
        waited = self.now() - self.since
        late = self.connection.overdue(self.now())
        if state == "partial":
            assert bool(late) is (waited > LIMITS.frame_s), (late, waited)
        elif state == "full":
            assert bool(late) is (waited > LIMITS.write_s), (late, waited)
        elif state == "later" or waited <= LIMITS.idle_s:
            assert not late


def frames(data: bytes) -> Any:
    """Return the frames in the written bytes."""
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : end]
        at = end


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


async def play(random: Random) -> None:
    machine = Machine(random)
    await settle()
    for _ in range(random.choice((10, 40))):
        action = random.choice(
            (
                *(machine.send, machine.send, machine.deliver, machine.deliver, machine.deliver, machine.deliver),
                *(machine.resolve, machine.resolve, machine.choke, machine.empty, machine.empty, None),
            )
        )
        if action is None:
            await asyncio.sleep(random.choice((0.9, 1.3, 2.2)))
        else:
            action()
        await settle()
        machine.check()
    machine.peer.chokes = False
    machine.empty()
    await settle()
    machine.check()
    await end(machine, random)


async def end(machine: Machine, random: Random) -> None:
    """The peer disconnects, or the server ends."""
    state = machine.state.split()[0]
    if random.random() < 0.5:
        machine.connection.drain()
        await settle()
        assert machine.peer.closed is (state in ("idle", "partial"))
        machine.resolve()
        await settle()
        assert machine.peer.closed
    machine.connection.connection_lost(None)
    await settle()
    assert machine.memory.used == 0


@pytest.mark.parametrize("part", range(4))
def test_a_connection_does_as_its_model(part: int) -> None:
    for seed in range(part * 150, part * 150 + 150):
        ran = run(play(Random(seed)), Random(seed))
        assert ran.failure is None, (seed, ran.failure)
        assert not ran.unhandled, (seed, ran.unhandled)


def test_a_connection_that_is_made_after_the_listener_has_closed_is_not_served() -> None:
    """Its TLS handshake has taken until then."""

    async def main() -> None:
        listener = Listener(_never, LIMITS)
        await listener.start(Address(host="server", port=9092))
        early, late = Peer(lambda: None), Peer(lambda: None)
        listener.connection().connection_made(early)
        listener.close()
        listener.connection().connection_made(late)
        assert late.closed
        await listener.stop()
        assert early.closed

    ran = run(main(), Random(1))
    if ran.failure is not None:
        raise ran.failure
    assert (ran.leaked, ran.unhandled) == ((), ())


async def _never(connection: Connection, frame: bytes) -> bytes | None:
    raise AssertionError("no frame was sent")
