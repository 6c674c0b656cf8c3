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
    """What a target did with one event.

    ``timers``: the net change of the armed timers, key to absolute deadline in ms, or None if it is armed no more; a
    timer that was re-armed to the same deadline is no change. ``groups``: the classic groups that the event changed, id
    to their view afterwards, None if there is no classic group of that id any more; ``consumer_groups``: likewise.
    ``tasks``: work that was started beside. ``error``: the operation failed inside (an internal error, Kafka's
    exception class name); an outcome too, since some rules say so. ``offsets``: all offsets afterwards, None if the
    event changed none of them, or if the target does not show them.
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
    """Anything that takes a whole trace of events and tells what it observed after each."""

    name: str

    def run(self, settings: Settings, profile: Profile, events: Sequence[Event]) -> list[Observation]:
        """Start afresh, handle the events in order, observe after each. Same length as ``events``."""

    def close(self) -> None: ...
