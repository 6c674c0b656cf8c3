"""One connection to a broker: it sends one request at a time, and waits for the response."""

from __future__ import annotations

import asyncio
import ssl
from math import inf
from typing import Any, Final

from fencepost.wire.fill import fill
from fencepost.wire.frames import (
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
from fencepost.work.link import Unsupported

from .sasl import LoginFailed, Sasl

#: Largest response; responses to a worker's requests are small.
_LIMIT: Final = 16 * 1024 * 1024
#: ApiVersions, which every broker supports.
_ASKS_VERSIONS: Final = "api_versions"
#: Versions of SaslHandshake and SaslAuthenticate that send a login in separate frames.
_HANDSHAKE: Final = 1
_AUTHENTICATE: Final = (0, 2)
#: A login that expires is renewed after this part of its lifetime (KIP-368).
_RENEWS: Final = 0.85


class Connection:
    """A connection. ``versions``: by API key, the lowest and highest version of the broker. A failure raises
    ``OSError``, and then the connection stays ``broken``."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str, sasl: Sasl | None
    ) -> None:
        self.versions: dict[int, tuple[int, int]] = {}
        self.broken = False
        self._reader, self._writer = reader, writer
        self._client_id = client_id
        self._sasl = sasl
        self._renews_at = inf
        self._asked = 0
        self._turn = asyncio.Lock()

    @classmethod
    async def open(
        cls, host: str, port: int, client_id: str, tls: ssl.SSLContext | None, sasl: Sasl | None
    ) -> Connection:
        """Connect, ask for the broker's versions, and log in. Raises ``OSError``."""
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(host, port, ssl=tls)
        except TimeoutError:
            raise ConnectionError(f"no connection to {host}:{port} within {CONNECT_S:g} s") from None
        connection = cls(reader, writer, client_id, sasl)
        try:
            async with asyncio.timeout(CONNECT_S):
                response = await connection.ask(_ASKS_VERSIONS, 0, {})
                connection.versions = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
                await connection._log_in()
        except BaseException as wrong:
            await connection.close()
            if isinstance(wrong, TimeoutError):
                late = f"{host}:{port} does not respond to ApiVersions within {CONNECT_S:g} s"
                raise ConnectionError(late) from None
            raise
        return connection

    async def ask(self, api: str, version: int, values: Any) -> Any:
        """Send a request of that API, filled from ``values`` by ``fill``; return kio's response. Raises ``OSError``."""
        async with self._turn:
            if asyncio.get_running_loop().time() >= self._renews_at:
                await self._log_in()
            return await self._exchange(api, version, values)

    async def _exchange(self, api: str, version: int, values: Any) -> Any:
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
                raise ConnectionError(f"the broker closed the connection instead of responding to {api}")
            if read_correlation_id(answer) != self._asked:
                raise ConnectionError(f"the broker's response has another correlation id than the request ({api})")
            return read_response(api, version, answer)
        except MalformedFrame as odd:
            self.break_()
            raise ConnectionError(f"{api} v{version}: {odd}") from odd
        except BaseException:
            self.break_()  # even if the wait is cancelled: a late response would answer the next request
            raise

    async def _log_in(self) -> None:
        """Send SaslHandshake, then one SaslAuthenticate for each message of the mechanism. Raises ``LoginFailed``."""
        if self._sasl is None:
            return
        began = asyncio.get_running_loop().time()
        mechanism = self._sasl.mechanism
        try:
            offered = await self._exchange("sasl_handshake", _HANDSHAKE, {"mechanism": mechanism})
            if offered.error_code.value:
                has = ", ".join(offered.mechanisms) or "none"
                raise LoginFailed(f"the broker does not support SASL mechanism {mechanism}; it supports {has}")
            answer = await self._prove(self._sasl)
        except LoginFailed:
            self.break_()
            raise
        lasts_ms = getattr(answer, "session_lifetime", None)
        lasts_s = 0.0 if lasts_ms is None else lasts_ms.total_seconds()
        self._renews_at = began + lasts_s * _RENEWS if lasts_s else inf

    async def _prove(self, sasl: Sasl) -> Any:
        version = self.newest("sasl_authenticate", *_AUTHENTICATE)
        exchange = sasl.exchange()
        message = next(exchange)
        while True:
            answer = await self._exchange("sasl_authenticate", version, {"auth_bytes": message})
            if answer.error_code.value:
                raise LoginFailed(f"the broker rejects the login of {sasl.username}: {answer.error_message}")
            try:
                message = exchange.send(bytes(answer.auth_bytes))
            except StopIteration:
                return answer

    def newest(self, api: str, lowest: int, highest: int) -> int:
        """Return the highest version that both sides support. Raises ``Unsupported`` if there is none."""
        least, most = self.versions.get(API_KEYS[api], (0, -1))
        if min(most, highest) < max(least, lowest):
            has = f"supports {api} v{least}-v{most}" if most >= 0 else f"does not support {api}"
            raise Unsupported(f"the broker {has}; this client needs v{lowest}-v{highest}")
        return min(most, highest)

    @property
    def streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The streams, for callers that take over the connection when all requests have responses."""
        return self._reader, self._writer

    def break_(self) -> None:
        """Close the connection without waiting; it stays broken."""
        self.broken = True
        self._writer.close()

    async def close(self) -> None:
        """Close the connection."""
        self.broken = True
        await close(self._writer)
