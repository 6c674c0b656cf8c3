"""Requests to a broker before a test or a recording, each in the newest version that both sides know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fencepost.remote.connection import Connection
from fencepost.wire.frames import ASK_S, MalformedFrame, NoAnswer
from fencepost.work.link import Unsupported

from .access import CLOSED, OPEN, Access


class Questions:
    """Sends requests. ``versions``: by the number of an API, the lowest and highest version that the broker
    announces."""

    def __init__(self, connection: Connection, hint: str) -> None:
        self._connection, self._hint = connection, hint
        self.versions = connection.versions

    @property
    def broken(self) -> bool:
        """Whether a request failed, so that the connection cannot be used any more."""
        return self._connection.broken

    async def ask(self, api: str, lowest: int, highest: int, **values: Any) -> Any:
        """Send a request, and return kio's answer. Raises ``Unsupported``, ``NoAnswer`` if there is none within
        ``ASK_S``, and ``MalformedFrame`` for an answer that cannot be read or a connection that was closed."""
        version = self._connection.newest(api, lowest, highest)
        try:
            async with asyncio.timeout(ASK_S):
                return await self._connection.ask(api, version, values)
        except TimeoutError:
            raise NoAnswer(f"no answer to {api} v{version} within {ASK_S:g} s") from None
        except Unsupported:
            raise
        except ConnectionError as odd:
            raise MalformedFrame(f"{odd}{self._hint if CLOSED in str(odd) else ''}") from None


@asynccontextmanager
async def questions(host: str, port: int, access: Access = OPEN) -> AsyncIterator[Questions]:
    """Open a connection for requests. Raises ``OSError``, also if the broker does not answer ApiVersions."""
    connection = await access.open(host, port)
    try:
        yield Questions(connection, access.hint)
    finally:
        await connection.close()
