"""The status port: a page at ``/``, the same data as JSON at ``/state``, numbers at ``/metrics``. It only reads, and
answers one GET for each connection."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from fencepost_server.options import Address

_log = logging.getLogger(__name__)

_PATIENCE_S: Final = 5.0
_MOST_BYTES: Final = 8 * 1024
_AT_ONCE: Final = 16
_WORDS: Final = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}

#: Returns content type and body.
Page: TypeAlias = Callable[[], Awaitable[tuple[str, str]]]


class StatusPort:
    """The server of the status port. ``pages`` by path."""

    def __init__(self, pages: dict[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open = 0

    async def start(self, listen: Address) -> Address:
        """Listen. Returns the address with its port. Raises ``OSError`` if it cannot listen on the address."""
        self._server = await asyncio.start_server(self._serve, listen.host, listen.port, limit=_MOST_BYTES)
        return Address(host=listen.host, port=self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            status, kind, body = await self._answer(reader)
            data = body.encode()
            head = (
                f"HTTP/1.1 {status} {_WORDS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
                "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + data)
            await asyncio.wait_for(writer.drain(), _PATIENCE_S)
        except (OSError, TimeoutError):
            pass  # the reader is gone, or too slow
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError, TimeoutError):
                await asyncio.wait_for(writer.wait_closed(), _PATIENCE_S)

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, str, str]:
        plain = "text/plain; charset=utf-8"
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _PATIENCE_S)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            return 400, plain, "not an HTTP request\n"
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3:
            return 400, plain, "not an HTTP request\n"
        if words[0] not in ("GET", "HEAD"):
            return 405, plain, "only GET and HEAD are allowed\n"
        page = self._pages.get(words[1].partition("?")[0])
        if page is None:
            return 404, plain, f"not found; the pages are {', '.join(self._pages)}\n"
        if self._open > _AT_ONCE:
            return 503, plain, "too many requests at a time\n"
        try:
            kind, body = await asyncio.wait_for(page(), _PATIENCE_S)
        except Exception as reason:
            _log.warning("status page %s failed: %s", words[1], reason or type(reason).__name__)
            return 503, plain, "the page failed; the server's log has the reason\n"
        return 200, kind, body if words[0] == "GET" else ""


def json_page(values: Callable[[], Awaitable[object]]) -> Page:
    """Return a page with these values as JSON."""

    async def page() -> tuple[str, str]:
        return "application/json", json.dumps(await values())

    return page
