"""Apache Kafka's own group coordinator as a target: its service and runtime, stepped in a JVM (``docs/targets.md``).

The profile plays no part: Kafka does what its release does. A trace that asks for something impossible is answered in
the observation's ``error``: ``NoSuchTimer`` (not armed, or not due), ``NoSuchTask``, ``OffsetBeyondLog``,
``OffsetInsideBatch`` (the records of one operation are replicated together), ``NothingToAppend``.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from fencepost.protocol.events import Event
from fencepost.protocol.settings import Profile, Settings

from ..jvm import decode, encode, harness
from ..jvm.builds import Build
from ..jvm.process import LineProcess, ProcessFault
from .base import Observation

DEFAULT_VERSION = "4.3.1"


@contextmanager
def _without_collector() -> Iterator[None]:
    """Decoding makes very many objects and no cycles; the collector would go through them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class KafkaJvm:
    """One JVM, started when the first trace is run. Not for use by several threads at once.

    ``build``: a release by its name, or any build of Kafka.
    ``views=False`` leaves ``Observation.groups`` empty, which is quicker. ``merged=True`` runs Kafka's own linger 0, in
    which a failing append belongs to the step that caused it, and ``AppendFailed`` then shows nothing.
    """

    def __init__(
        self, build: Build | str = DEFAULT_VERSION, *, views: bool = True, merged: bool = False, timeout_s: float = 60.0
    ) -> None:
        self._build = Build(build) if isinstance(build, str) else build
        self.name = f"kafka:{self._build.folder or self._build.version}"
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
        """Start afresh, handle the events in order, observe after each."""
        del profile
        return self.run_many([(settings, events)])[0]

    def run_many(self, traces: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
        """Run each trace on a fresh coordinator; one exchange for all of them."""
        if not traces:
            return []
        lines = [encode.trace(settings, events, views=self._views, merged=self._merged) for settings, events in traces]
        process = self._started()
        try:
            answers = process.exchange(b"".join(lines), len(lines))
        except ProcessFault:
            self._process = None
            raise
        with _without_collector():
            return [decode.observations(line) for line in answers]

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
            self._process = LineProcess(harness.command(self._build), self._timeout_s)
            self._owner = os.getpid()
            self._process.read(1)
        return self._process
