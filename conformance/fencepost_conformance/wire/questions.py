"""Questions to a broker before it is played on or recorded: each in the newest version that both sides know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fencepost.remote.connection import Connection
from fencepost.server.wire.frames import ASK_S, MalformedFrame, NoAnswer
from fencepost.work.link import Unsupported

from .access import CLOSED, OPEN, Access


class Questions:
    """``versions``: of each API, by its number, the lowest and highest that the broker announces."""

    def __init__(self, connection: Connection, hint: str) -> None:
        self._connection, self._hint = connection, hint
        self.versions = connection.versions

    async def ask(self, api: str, lowest: int, highest: int, **values: Any) -> Any:
        """kio's answer. Raises ``Unsupported``, ``NoAnswer`` if there is none within ``ASK_S``, ``MalformedFrame`` for
        an answer that cannot be read and for a connection that is closed."""
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
    """A connection of its own. Raises ``OSError``, also for whoever does not say which versions it has."""
    connection = await access.open(host, port)
    try:
        yield Questions(connection, access.hint)
    finally:
        await connection.close()
