"""A connection to a broker that notes all traffic, as the recorder would (``docs/traces.md``, kind wire)."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from fencepost.protocol.messages import ListGroupsResponse, RequestBody, ResponseBody
from fencepost.wire.convert import GROUP_APIS, api_of, plain, to_response, values_of
from fencepost.wire.fill import fill
from fencepost.wire.frames import (
    API_KEYS,
    MalformedFrame,
    RequestHeader,
    UnknownErrorCode,
    framed,
    read_answer,
    read_response,
    request_schema,
    write_request,
)

from ...traces.convert import odd_codes, wire_body
from ...traces.lines import API_OF_TYPE, ConnectedLine, DisconnectedLine, ReceivedLine, SentLine, WireLine
from ...traces.wire.access import OPEN, Access

#: seconds by which a broker may be late with an answer
LATE_S = 25.0


class Notes:
    """The lines of one trace, with times from its beginning; ``patience_s``: how long an answer may take. ``groups``:
    those of the trace. Others that a broker lists are left out; None: everything is noted."""

    def __init__(self, patience_s: float = LATE_S, groups: frozenset[str] | None = None) -> None:
        self.patience_s = patience_s
        self.groups = groups
        self._began = time.monotonic()
        self.lines: list[WireLine] = []
        self.connections = 0

    def begin(self, patience_s: float, groups: frozenset[str]) -> None:
        """The trace begins now."""
        self.patience_s, self.groups = patience_s, groups
        self._began = time.monotonic()

    def now(self) -> int:
        return int((time.monotonic() - self._began) * 1000)


class Connection:
    """Sends one request at a time: a broker answers a connection's requests in order, and real clients wait too."""

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
    async def open(cls, notes: Notes, host: str, port: int, access: Access = OPEN) -> Connection:
        """Connect and log in; the log-in is not noted. Raises ``OSError``."""
        return cls(notes, *await access.streams(host, port))

    async def ask(self, version: int, body: RequestBody, client_id: str) -> ResponseBody:
        """Send a request and return its answer. Raises ``MalformedFrame``, also for a closed connection, and
        ``NoAnswer`` if no answer comes within the patience of the notes."""
        said = f"{API_OF_TYPE[type(body)]} v{version} on connection {self._number}"
        api = api_of(body)
        header = self._header(API_KEYS[api], version, client_id)
        entity = fill(request_schema(api, version), values_of(body, version))
        if api in GROUP_APIS:
            reply, content = await self._exchange(header, entity, wire_body(body), partial(_read, api, version), said)
        else:  # offset requests are noted as on the wire, as the recorder does
            answer, content = await self._exchange(
                header, entity, plain(entity), partial(read_response, api, version), said
            )
            reply = to_response(api, answer)
        if codes := odd_codes(content):
            raise MalformedFrame(f"{said} was answered with error code {codes[0]}, which this API does not have")
        response: ResponseBody = reply
        return response

    async def ask_plain(self, api: str, version: int, values: Any) -> Any:
        """Send a request of another API, built by ``fill``; returns kio's answer."""
        header = self._header(API_KEYS[api], version, "admin")
        entity, read = fill(request_schema(api, version), values), partial(read_response, api, version)
        said = f"{api} v{version} on connection {self._number}"
        reply, _ = await self._exchange(header, entity, plain(entity), read, said)
        return reply

    def _header(self, key: int, version: int, client_id: str) -> RequestHeader:
        self._asked += 1
        return RequestHeader(key, version, self._asked, client_id)

    async def _exchange(
        self, header: RequestHeader, entity: Any, body: dict[str, Any], read: Callable[[bytes], Any], said: str
    ) -> tuple[Any, dict[str, Any]]:
        """Return the decoded answer, and the values to note of it."""
        frame = write_request(header, entity)
        about: dict[str, Any] = {
            "connection": self._number,
            "correlation_id": header.correlation_id,
            "api_key": header.api_key,
            "api_version": header.api_version,
        }
        self._notes.lines.append(SentLine(at_ms=self._notes.now(), client_id=header.client_id, body=body, **about))
        self._writer.write(framed(frame))
        await self._writer.drain()
        answer = await read_answer(self._reader, said, self._notes.patience_s)
        if answer is None:
            raise MalformedFrame(f"the broker closed the connection instead of answering {said}")
        noted = partial(ReceivedLine, at_ms=self._notes.now(), **about)
        try:
            reply = read(answer)
        except UnknownErrorCode as odd:
            kept = base64.urlsafe_b64encode(answer).decode()
            self._notes.lines.append(noted(body={"undecoded": kept, "error_code": odd.code}))
            raise
        content = plain(reply)
        if isinstance(reply, ListGroupsResponse) and self._notes.groups is not None:
            content["groups"] = [row for row in content["groups"] if row["group_id"] in self._notes.groups]
        self._notes.lines.append(noted(body=content))
        return reply, content

    def close(self) -> None:
        self._notes.lines.append(DisconnectedLine(at_ms=self._notes.now(), connection=self._number, by="client"))
        self._writer.close()


def _read(api: str, version: int, answer: bytes) -> ResponseBody:
    return to_response(api, read_response(api, version, answer))
