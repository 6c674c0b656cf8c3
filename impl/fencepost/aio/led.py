"""A partition that a broker leads, with its appends, timers and tasks."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from fencepost.protocol.events import TaskKey, TimerKey


@dataclass(slots=True, eq=False)
class Flight:
    """An append that is under way. ``end`` is the offset after its records, as the core counts; ``handled`` is the
    number of events that the coordinator had handled when it made the append; ``done`` ends with it."""

    end: int
    handled: int
    done: asyncio.Future[None]


@dataclass(slots=True, eq=False)
class Alarm:
    """A timer that is set: ``due`` in ms, ``at`` in seconds of the loop's clock. Each heartbeat sets the session timer
    again, for later. To save work, such a timer keeps its ``handle``, which then ``wakes`` too early and is set again.
    A timer that has ``rung`` (its event is queued) gets a new handle."""

    key: TimerKey
    due: int
    at: float
    wakes: float
    handle: asyncio.TimerHandle
    rung: bool = False


@dataclass(slots=True, eq=False)
class Deadline:
    """The timer of a write: ``due`` in ms, ``at`` by the clock of the loop. ``rung``: its event is queued."""

    key: TimerKey
    due: int
    at: float
    rung: bool = False


@dataclass(slots=True, eq=False)
class Led:
    """A partition that a broker leads at leader epoch ``epoch``. ``append_failed``: the partition is about to be given
    up or loaded again. ``loading`` is the task that loads it again. ``alarms`` are the timers but those of writes,
    which are in ``operations``; ``watch`` looks at these when the next one is due. ``landing``: finished appends are
    about to be settled."""

    partition: int
    epoch: int
    append_failed: bool = False
    flights: deque[Flight] = field(default_factory=deque)
    alarms: dict[TimerKey, Alarm] = field(default_factory=dict)
    operations: dict[int, Deadline] = field(default_factory=dict)
    watch: asyncio.TimerHandle | None = None
    landing: bool = False
    tasks: dict[TaskKey, asyncio.Handle] = field(default_factory=dict)
    loading: asyncio.Task[None] | None = None

    def forget(self) -> list[asyncio.Future[None]]:
        """Cancel the tasks and drop the appends under way, which count for nothing from now on. Returns those appends.
        The timers stay: the core cancels them itself."""
        self.append_failed = False
        for handle in self.tasks.values():
            handle.cancel()
        self.tasks.clear()
        left = [flight.done for flight in self.flights]
        self.flights.clear()
        return left
