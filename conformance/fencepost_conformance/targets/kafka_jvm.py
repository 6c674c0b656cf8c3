"""Apache Kafka's own group coordinator as a target: its service and runtime, stepped in a JVM (``docs/targets.md``).

The profile has no effect: Kafka does what its release does. For an impossible event the observation has an ``error``:
``NoSuchTimer`` (not armed, or not due), ``NoSuchTask``, ``OffsetBeyondLog``, ``OffsetInsideBatch`` (the records of one
operation are replicated together), ``NothingToAppend``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from fencepost.codec import LAYOUTS, Codec
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import AppendFailed, Event, TimerKey
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView
from fencepost_model.collector import uncollected

from ..traces.observation import Observation
from .jvm import decode, encode, harness
from .jvm.builds import Build
from .jvm.process import LineProcess, NoStart, ProcessFault
from .jvm.releases import NEWEST
from .registry import profile_of_version


class KafkaJvm:
    """One JVM, started when the first trace runs. Not thread-safe.

    ``build``: the name of a release, or any build of Kafka. ``views=False`` leaves ``Observation.groups`` empty, which
    is faster. ``merged=True`` runs Kafka's own linger 0, in which a failing append belongs to the step that caused it,
    and ``AppendFailed`` then shows nothing.
    """

    def __init__(
        self, build: Build | str = NEWEST, *, views: bool = True, merged: bool = False, timeout_s: float = 60.0
    ) -> None:
        self._build = Build(build) if isinstance(build, str) else build
        self.name = f"kafka:{self._build.folder or self._build.version}"
        self._codec = Codec(LAYOUTS[profile_of_version(self._build.version)])
        self._views = views
        self._merged = merged
        self._timeout_s = timeout_s
        self._process: LineProcess | None = None
        self._owner = 0

    @property
    def pid(self) -> int | None:
        """The JVM's process id, if it runs."""
        return None if self._process is None else self._process.pid

    def run(self, settings: Settings, profile: Profile, events: Sequence[Event]) -> list[Observation]:
        """Start anew, handle the events in order, and observe after each."""
        del profile
        return self.run_many([(settings, events)])[0]

    def run_many(self, traces: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
        """Run each trace on a fresh coordinator; one exchange for all of them."""
        if not traces:
            return []
        lines = [
            encode.trace(settings, events, self._codec, views=self._views, merged=self._merged)
            for settings, events in traces
        ]
        process = self._started()
        try:
            answers = process.exchange(b"".join(lines), len(lines))
        except ProcessFault:
            self._process = None
            raise
        with uncollected():
            return [decode.observations(line, self._codec) for line in answers]

    def run_each(self, traces: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation] | ProcessFault]:
        """As ``run_many``, with the fault in place of the observations of a trace that cannot be run. Restarts the JVM
        where it ended. Raises ``NoStart`` if it does not start."""
        try:
            return list(self.run_many(traces))
        except NoStart:
            raise
        except ProcessFault as fault:
            if len(traces) == 1:
                return [fault]
        return [found for trace in traces for found in self.run_each([trace])]

    def live(self, settings: Settings) -> KafkaLive:
        """Begin a trace that is fed event by event; it ends when another one begins here."""
        return KafkaLive(self._started(), settings, self._codec)

    def close(self) -> None:
        if self._process is not None and self._owner == os.getpid():
            self._process.close()
        self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _started(self) -> LineProcess:
        if self._process is None or self._owner != os.getpid():  # a forked child starts its own
            process = LineProcess(harness.command(self._build), self._timeout_s)
            try:
                process.read(1)
            except ProcessFault as fault:
                raise NoStart(str(fault)) from None
            self._process, self._owner = process, os.getpid()
        return self._process


_Known: TypeAlias = tuple[dict[TimerKey, int], dict[str, GroupView], dict[str, ConsumerGroupView]]


class KafkaLive:
    """One trace, event by event. ``drawn``: number of member ids that Kafka has made; if set, the next one has that
    number."""

    def __init__(self, process: LineProcess, settings: Settings, codec: Codec) -> None:
        self._process = process
        self._codec = codec
        self._settings = settings
        self._rows: list[list[Any]] = []
        self._drawn = self._next = 0
        self._started: Event | None = None
        self._before: tuple[int, _Known] = 0, ({}, {}, {})
        self.armed: dict[TimerKey, int] = {}
        self.groups: dict[str, GroupView] = {}
        self.consumer_groups: dict[str, ConsumerGroupView] = {}

    @property
    def drawn(self) -> int:
        return self._next

    @drawn.setter
    def drawn(self, number: int) -> None:
        self._next = number

    def start(self, event: Event) -> None:
        """Let Kafka begin to handle the event; ``feed`` of it must follow. Raises as that."""
        self._started = event
        self._process.exchange(self._line(event), 0)

    def feed(self, event: Event) -> Observation:
        """Handle the event and return what it did. Raises ``ProcessFault``."""
        line = b"" if self._started is event else self._line(event)
        self._started = None
        return self._ask(line)

    def _line(self, event: Event) -> bytes:
        rows = [encode.row(event, self._codec)]
        again = not self._rows or isinstance(event, AppendFailed)
        if self._next != self._drawn and not isinstance(event, AppendFailed):
            rows.insert(0, encode.next_id(self._next))
        self._before = len(self._rows), (dict(self.armed), dict(self.groups), dict(self.consumer_groups))
        self._rows += rows
        # a failing append belongs to the step before, so the trace so far runs again with that failure
        return encode.beginning(self._settings, self._rows) if again else encode.more(rows)

    def redrawn(self, event: Event, drawn: int) -> Observation:
        """Repeat the last step, with that number for its first member id. Raises ``ProcessFault``."""
        place, (self.armed, self.groups, self.consumer_groups) = self._before
        self._rows[place:] = [encode.next_id(drawn), encode.row(event, self._codec)]
        return self._ask(encode.beginning(self._settings, self._rows))

    def _ask(self, line: bytes) -> Observation:
        self._drawn, seen = decode.last_of(self._process.exchange(line, 1)[0], self._codec)
        self._next = self._drawn
        follow(self.armed, seen.timers)
        follow(self.groups, seen.groups)
        follow(self.consumer_groups, seen.consumer_groups)
        return seen


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def follow(known: dict[_Key, _Value], changes: Mapping[_Key, _Value | None]) -> None:
    """Apply the changes; None: removed."""
    for key, value in changes.items():
        if value is None:
            known.pop(key, None)
        else:
            known[key] = value
