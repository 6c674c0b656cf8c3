"""A filter in front of a broker that offers only some of its APIs, like a broker that is built one API at a time, or
that spoils answers."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from fencepost.wire.frames import close, framed, read_frame

HOST = "127.0.0.1"
API_VERSIONS = 18
_NEWEST, _LIMIT = 2, 1 << 24  #: the newest version of ApiVersions; the size limit of a frame
_UNSUPPORTED_VERSION = 35
#: returns what is sent in place of an answer; None: the connection is closed
Spoil = Callable[[bytes], Awaitable[bytes | None]]


class _Filter:
    def __init__(
        self,
        upstream: str,
        offered: Mapping[int, tuple[int, int]],
        spoiled: Mapping[int, Spoil],
        closed_from: Mapping[int, int],
    ) -> None:
        self._spoiled, self._closed_from = spoiled, closed_from
        self._host, _, port = upstream.rpartition(":")
        self._port = int(port)
        self._offered = {**offered, API_VERSIONS: (0, _NEWEST)}
        self.refused: list[int] = []  #: keys of requests for APIs that are not offered
        self.serving: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self.serve(reader, writer))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream = await asyncio.open_connection(self._host, self._port)
        try:
            while (frame := await read_frame(reader, _LIMIT)) is not None:
                key, version, correlation = struct.unpack(">hhi", frame[:8])
                if key == API_VERSIONS:
                    answer = struct.pack(">i", correlation) + self._versions(version)
                else:
                    low, high = self._offered.get(key, (1, 0))
                    if not low <= version <= high:
                        self.refused.append(key)
                        return
                    if version >= self._closed_from.get(key, version + 1):
                        return
                    upstream.write(framed(frame))
                    received = await read_frame(upstream_reader, _LIMIT)
                    if received is None:
                        return
                    answer = received
                if key in self._spoiled:
                    sent = await self._spoiled[key](answer)
                    if sent is None:
                        return
                    answer = sent
                writer.write(framed(answer))
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            await close(writer)
            await close(upstream)

    def _versions(self, version: int) -> bytes:
        known = version <= _NEWEST
        rows = b"".join(struct.pack(">hhh", key, *self._offered[key]) for key in sorted(self._offered))
        body = struct.pack(">hi", 0 if known else _UNSUPPORTED_VERSION, len(self._offered)) + rows
        return body + struct.pack(">i", 0) if known and version >= 1 else body


@contextmanager
def partial_broker(
    upstream: str,
    offered: Mapping[int, tuple[int, int]],
    spoiled: Mapping[int, Spoil] | None = None,
    closed_from: Mapping[int, int] | None = None,
) -> Iterator[tuple[str, list[int]]]:
    """Yield the address of a broker with only these APIs of ``upstream``, and the keys of other requests that it got.
    ``spoiled``: by API key, how the answers are falsified. ``closed_from``: by API key, the version from which on a
    request closes the connection."""
    filtered, over, ready, ports = (
        _Filter(upstream, offered, spoiled or {}, closed_from or {}),
        threading.Event(),
        threading.Event(),
        list[int](),
    )

    async def run() -> None:
        server = await asyncio.start_server(filtered.accept, HOST, 0)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        while not over.is_set():
            await asyncio.sleep(0.02)
        server.close()
        for task in [*filtered.serving]:
            task.cancel()
        await asyncio.gather(*filtered.serving, return_exceptions=True)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield f"{HOST}:{ports[0]}", filtered.refused
    finally:
        over.set()
        thread.join()
