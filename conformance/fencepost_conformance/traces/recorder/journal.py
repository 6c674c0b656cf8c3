"""Turns the traffic of the proxy into lines of a wire trace (``docs/traces.md``)."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from fencepost.protocol.profiles import PROFILES
from fencepost.wire.convert import GROUP_APIS, plain, to_request, to_response
from fencepost.wire.frames import MalformedFrame, RequestHeader, UnknownErrorCode

from .. import convert
from ..wire.settings import Known
from . import reading

#: APIs that are decoded and recorded; all others pass unrecorded.
RECORDED = frozenset(GROUP_APIS) | {
    "find_coordinator",
    "offset_commit",
    "offset_fetch",
    "offset_delete",
    "txn_offset_commit",
    # the end of a transaction decides about its offsets (O-TXN-08)
    "init_producer_id",
    "add_offsets_to_txn",
    "end_txn",
    # the existing topics decide what a coordinator assigns (M-META-03)
    "create_topics",
    "create_partitions",
    "delete_topics",
    # the positions from which a consumer reads (K-POS-01)
    "fetch",
    "list_offsets",
    "offset_for_leader_epoch",
}

#: Errors of conversions for values that no version of the message has.
_ODD: Final = (ValueError, TypeError, AttributeError, KeyError)

#: kio's name of the API whose records are not kept.
FETCH: Final = "fetch"
#: Called with ``sent`` or ``received``, and the header of the request.
Watch: TypeAlias = Callable[[str, RequestHeader], None]


def groups_of(api: str, entity: Any) -> frozenset[str] | None:
    """Return the groups that a request concerns; None if it concerns no particular group."""
    if hasattr(entity, "group_id"):
        return frozenset({str(entity.group_id)})
    if api == "describe_groups":
        return frozenset(map(str, entity.groups))
    if api == "delete_groups":
        return frozenset(map(str, entity.groups_names))
    if api == "consumer_group_describe":
        return frozenset(map(str, entity.group_ids))
    if api == "offset_fetch":  # v8 and later
        return frozenset(str(group.group_id) for group in entity.groups)
    return None


class Journal:
    """Writes the header at once, then each event as it comes. Times count from the creation of the journal.

    ``known``: the broker's settings, for the header. ``watch`` is called with each request and answer when it is
    recorded, which is before it is passed on. ``clock``: the time in nanoseconds; ``began``: the time of day of the
    journal's creation, by default now.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        known: Known,
        provenance: Mapping[str, str],
        name: str = "",
        profile: str = "kafka-4.3",
        watch: Watch | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        began: datetime | None = None,
    ) -> None:
        self._write = write
        self._watch = watch
        self._topics: dict[str, str] = {}  #: names by ids
        self._written: set[str] = set()  #: ids whose names are in the trace
        self._clock = clock
        self._began = clock()
        self.events = 0
        self._line(
            type="trace",
            version=1,
            kind="wire",
            name=name,
            profile=profile,
            settings=convert.header("wire", known.settings, PROFILES[profile]).settings,
            assumed=known.assumed,
            provenance={"started_at": (began or datetime.now(UTC)).isoformat(timespec="seconds"), **provenance},
        )

    def _line(self, **fields: Any) -> None:
        self._write(json.dumps(fields, separators=(",", ":"), ensure_ascii=False))

    def _event(self, kind: str, connection: int, **fields: Any) -> None:
        self.events += 1
        at_ms = (self._clock() - self._began) // 1_000_000
        self._line(type=kind, at_ms=at_ms, connection=connection, **fields)

    def connected(self, connection: int, client: str, server: str) -> None:
        self._event("connected", connection, client=client, server=server)

    def disconnected(self, connection: int, by: str | None) -> None:
        self._event("disconnected", connection, by=by)

    def _frame(self, kind: str, connection: int, header: RequestHeader, body: Any, **more: Any) -> None:
        self._event(
            kind,
            connection,
            correlation_id=header.correlation_id,
            api_key=header.api_key,
            api_version=header.api_version,
            **more,
            body=body,
        )
        if self._watch is not None:
            self._watch(kind, header)

    def sent(self, connection: int, header: RequestHeader, entity: Any) -> None:
        if header.api == FETCH:
            self.fetches(connection, header, self.asked(entity))
            return
        try:
            body = plain(to_request(header.api, entity) if header.api in GROUP_APIS else entity)
        except _ODD as odd:
            raise MalformedFrame(f"{header.api} has an odd value: {odd}") from None
        self._frame("sent", connection, header, body, client_id=header.client_id)

    def learn(self, connection: int, names: Mapping[str, str], *, reported: bool = False) -> None:
        """Store the names of topics, by id, and record new ones.

        Args:
            connection: of the answer with these names.
            reported: the answer itself is recorded, with these names.
        """
        new = {topic_id: name for topic_id, name in names.items() if topic_id not in self._written}
        self._topics.update(names)
        self._written.update(names)
        if new and not reported:
            self._event("names", connection, names=new)

    def undecoded(self, connection: int, by: str, frame: bytes, why: str) -> None:
        """Record a frame with an unreadable header. Its contents are not kept: they could be a password."""
        self._event("undecoded", connection, by=by, bytes=len(frame), why=why)

    def asked(self, fetch: Any) -> dict[str, Any]:
        """Return the recorded part of a Fetch (``reading.asked``)."""
        return reading.asked(fetch, self._topics)

    def answered(self, answer: Any) -> dict[str, Any]:
        """Return the recorded part of the answer to a Fetch (``reading.answered``)."""
        return reading.answered(answer, self._topics)

    def fetches(self, connection: int, header: RequestHeader, body: dict[str, Any]) -> None:
        """Record a Fetch with this body."""
        self._frame("sent", connection, header, body, client_id=header.client_id)

    def sent_undecoded(self, connection: int, header: RequestHeader, frame: bytes, why: str) -> None:
        """Record a request that passes although its body cannot be decoded, with the reason."""
        body = {"undecoded": base64.urlsafe_b64encode(frame).decode(), "why": why}
        self._frame("sent", connection, header, body, client_id=header.client_id)

    def received(self, connection: int, header: RequestHeader, entity: Any) -> None:
        if header.api == FETCH:
            self._frame("received", connection, header, self.answered(entity))
            return
        try:
            body = plain(to_response(header.api, entity) if header.api in GROUP_APIS else entity)
        except _ODD as odd:
            raise MalformedFrame(f"an answer to {header.api} has an odd value: {odd}") from None
        self._frame("received", connection, header, body)

    def received_undecoded(self, connection: int, header: RequestHeader, frame: bytes, odd: MalformedFrame) -> None:
        """Record an answer that passes although it cannot be decoded, with the reason: perhaps an error code that Kafka
        does not have."""
        code = {"error_code": odd.code} if isinstance(odd, UnknownErrorCode) else {}
        body = {"undecoded": base64.urlsafe_b64encode(frame).decode(), "why": str(odd), **code}
        self._frame("received", connection, header, body)
