"""A connection to a broker that writes down what passes, as the recorder would (``docs/traces.md``, kind wire)."""

from __future__ import annotations

import asyncio
import base64
import time
from functools import partial
from typing import Any

from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.server.wire.convert import plain, to_response
from fencepost.server.wire.frames import (
    MalformedFrame,
    RequestHeader,
    UnknownErrorCode,
    connect,
    framed,
    read_answer,
    read_response,
    write_request,
)

from ..trace.convert import odd_codes, wire_body
from ..trace.lines import API_OF_TYPE, ConnectedLine, DisconnectedLine, ReceivedLine, SentLine, WireLine
from .encode import api_key, to_entity

#: seconds for which a broker may be late with an answer
LATE_S = 25.0


class Notes:
    """The lines of one trace, with times from its beginning; ``patience_s``: how long an answer may take."""

    def __init__(self, patience_s: float = LATE_S) -> None:
        self.patience_s = patience_s
        self._began = time.monotonic()
        self.lines: list[WireLine] = []
        self.connections = 0

    def now(self) -> int:
        return int((time.monotonic() - self._began) * 1000)


class Connection:
    """One request at a time: a broker answers those of one connection in order, and so does a real client wait."""

    def __init__(self, notes: Notes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        notes.connections += 1
        self._notes, self._reader, self._writer = notes, reader, writer
        self._number = notes.connections
        self._asked = 0
        host, port = writer.get_extra_info("sockname")[:2]
        there = writer.get_extra_info("peername")[:2]
        notes.lines.append(
            ConnectedLine(
                at_ms=notes.now(), connection=self._number, client=f"{host}:{port}", server=f"{there[0]}:{there[1]}"
            )
        )

    @classmethod
    async def open(cls, notes: Notes, host: str, port: int) -> Connection:
        """Raises ``OSError``."""
        return cls(notes, *await connect(host, port))

    async def ask(self, version: int, body: RequestBody, client_id: str) -> ResponseBody:
        """Send a request and wait for its answer. Raises ``MalformedFrame``, also for a connection that is closed, and
        ``NoAnswer`` if none comes within the patience of the notes."""
        self._asked += 1
        header = RequestHeader(api_key(body), version, self._asked, client_id)
        frame = write_request(header, to_entity(body, version))
        about: dict[str, Any] = {
            "connection": self._number,
            "correlation_id": self._asked,
            "api_key": header.api_key,
            "api_version": version,
        }
        self._notes.lines.append(SentLine(at_ms=self._notes.now(), client_id=client_id, body=wire_body(body), **about))
        self._writer.write(framed(frame))
        await self._writer.drain()
        said = f"{API_OF_TYPE[type(body)]} v{version} on connection {self._number}"
        answer = await read_answer(self._reader, said, self._notes.patience_s)
        if answer is None:
            raise MalformedFrame(f"the broker closed the connection instead of answering {said}")
        noted = partial(ReceivedLine, at_ms=self._notes.now(), **about)
        try:
            told = to_response(header.api, read_response(header.api, version, answer))
        except UnknownErrorCode as odd:
            kept = base64.urlsafe_b64encode(answer).decode()
            self._notes.lines.append(noted(body={"undecoded": kept, "error_code": odd.code}))
            raise
        content = plain(told)
        self._notes.lines.append(noted(body=content))
        if codes := odd_codes(content):
            raise MalformedFrame(f"{said} was answered with error code {codes[0]}, which is none of its API")
        return told

    def close(self) -> None:
        self._notes.lines.append(DisconnectedLine(at_ms=self._notes.now(), connection=self._number, by="client"))
        self._writer.close()
