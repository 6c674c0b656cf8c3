"""Malformed frames: none ends the server, none is left hanging, and its memory does not grow. Frames that Kafka answers
are answered; for others the connection is closed."""

from __future__ import annotations

import asyncio
import logging
import resource
import struct
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost import Settings
from fencepost.functions import KafkaFunctions
from fencepost.protocol.profiles import INTENDED
from fencepost.store import MemoryStore
from fencepost.wire.frames import MalformedFrame, framed
from fencepost_server import dispatch as dispatch_module
from fencepost_server.dispatch import Dispatch
from fencepost_server.net.connection import Begun
from fencepost_server.node import Node
from fencepost_server.options import Address, Limits, Options
from fencepost_server.run import Setup, hosted
from fencepost_server.security.session import Session
from fencepost_server.server import Server

from .frames_of import PLAIN, bad_frames

#: as many answers may be pending, such as that of a parked JoinGroup
_WAITING = 64
_HEARTBEAT = b"\x00\x0c\x00\x00\x00\x00\x00\x07\xff\xff\x00\x01g\x00\x00\x00\x01\x00\x01m"


@asynccontextmanager
async def node(**options: Any) -> AsyncIterator[Node]:
    setup = Setup(options=Options(offsets_partitions=1, **options), settings=Settings(), profile=INTENDED)
    store = MemoryStore(1)
    async with hosted(setup, store, KafkaFunctions()) as groups:
        made = Node(setup.options, setup.settings, groups, store)
        made.serve_topics()
        await made.create_topic(PLAIN, 2)
        yield made


async def answered(dispatch: Dispatch, connection: Any, frame: bytes) -> bytes | None:
    """Handle the frame as a connection does: begin directly if possible."""
    begun = dispatch.begin(connection, frame)
    if begun is None:
        return await dispatch(connection, frame)
    if not isinstance(begun, Begun):
        return begun
    await asyncio.wait([begun.done])
    return begun.answer()


async def played(frames: Iterable[bytes]) -> Counter[str]:
    """Return the fate of each frame: answered, closed, silent (it has no answer) or parked. Raise any exception of the
    server."""
    seen: Counter[str] = Counter()
    waiting: deque[asyncio.Task[bytes | None]] = deque()
    async with node(limits=Limits(data_bytes=1 << 20)) as served:
        dispatch = Dispatch(served)
        for frame in frames:
            connection: Any = SimpleNamespace(session=Session("127.0.0.1", 0.0))
            task = asyncio.ensure_future(answered(dispatch, connection, frame))
            for _ in range(6):
                await asyncio.sleep(0)
                if task.done():
                    break
            if not task.done():
                waiting.append(task)
                if len(waiting) > _WAITING:
                    seen["parked"] += 1
                    late = waiting.popleft()
                    late.cancel()
                    await asyncio.gather(late, return_exceptions=True)
                continue
            try:
                answer = task.result()
            except MalformedFrame:
                seen["closed"] += 1
            else:
                seen["silent" if answer is None else "answered"] += 1
        seen["parked"] += len(waiting)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return seen


def used_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def kept_of_versions() -> int:
    """Return how many APIs and versions from frames are kept."""
    caches = [each for each in vars(dispatch_module).values() if hasattr(each, "cache_info")]
    return max(each.cache_info().currsize for each in caches)


def assert_survives(frames: int, caplog: pytest.LogCaptureFixture) -> None:
    """All frames are played; memory grows only by the groups and topics that they create."""
    with caplog.at_level(logging.ERROR):
        seen = asyncio.run(played(bad_frames(0, frames // 2)))
        before = used_mib()
        seen += asyncio.run(played(bad_frames(1, frames - frames // 2)))
    assert [each.getMessage() for each in caplog.records] == []
    assert sum(seen.values()) == frames
    assert used_mib() - before < 30
    assert min(seen["answered"], seen["closed"]) > frames // 5, seen
    assert seen["silent"], seen
    assert kept_of_versions() < 200, "peers may say any API and version"


def test_frames_that_no_client_sends(caplog: pytest.LogCaptureFixture) -> None:
    assert_survives(60_000, caplog)


@pytest.mark.all
def test_ten_million_frames_that_no_client_sends(caplog: pytest.LogCaptureFixture) -> None:
    assert_survives(10_000_000, caplog)


def test_bad_frames_on_sockets_leave_other_connections_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def session() -> tuple[int, float]:
        async with node(listen=Address(host="127.0.0.1", port=0)) as served:
            server = Server(served)
            at = await server.start()
            reader, writer = await asyncio.open_connection(at.host, at.port)
            slowest, answered = 0.0, 0
            done = asyncio.Event()

            async def beat() -> None:
                nonlocal slowest, answered
                while not done.is_set():
                    began = time.process_time()  # server and client are one process, beside others
                    writer.write(framed(_HEARTBEAT))
                    await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                    slowest, answered = max(slowest, time.process_time() - began), answered + 1
                    await asyncio.sleep(0.002)

            beating = asyncio.ensure_future(beat())
            for at_once in range(100):
                batch = list(bad_frames(100 + at_once, 50))
                _, other = await asyncio.open_connection(at.host, at.port)
                for frame in batch:
                    wrong = struct.pack(">i", 2**31 - 1) if frame[:1] == b"\xff" else b""
                    other.write(wrong or framed(frame))
                await asyncio.sleep(0)
                other.close()
            await asyncio.sleep(0.2)
            done.set()
            await beating
            writer.close()
            await server.stop()
            assert not server.listener.connections
            assert server.listener.memory.used == 0
            return answered, slowest

    with caplog.at_level(logging.ERROR):
        answered, slowest = asyncio.run(session())
    assert [each.getMessage() for each in caplog.records] == []
    assert answered > 20
    assert slowest < 2.0
