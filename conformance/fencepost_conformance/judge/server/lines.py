"""Connections from a player to a broker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from fencepost.wire.frames import MAX_RESPONSE_BYTES, MalformedFrame, close, connect, read_frame

from ...common.addresses import Address


class Line(Protocol):
    """One connection to a broker."""

    def send(self, data: bytes) -> None:
        """Send bytes: a frame with its length, several, or a part of one."""

    async def receive(self) -> bytes | None:
        """Return the next frame; None if the broker has closed the connection."""

    async def close(self) -> None:
        """Close the connection."""


class Place(Protocol):
    """A broker. ``settled``: it answers when the effect of the request is complete, so the player need not wait for
    that."""

    @property
    def settled(self) -> bool: ...

    async def connect(self) -> Line:
        """Open a connection. Raises ``OSError``."""


class _TcpLine:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def receive(self) -> bytes | None:
        try:
            return await read_frame(self._reader, MAX_RESPONSE_BYTES)
        except (ConnectionError, MalformedFrame):
            return None

    async def close(self) -> None:
        await close(self._writer)


@dataclass(frozen=True, slots=True)
class Tcp:
    """A broker in another process."""

    address: Address
    settled: bool = False

    async def connect(self) -> Line:
        """Open a connection. Raises ``OSError``."""
        return _TcpLine(*await connect(self.address.host, self.address.port))
