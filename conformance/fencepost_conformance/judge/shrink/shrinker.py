"""Delta debugging over the events of a trace: leaves out as much as possible.

It tries halves first, then smaller and smaller pieces, then single events, until nothing more can go; then the contents
of loaded logs, and settings. A candidate counts if it fails in the same way: same verdict, same field.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace

from fencepost.protocol.events import Event, Load
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import BadSettings, Settings

from ...common.interruption import interruptible
from ...generate.generator import Generated
from ..rows.check import Examined
from ..rows.job import failure_kind
from .references import Begin, References, Remade

#: runs a trace; ``Checker.examine`` of one trace
Examine = Callable[[Generated], Examined]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The shortest trace found, its result, and the number of candidates tried; ``interrupted``: more could have been
    tried."""

    trace: Generated
    found: Examined
    tried: int
    interrupted: bool = False


#: returns a key that is equal for equal failures; None if the trace did not fail
KindOf = Callable[[Examined], Hashable | None]


def kind_of(found: Examined) -> tuple[str, str] | None:
    """Return a key that is equal for equal failures; None if the trace did not fail."""
    if not found.outcome.failed or found.difference is None:
        return None
    return failure_kind(found.outcome, found.difference.field)


def shrink(
    trace: Generated, examine: Examine, *, most: int = 3_000, kind: KindOf = kind_of, begin: Begin | None = None
) -> Shrunk:
    """Return the shortest trace that fails as ``trace`` does; the shortest so far, if it is interrupted. Raises
    ``ValueError`` if ``trace`` does not fail.

    ``most``: maximum number of candidates; ``begin``: makes the coordinator that adapts candidates (the core if
    None)."""
    found = examine(trace)
    if kind(found) is None:
        raise ValueError("the trace does not fail: there is nothing to shrink")
    work = _Shrinking(trace, found, examine, most, kind, begin)
    with interruptible() as cut:
        work.cut()
        while work.leave_out_events() or work.leave_out_records():
            pass
        work.plain_settings()
        work.begin_at_zero()
    return Shrunk(work.best, work.found, work.tried, cut.happened)


def _settings() -> list[tuple[str, ...]]:
    """Return the settings, one by one; a value and its bounds change together, since a broker rejects one outside."""
    groups = [
        tuple(f"group_consumer_{bound}{name}_ms" for bound in ("", "min_", "max_"))
        for name in ("session_timeout", "heartbeat_interval", "assignment_interval")
    ]
    joined = {name for names in groups for name in names}
    return groups + [(field.name,) for field in fields(Settings) if field.name not in joined]


_SETTINGS = _settings()


class _Shrinking:
    def __init__(  # noqa: PLR0917 — as ``shrink``
        self, trace: Generated, found: Examined, examine: Examine, most: int, kind: KindOf, begin: Begin | None
    ) -> None:
        self.best, self.found, self.tried = trace, found, 0
        self._kind_of = kind
        self._kind = kind(found)
        self._begin = begin
        self._examine = examine
        self._most = most
        self._start_from(trace)

    def _start_from(self, trace: Generated) -> None:
        """Make candidates from this trace from now on."""
        own = () if self._begin is None else (self._begin,)
        self._references = References(trace.settings, trace.profile, trace.events, *own)

    def cut(self) -> None:
        """Drop the events after the difference."""
        assert self.found.difference is not None
        self._try(range(min(self.found.difference.event + 1, len(self.best.events))))
        self._start_from(self.best)

    def leave_out_events(self) -> bool:
        """Drop events; returns True if any was dropped."""
        before = len(self.best.events)
        piece = max(1, len(self.best.events) // 2)
        while True:
            start = 0
            while start < len(self.best.events):
                count = len(self.best.events)
                if not self._try([n for n in range(count) if not start <= n < start + piece]):
                    start += piece
            if piece == 1:
                return len(self.best.events) < before
            piece = max(1, piece // 2)

    def leave_out_records(self) -> bool:
        """Drop records of loads, and members of records; returns True if any was dropped."""
        went = False
        index = 0
        while index < len(self.best.events):
            event = self.best.events[index]
            if isinstance(event, Load) and any(self._try_event(index, other) for other in _smaller(event)):
                went = True
            else:
                index += 1
        return went

    def plain_settings(self) -> None:
        """Set settings that do not matter to Kafka's defaults."""
        usual = Settings()
        for names in _SETTINGS:
            try:
                settings = replace(self.best.settings, **{name: getattr(usual, name) for name in names})
            except BadSettings:
                continue  # the default contradicts another setting, which matters
            if settings != self.best.settings:
                self._try(range(len(self.best.events)), settings=settings)

    def begin_at_zero(self) -> None:
        """Shift the times so that the trace begins at 0."""
        events = self.best.events
        shift = events[0].at_ms if events else 0
        if shift:
            earlier = {index: replace(event, at_ms=event.at_ms - shift) for index, event in enumerate(events)}
            self._try(range(len(events)), changed=earlier)

    def _try_event(self, index: int, other: Event) -> bool:
        return self._try(range(len(self.best.events)), changed={index: other})

    def _try(
        self, kept: Sequence[int], *, changed: dict[int, Event] | None = None, settings: Settings | None = None
    ) -> bool:
        """Accept the candidate if it fails in the same way."""
        if self.tried >= self._most or not kept:
            return False
        self.tried += 1
        wanted = settings or self.best.settings
        remade = self._references.remake(wanted, kept, changed)
        candidate = as_trace(self.best.seed, wanted, self.best.profile, remade)
        found = self._examine(candidate)
        if self._kind_of(found) != self._kind:
            return False
        self.best, self.found = candidate, found
        self._start_from(candidate)
        return True


def as_trace(seed: int, settings: Settings, profile: Profile, remade: Remade) -> Generated:
    """Return a remade trace in a form that can be examined; ``seed`` names its origin."""
    return Generated(seed, settings, profile, remade.events, remade.observations, remade.failure)


def _smaller(event: Load) -> list[Load]:
    """Return the load with one record less, or one member less in a record, in all ways."""
    made = [replace(event, records=event.records[:n] + event.records[n + 1 :]) for n in range(len(event.records))]
    for n, record in enumerate(event.records):
        value = record.group_metadata
        for member in value.members if value else ():
            assert value is not None
            fewer = tuple(row for row in value.members if row is not member)
            thinner = replace(record, value=replace(value, members=fewer))
            made.append(replace(event, records=(*event.records[:n], thinner, *event.records[n + 1 :])))
    return made
