"""Traces in files: JSON Lines, plain or gzip. A broken line only spoils its own trace."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias

from pydantic import ValidationError

from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from . import convert
from .lines import HeaderLine, Line, ObservedLine, ReceivedLine, SentLine, WireLine, parse_line
from .observation import Observation


@dataclass(frozen=True, slots=True)
class EventTrace:
    """A trace of kind ``events``; ``observations[i]`` belongs to ``events[i]``, None if the trace does not have it."""

    settings: Settings
    profile: Profile
    events: tuple[Event, ...]
    observations: tuple[Observation | None, ...] = ()
    seed: int | None = None
    name: str = ""
    provenance: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class WireTrace:
    """A trace of kind ``wire``: its lines in order, bodies as JSON data (``convert.wire_request`` types them).

    ``assumed``: settings (fields) that its writer did not know, so that they have Kafka's defaults. ``numbers``: the
    line numbers of the header and of each line in the file; empty if it was not read from one.
    """

    settings: Settings
    profile: Profile
    lines: tuple[WireLine, ...]
    seed: int | None = None
    name: str = ""
    provenance: tuple[tuple[str, str], ...] = ()
    assumed: tuple[str, ...] = ()
    numbers: tuple[int, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BrokenTrace:
    """An unreadable trace: the file, the line (from 1) and what is wrong with it."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


Trace: TypeAlias = EventTrace | WireTrace


def read_traces(path: Path) -> Iterator[Trace | BrokenTrace]:
    """Yield the traces of a file in order. Raises ``OSError`` if the file cannot be opened."""
    with path.open("rb") as stream:
        yield from read_stream(str(path), stream)


def read_stream(path: str, source: IO[bytes]) -> Iterator[Trace | BrokenTrace]:
    """Yield the traces in the bytes of a file; its name shows whether they are gzip."""
    reader = _Reader(path)
    with gzip.open(source, "rb") if path.endswith(".gz") else source as stream:
        number = 0
        try:
            for number, raw in enumerate(stream, 1):
                if raw.strip():
                    yield from reader.line(number, raw)
        except (EOFError, zlib.error, gzip.BadGzipFile) as broken:
            yield BrokenTrace(path, number + 1, f"the gzip data is damaged: {broken}")
            return
    yield from reader.end(number)


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write the traces, one after the other; as gzip if the name ends in ``.gz``."""
    # no time stamp inside the gzip file: the same traces make the same file
    with gzip.GzipFile(path, "wb", mtime=0) if path.suffix == ".gz" else path.open("wb") as stream:
        for trace in traces:
            for line in lines_of(trace):
                stream.write(convert.text_of(line).encode() + b"\n")


def lines_of(trace: Trace) -> Iterator[Line]:
    """Yield the lines of one trace, header first."""
    kind = "events" if isinstance(trace, EventTrace) else "wire"
    yield convert.header(
        kind,
        trace.settings,
        trace.profile,
        seed=trace.seed,
        name=trace.name,
        provenance=dict(trace.provenance),
        assumed=trace.assumed if isinstance(trace, WireTrace) else (),
    )
    if isinstance(trace, WireTrace):
        yield from trace.lines
        return
    observations = trace.observations or (None,) * len(trace.events)
    for event, seen in zip(trace.events, observations, strict=True):
        yield convert.line_of_event(event)
        if seen is not None:
            yield convert.line_of_observation(seen)


class _Reader:
    """Takes the lines of one file; after a broken line it skips to the next header."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._header: HeaderLine | None = None
        self._lines: list[Line] = []
        self._numbers: list[int] = []
        self._skipping = False
        self._started = False
        self._last_ms: int | None = None

    def line(self, number: int, raw: bytes) -> Iterator[Trace | BrokenTrace]:
        try:
            line = parse_line(raw)
        except ValidationError as wrong:
            yield from self._broken(number, explain(wrong), header=b'"trace"' in raw)
            return
        except UnicodeDecodeError as wrong:
            yield from self._broken(number, f"not UTF-8: {wrong.reason}")
            return
        if isinstance(line, HeaderLine):
            yield from self._finish()
            self._started, self._last_ms = True, None
            try:
                convert.settings_of(line)
                convert.profile_of(line)
            except ValueError as wrong:
                yield from self._broken(number, str(wrong), header=True)
                return
            self._header, self._skipping = line, False
            self._numbers = [number]
            return
        if self._skipping:
            return
        if reason := self._misplaced(line):
            yield from self._broken(number, reason)
            return
        self._lines.append(line)
        self._numbers.append(number)

    def end(self, number: int) -> Iterator[Trace | BrokenTrace]:
        if not self._started and not self._skipping:
            yield BrokenTrace(self._path, number or 1, "the file contains no trace")
        yield from self._finish()

    def _misplaced(self, line: Line) -> str | None:
        if self._header is None:
            return 'the first line of a trace must be its header, with "type": "trace"'
        kind = self._header.kind
        if isinstance(line, WireLine) != (kind == "wire"):
            return f"a line of type {line.type!r} is not allowed in a trace of kind {kind!r}"  # type: ignore[attr-defined]
        if isinstance(line, ObservedLine):
            if not self._lines or isinstance(self._lines[-1], ObservedLine):
                return "an observed line must follow the line of its event"
            return None
        at_ms: int = line.at_ms  # type: ignore[attr-defined]
        if self._last_ms is not None and at_ms < self._last_ms:
            return f"time goes back, from {self._last_ms} to {at_ms}"
        self._last_ms = at_ms
        try:
            if isinstance(line, SentLine):
                convert.wire_request(line)
            elif isinstance(line, ReceivedLine):
                convert.wire_response(line)
        except ValidationError as wrong:
            return explain(wrong)
        return None

    def _broken(self, number: int, reason: str, *, header: bool = False) -> Iterator[Trace | BrokenTrace]:
        if header and not self._skipping:
            yield from self._finish()
        if header or not self._skipping:
            yield BrokenTrace(self._path, number, reason)
        self._header, self._lines, self._skipping = None, [], True

    def _finish(self) -> Iterator[Trace]:
        if self._header is not None:
            yield _trace(self._header, self._lines, tuple(self._numbers))
        self._header, self._lines = None, []


def _trace(header: HeaderLine, lines: list[Line], numbers: tuple[int, ...]) -> Trace:
    settings, profile = convert.settings_of(header), convert.profile_of(header)
    provenance = tuple(header.provenance.items())
    if header.kind == "wire":
        wire = tuple(line for line in lines if isinstance(line, WireLine))
        return WireTrace(settings, profile, wire, header.seed, header.name, provenance, header.assumed, numbers)
    events: list[Event] = []
    observations: list[Observation | None] = []
    for line in lines:
        event = convert.event_of_line(line)
        if event is not None:
            events.append(event)
            observations.append(None)
        elif isinstance(line, ObservedLine):
            observations[-1] = convert.observation_of_line(line)
    return EventTrace(settings, profile, tuple(events), tuple(observations), header.seed, header.name, provenance)


def explain(wrong: ValidationError) -> str:
    """Return the first error of a line, in one sentence, and the number of further ones."""
    errors = wrong.errors(include_url=False, include_input=False)
    first = errors[0]
    if first["type"] == "union_tag_not_found" and not first["loc"]:
        return "a line of a trace is a JSON object with a 'type' (docs/traces.md); this one is not"
    where = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where + ': ' if where else ''}{first['msg']}{more}"
