"""The log around a coordinator that gets one event at a time, and its background tasks."""

from __future__ import annotations

from fencepost.protocol import events as ev
from fencepost.protocol.errors import IMPOSSIBLE
from fencepost.protocol.records import Record

from ..traces.observation import Observation
from .leading import Leading


class TrackedLog:
    """Call ``takes`` before an event is handled, and ``note`` with its observation.

    ``before``: length of the log before the last step; ``replicated``: number of replicated records; ``tasks``: running
    background tasks; ``loaded``: the last step began with another log.
    """

    def __init__(self) -> None:
        self.log: list[Record] = []
        self.before = 0
        self.replicated = 0
        self.tasks: set[ev.TaskKey] = set()
        self.loaded = False
        self._leading = Leading()

    def takes(self, event: ev.Event) -> bool:
        """Whether the event takes effect (F-LOAD-03)."""
        taken = self._leading.takes(event)
        self.loaded = taken and isinstance(event, ev.Load)
        return taken

    def note(self, event: ev.Event, seen: Observation, *, taken: bool, groups: bool) -> None:
        """Note a step. ``taken``: the result of ``takes``; ``groups``: there are groups now."""
        if seen.error in IMPOSSIBLE:
            return
        if isinstance(event, ev.Load) and taken:
            self._leading.loaded(event.records, groups=groups)
        if not taken:  # a load or a loss without effect
            pass
        elif isinstance(event, ev.AppendFailed):
            del self.log[self.before :]
        elif isinstance(event, ev.Load):
            self.log = list(event.records)
            self.replicated = len(self.log)
        elif isinstance(event, ev.Appended):
            self.replicated = event.offset
        elif isinstance(event, ev.TaskDone):
            self.tasks.discard(event.key)
        elif isinstance(event, ev.Unload):
            self.tasks.clear()
        self.tasks.update(seen.tasks)
        self.before = len(self.log)
        self.log += seen.records

    def take_back(self, seen: Observation, instead: Observation) -> None:
        """Replace the effects of the last step, which was repeated."""
        self.tasks.difference_update(seen.tasks)
        self.tasks.update(instead.tasks)
        del self.log[self.before :]
        self.log += instead.records
