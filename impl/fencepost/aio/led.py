"""What a broker has under way for one partition that it leads."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from fencepost.protocol.events import TaskKey, TimerKey


@dataclass(slots=True, eq=False)
class Flight:
    """An append that is under way: ``end``, the offset behind its records as the core counts, and how many events the
    coordinator had ``handled`` when it asked for it."""

    end: int
    handled: int
    done: asyncio.Future[None]


@dataclass(slots=True, eq=False)
class Alarm:
    """A timer that is set: ``due`` in ms, ``at`` by the loop's clock. One that is set again for later, as that of a
    session is by each heartbeat, keeps its ``handle``, which then ``wakes`` too early and finds that out; not once it
    has ``rung``."""

    key: TimerKey
    due: int
    at: float
    wakes: float
    handle: asyncio.TimerHandle
    rung: bool = False


@dataclass(slots=True, eq=False)
class Led:
    """``sinking``: an append has failed, and the partition is about to be given up or loaded again."""

    partition: int
    epoch: int
    sinking: bool = False
    flights: deque[Flight] = field(default_factory=deque)
    alarms: dict[TimerKey, Alarm] = field(default_factory=dict)
    tasks: dict[TaskKey, asyncio.Handle] = field(default_factory=dict)
    loading: asyncio.Task[None] | None = None

    def forget(self) -> list[asyncio.Future[None]]:
        """What is under way is late from now on. The appends among it."""
        self.sinking = False
        for handle in self.tasks.values():
            handle.cancel()
        self.tasks.clear()
        left = [flight.done for flight in self.flights]
        self.flights.clear()
        return left
