"""A client of the sweep: it sends one form of one request at a time, and compares both sides of the recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from fencepost.wire.fill import fill
from fencepost.wire.frames import (
    API_KEYS,
    MAX_RESPONSE_BYTES,
    MalformedFrame,
    RequestHeader,
    close,
    connect,
    framed,
    read_frame,
    read_response,
    request_schema,
    write_request,
)

from ...common.addresses import Address
from ...traces.recorder.addresses import WITH_ADDRESSES, addresses_in
from .forms import Form, forms
from .tap import Tap

#: No request of the sweep waits longer than this, in seconds.
_PATIENCE_S: Final = 20.0
_UNSUPPORTED_VERSION: Final = 35


class NoSuchForm(Exception):
    """The swept request has fewer forms than that, or its scene sends it fewer times."""


@dataclass(slots=True)
class Books:
    """The counts of the sweep. ``counts``: exchanges by API and version. ``problems``: each fault once."""

    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    closed: dict[tuple[str, int], int] = field(default_factory=dict)
    problems: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the sweep runs. ``versions``: the highest of each API that is announced and known here."""

    here: Address
    tap: Tap
    versions: Mapping[str, int]
    books: Books
    correlation: count[int] = field(default_factory=lambda: count(1))


@dataclass(frozen=True, slots=True)
class Swept:
    """The varied request: the ``turn``-th one of this API in a scene, in this version, in the ``form``-th form."""

    api: str
    version: int
    turn: int
    form: int


class Session:
    """One run of a scene. ``name`` is part of every name that it makes."""

    def __init__(self, place: Place, swept: Swept, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self.reached = False
        self._place = place
        self._swept = swept
        self._turn = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, api: str, **values: Any) -> Any:
        """Send a request, and return kio's answer; None if the broker closed the connection or the answer is
        unreadable.

        Raises ``NoSuchForm``."""
        version = self._place.versions.get(api, -1)
        form = Form("plain", values)
        if api == self._swept.api:
            version = self._swept.version
            if self._turn == self._swept.turn:
                form = self._form(values)
            self._turn += 1
        if version < 0:
            return None  # the broker does not have this API
        return await self._exchange(api, version, form)

    def _form(self, values: Mapping[str, Any]) -> Form:
        self.reached = True
        every = list(forms(request_schema(self._swept.api, self._swept.version), values))
        every += [Form(label, {**values, **extra}) for label, extra in EXTRA.get(self._swept.api, ())]
        if self._swept.form >= len(every):
            raise NoSuchForm
        return every[self._swept.form]

    async def _exchange(self, api: str, version: int, form: Form) -> Any:
        books, what = self._place.books, f"{api} v{version} ({form.label})"
        correlation = next(self._place.correlation)
        header = RequestHeader(API_KEYS[api], version, correlation, "sweep")
        frame = write_request(header, fill(request_schema(api, version), dict(form.values)))
        if self._streams is None:
            self._streams = await connect(self._place.here.host, self._place.here.port)
        reader, writer = self._streams
        try:
            writer.write(framed(frame))
            received = await asyncio.wait_for(read_frame(reader, MAX_RESPONSE_BYTES), _PATIENCE_S)
        except TimeoutError:
            # Kafka itself never answers AddPartitionsToTxn of version 4 and later without a transaction
            seen = self._place.tap.seen.get(correlation)
            if seen is None or seen.answer is not None or seen.asked != frame:
                books.problems[f"{what}: no answer within {_PATIENCE_S:g} s"] = None
            await self.close()
            return None
        except (ConnectionError, MalformedFrame):
            received = None
        books.counts[api, version] = books.counts.get((api, version), 0) + 1
        seen = self._place.tap.seen.get(correlation)
        if seen is None or seen.asked != frame:
            books.problems[f"{what}: the recorder changed the request"] = None
        if received is None:
            books.closed[api, version] = books.closed.get((api, version), 0) + 1
            await asyncio.sleep(0.05)  # the tap may learn of it later than the client
            if seen is not None and not seen.closed:
                books.problems[f"{what}: the recorder closed a connection that the broker kept open"] = None
            await self.close()
            return None
        if seen is None or seen.answer is None:
            books.problems[f"{what}: the client got an answer that the broker did not send"] = None
            return None
        return self._compared(api, version, what, seen.answer, received)

    def _compared(self, api: str, version: int, what: str, sent: bytes, received: bytes) -> Any:
        try:
            answer = read_response(api, version, received)
        except MalformedFrame as odd:
            code = int.from_bytes(received[4:6], "big", signed=True)
            if api != "api_versions" or code != _UNSUPPORTED_VERSION:  # that is in version 0
                self._place.books.problems[f"{what}: {odd}"] = None
            answer = None
        of_addresses = api in WITH_ADDRESSES and answer is not None
        if of_addresses and set(addresses_in(answer).values()) - {self._place.here}:
            self._place.books.problems[f"{what}: a broker's address reached the client"] = None
        elif sent == received:
            pass
        elif not of_addresses:
            self._place.books.problems[f"{what}: the answer was changed"] = None
        elif _without_addresses(answer) != _without_addresses(read_response(api, version, sent)):
            self._place.books.problems[f"{what}: more than addresses was changed"] = None
        return answer

    async def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._streams is not None:
            await close(self._streams[1])
            self._streams = None


def _without_addresses(answer: Any) -> Any:
    def bare(node: Any) -> Any:
        return replace(node, host="", port=type(node.port)(0))

    if hasattr(answer, "brokers"):
        return replace(answer, brokers=tuple([bare(each) for each in answer.brokers]))
    if hasattr(answer, "coordinators"):
        return replace(answer, coordinators=tuple([bare(each) for each in answer.coordinators]))
    return bare(answer)


#: Forms that differ in more than one field.
EXTRA: Final[dict[str, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "offset_commit": (("retention 0", {"retention_time": 0}), ("retention 60 s", {"retention_time": 60_000})),
    "offset_fetch": (
        ("no groups", {"groups": [], "group_id": "", "topics": []}),
        (
            "several groups",
            {
                "groups": [
                    {"group_id": "sweep-missing", "topics": None},
                    {"group_id": "sweep-missing-2", "topics": []},
                ]
            },
        ),
    ),
    "find_coordinator": (("several keys", {"coordinator_keys": ["one", "two"], "key": "one"}),),
}
