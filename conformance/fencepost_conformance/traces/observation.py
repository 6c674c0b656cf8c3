"""The effects of an event on a coordinator, as a trace has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Reply, TaskKey, TimerKey
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.records import Record
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
