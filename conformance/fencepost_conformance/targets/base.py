"""The interface of a target: events in, observations out, one observation an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Event, Reply, TaskKey, TimerKey
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.profile import Profile
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView


@dataclass(frozen=True, slots=True)
class Observation:
    """The effects of one event on a target.

    ``timers``: the net change of the armed timers, key to absolute deadline in ms, or None if it is no longer armed; a
    timer that was re-armed to the same deadline does not count. ``groups``: the classic groups that the event changed,
    id to their view afterwards, None if there is no classic group with that id any longer; ``consumer_groups``:
    likewise. ``tasks``: background tasks that were started. ``error``: an internal error of the operation (Kafka's
    exception class name), which some rules require. ``offsets``: all offsets afterwards, None if the event changed none
    of them, or if the target does not show them.
    """

    records: tuple[Record, ...] = ()
    replies: tuple[Reply, ...] = ()
    timers: Mapping[TimerKey, int | None] = field(default_factory=dict)
    groups: Mapping[str, GroupView | None] = field(default_factory=dict)
    error: str | None = None
    consumer_groups: Mapping[str, ConsumerGroupView | None] = field(default_factory=dict)
    tasks: tuple[TaskKey, ...] = ()
    offsets: OffsetsView | None = None


class Target(Protocol):
    """Anything that takes a whole trace of events and returns its observation of each."""

    name: str

    def run(self, settings: Settings, profile: Profile, events: Sequence[Event]) -> list[Observation]:
        """Start anew, handle the events in order, and return one observation for each event."""

    def close(self) -> None: ...
