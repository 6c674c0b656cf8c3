"""Records the exchanges of connections from their frames, whether a proxy passes them on or a capture contains them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencepost.wire.frames import (
    MalformedFrame,
    RequestHeader,
    read_correlation_id,
    read_request,
    read_request_header,
    read_response,
)

from ...common.addresses import Address
from .addresses import WITH_ADDRESSES, addresses_in
from .journal import FETCH, RECORDED, Journal, groups_of
from .reading import WITH_NAMES, Quiet, names_of, says_something

#: Answers that are read; all others pass unread.
_AWAITED = RECORDED | WITH_ADDRESSES | WITH_NAMES | {"api_versions"}
#: After SaslHandshake v0 a client logs in with frames without headers.
_BARE_LOGIN = ("sasl_handshake", 0)
#: number of bytes that are kept of an undecodable Fetch answer
_KEPT_OF_FETCH = 64


@dataclass(slots=True)
class Exchanges:
    """The open exchanges of one connection, which has this number in the trace."""

    number: int
    #: correlation id -> the open requests of an API that is read, and whether each is recorded.
    open: dict[int, deque[tuple[RequestHeader, bool]]] = field(default_factory=dict)
    bare: bool = False  #: the client may log in with frames that have no header
    #: which fetches are repetitions, and the open ones among them by correlation id
    quiet: Quiet = field(default_factory=Quiet)
    held: dict[int, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """``header``: of its request. ``nodes``: the brokers that it names, by node id."""

    header: RequestHeader
    nodes: dict[int, Address]


class Reader:
    """Reads frames and writes them to the journal.

    ``groups``: record only requests about these; empty means all. ``complain`` gets one line for each kind of frame
    that could not be decoded; it begins with ``verb``, which says what happens to the frame.
    """

    def __init__(
        self, journal: Journal, groups: frozenset[str], complain: Callable[[str], None], verb: str = "passing on"
    ) -> None:
        self.undecoded = 0
        self._journal = journal
        self._groups = groups
        self._complain = complain
        self._complaints: set[str] = set()
        self._verb = verb

    def complain_once(self, text: str) -> None:
        if text not in self._complaints:
            self._complaints.add(text)
            self._complain(text)

    def request(self, link: Exchanges, frame: bytes) -> None:
        """Record a request."""
        try:
            header = read_request_header(frame)
        except MalformedFrame as odd:
            if not link.bare:
                self.undecoded += 1
                self.complain_once(f"{self._verb} a request that cannot be decoded: {odd}")
                self._journal.undecoded(link.number, "client", frame, str(odd))
            return
        link.bare = link.bare or (header.api, header.api_version) == _BARE_LOGIN
        if header.api in _AWAITED:
            noted = header.api in RECORDED and self._note_request(link, header, frame)
            link.open.setdefault(header.correlation_id, deque()).append((header, noted))

    def _note_request(self, link: Exchanges, header: RequestHeader, frame: bytes) -> bool:
        """Record a request; returns whether it was recorded, so that its answer must be too."""
        try:
            entity = read_request(header, frame)
            groups = groups_of(header.api, entity)
            if self._groups and groups is not None and not groups & self._groups:
                return False
            if header.api == FETCH and link.quiet.is_one(body := self._journal.asked(entity)):
                link.held[header.correlation_id] = body
            else:
                self._journal.sent(link.number, header, entity)
        except MalformedFrame as odd:
            self.not_decoded("a request", header, odd)
            self._journal.sent_undecoded(link.number, header, frame, str(odd))
        return True

    def not_decoded(self, what: str, header: RequestHeader, odd: Exception) -> None:
        self.undecoded += 1
        self.complain_once(f"{self._verb} {what} of {header.api} v{header.api_version} that cannot be decoded: {odd}")

    def answer(self, link: Exchanges, frame: bytes) -> Answer | None:
        """Record an answer, and return the information in it; None if it is of an API that is not read."""
        try:
            correlation = read_correlation_id(frame)
        except MalformedFrame as odd:
            self.undecoded += 1
            self.complain_once(f"{self._verb} an answer that cannot be decoded: {odd}")
            self._journal.undecoded(link.number, "server", frame, str(odd))
            return None
        if (waiting := link.open.get(correlation)) is None:
            return None
        header, noted = waiting.popleft()
        if not waiting:
            del link.open[correlation]
        if header.api == "api_versions" or not (noted or header.api in WITH_ADDRESSES or header.api in WITH_NAMES):
            return Answer(header, {})
        return Answer(header, self._read(link, header, frame, noted=noted))

    def _read(self, link: Exchanges, header: RequestHeader, frame: bytes, *, noted: bool) -> dict[int, Address]:
        """Take information from an answer, and record it if its request is recorded; returns the brokers in it."""
        nodes: dict[int, Address] = {}
        try:
            entity: Any = read_response(header.api, header.api_version, frame)
            if header.api in WITH_ADDRESSES:
                nodes = addresses_in(entity)
            if header.api in WITH_NAMES:
                reported = noted and header.api != "consumer_group_describe"
                self._journal.learn(link.number, names_of(header.api, entity), reported=reported)
            if noted and self._brings_something(link, header, entity):
                self._journal.received(link.number, header, entity)
        except MalformedFrame as odd:  # the client may still be able to use it
            self.not_decoded("an answer", header, odd)
            if noted:
                self._note_undecoded(link, header, frame, odd)
        return nodes

    def _note_undecoded(self, link: Exchanges, header: RequestHeader, frame: bytes, odd: MalformedFrame) -> None:
        if (held := link.held.pop(header.correlation_id, None)) is not None:
            self._journal.fetches(link.number, header, {**held, "late": True})
        kept = frame[:_KEPT_OF_FETCH] if header.api == FETCH else frame  # without its records, which are private
        self._journal.received_undecoded(link.number, header, kept, odd)

    def _brings_something(self, link: Exchanges, header: RequestHeader, entity: Any) -> bool:
        """Whether the answer must be recorded; if so, a repeated Fetch is recorded before it."""
        held = link.held.pop(header.correlation_id, None)
        if held is None:
            return True
        if not says_something(self._journal.answered(entity)):
            return False
        self._journal.fetches(link.number, header, {**held, "late": True})
        return True
