"""One import: a packet capture becomes a wire trace, as the recorder would have written it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...common.counting import counted
from ...common.errors import CannotRun
from ..lines import Setting
from ..recorder.exchange import Exchanges, Reader
from ..recorder.journal import Journal
from ..recorder.output import Output, require_free
from ..wire.settings import Known, assumed_words, settle
from .frames import Exchanged, Kind, exchanged
from .packets import read_capture
from .streams import connections


@dataclass(frozen=True, slots=True)
class Summary:
    """``lost``: bytes that the capture does not have. ``undecoded``: frames that could not be decoded."""

    packets: int
    connections: int
    events: int
    lost: int
    undecoded: int
    known: Known


@dataclass(frozen=True, slots=True)
class _Happening:
    """The event that a packet completes: the opening of a connection, a frame, or the end."""

    number: int
    at_ns: int
    link: int  #: index of the connection
    kind: str
    frame: bytes = b""


def _say(text: str) -> None:
    print(f"fencepost import: {text}", file=sys.stderr, flush=True)


def import_packets(
    capture: Path,
    path: Path,
    *,
    groups: frozenset[str] = frozenset(),
    provenance: Mapping[str, str] | None = None,
    settings: Mapping[str, Setting] | None = None,
    replace: bool = False,
    complain: Callable[[str], None] = _say,
) -> Summary:
    """Write the trace of a capture. ``settings``: of the broker, by field; a capture does not have them.

    Raises CannotRun: the file is not a capture or has no unencrypted Kafka traffic, or the trace cannot be written.
    """
    require_free(path, replace=replace)
    read = read_capture(capture)
    if read.broken:
        complain(f"{read.broken}; the packets before it are read")
    cut = sum(segment.cut > 0 for segment in read.segments)
    if cut:
        complain(f"{counted(cut, 'packets')} were not captured completely; capture with a larger snapshot length")
    seen = [exchanged(each) for each in connections(read.segments)]
    kafka = [each for each in seen if each.kind is Kind.KAFKA]
    kinds = Counter(each.kind for each in seen)
    if not kafka:
        raise CannotRun(_nothing(capture, read.packets, kinds))
    if kinds[Kind.TLS]:
        complain(f"{counted(kinds[Kind.TLS], 'connections')} left out, because they are encrypted (TLS)")
    for number, each in enumerate(kafka, 1):
        _report_missing(number, each, complain)
    known = settle({}, settings or {})
    if known.assumed:
        complain(assumed_words(known))
    happenings = sorted(_happenings(kafka), key=lambda each: each.number)
    now = [happenings[0].at_ns]
    output = Output(path, complain, replace=replace)
    journal = Journal(
        output.write,
        known=known,
        provenance={
            "recorder": "fencepost import",
            "nodes": str(len({each.connection.server for each in kafka})),
            **(provenance or {}),
        },
        name=path.name.removesuffix(".gz").removesuffix(".jsonl"),
        clock=lambda: now[0],
        began=datetime.fromtimestamp(now[0] / 1e9, UTC),
    )
    reader = Reader(journal, groups, complain, verb="keeping")
    links = [Exchanges(number) for number in range(1, len(kafka) + 1)]
    for event in happenings:
        now[0] = max(now[0], event.at_ns)
        connection, link = kafka[event.link].connection, links[event.link]
        if event.kind == "connected":
            journal.connected(link.number, str(connection.client), str(connection.server))
        elif event.kind == "request":
            reader.request(link, event.frame)
        elif event.kind == "answer":
            reader.answer(link, event.frame)
        else:
            journal.disconnected(link.number, event.kind)
    output.close()
    lost = sum(each.requests.lost + each.answers.lost for each in kafka)
    return Summary(read.packets, len(kafka), journal.events, lost, reader.undecoded, known)


def _nothing(capture: Path, packets: int, kinds: Counter[Kind]) -> str:
    if not kinds:
        return f"{capture} has no TCP connection in its {counted(packets, 'packets')}"
    if kinds[Kind.TLS] == kinds.total():
        return f"{capture} has encrypted connections (TLS) only; use fencepost record, which can decrypt its own"
    return f"{capture} has no Kafka requests in its {counted(kinds.total(), 'TCP connections')}"


def _report_missing(number: int, each: Exchanged, complain: Callable[[str], None]) -> None:
    """Say what is missing of a connection."""
    ends = f"connection {number} ({each.connection.client} to {each.connection.server})"
    for who, cut in (("client", each.requests), ("broker", each.answers)):
        if cut.lost:
            complain(f"{ends}: {counted(cut.lost, 'bytes')} of the {who} are not in the capture")
        if cut.skipped and not cut.lost:
            complain(f"{ends}: {counted(cut.skipped, 'bytes')} of the {who} belong to no complete message")
        if cut.odd:
            complain(f"{ends}: the rest of the {who}'s bytes is not Kafka's: {cut.odd}")


def _happenings(kafka: list[Exchanged]) -> Iterator[_Happening]:
    """The events of each connection in order; those of several connections are not merged."""
    for link, each in enumerate(kafka):
        connection = each.connection
        frames = [(frame, "request") for frame in each.requests.frames]
        frames += [(frame, "answer") for frame in each.answers.frames]
        frames.sort(key=lambda row: row[0].number)
        first = frames[0][0]
        number, at_ns = connection.opened or (first.number, first.at_ns)
        yield _Happening(number, at_ns, link, "connected")
        for frame, kind in frames:
            yield _Happening(frame.number, frame.at_ns, link, kind, frame.data)
        if connection.closed is not None:
            number, at_ns, by = connection.closed
            last = frames[-1][0]
            who = "client" if by == connection.client else "server"
            yield _Happening(max(number, last.number), max(at_ns, last.at_ns), link, who)
