"""One connection to a broker: requests go out one after the other, each waits for its answer."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final

from fencepost.server.wire.fill import fill
from fencepost.server.wire.frames import (
    API_KEYS,
    CONNECT_S,
    MalformedFrame,
    RequestHeader,
    close,
    framed,
    read_correlation_id,
    read_frame,
    read_response,
    request_schema,
    write_request,
)

#: Answers of what a worker asks are small; one above that is none.
_LIMIT: Final = 16 * 1024 * 1024
#: ApiVersions as every broker knows it.
_ASKS_VERSIONS: Final = "api_versions"


class Connection:
    """``versions``: of each API, by its number, the lowest and highest that the broker has. What breaks is raised as
    ``OSError``, and then the connection is ``broken`` for good."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self.versions: dict[int, tuple[int, int]] = {}
        self.broken = False
        self._reader, self._writer = reader, writer
        self._client_id = client_id
        self._asked = 0
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, host: str, port: int, client_id: str, tls: ssl.SSLContext | None) -> Connection:
        """Connects, and asks which versions there are. Raises ``OSError``."""
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(host, port, ssl=tls)
        except TimeoutError:
            raise ConnectionError(f"no connection to {host}:{port} within {CONNECT_S:g} s") from None
        connection = cls(reader, writer, client_id)
        told = await connection.ask(_ASKS_VERSIONS, 0, {})
        connection.versions = {row.api_key: (row.min_version, row.max_version) for row in told.api_keys}
        return connection

    async def ask(self, api: str, version: int, values: Any) -> Any:
        """kio's answer to a request of that API, filled from ``values`` as ``fill`` does. Raises ``OSError``."""
        async with self._turn:
            if self.broken:
                raise ConnectionError("the connection is broken")
            self._asked += 1
            header = RequestHeader(API_KEYS[api], version, self._asked, self._client_id)
            try:
                request = fill(request_schema(api, version), values)
                self._writer.write(framed(write_request(header, request)))
                await self._writer.drain()
                answer = await read_frame(self._reader, _LIMIT)
                if answer is None:
                    raise ConnectionError(f"the broker has closed the connection instead of answering {api}")
                if read_correlation_id(answer) != self._asked:
                    raise ConnectionError(f"the broker has answered another request than {api}")
                return read_response(api, version, answer)
            except MalformedFrame as odd:
                self.break_()
                raise ConnectionError(f"{api} v{version}: {odd}") from odd
            except BaseException:
                self.break_()  # also if the wait is cancelled: what comes later would answer the next request
                raise

    def newest(self, api: str, lowest: int, highest: int) -> int:
        """The highest version that both sides know. Raises ``ConnectionError`` if there is none."""
        least, most = self.versions.get(API_KEYS[api], (0, -1))
        if min(most, highest) < max(least, lowest):
            raise ConnectionError(f"the broker has {api} {least} to {most}, and {lowest} to {highest} are known here")
        return min(most, highest)

    def break_(self) -> None:
        """Nothing goes over it any more."""
        self.broken = True
        self._writer.close()

    async def close(self) -> None:
        """The end."""
        self.broken = True
        await close(self._writer)
