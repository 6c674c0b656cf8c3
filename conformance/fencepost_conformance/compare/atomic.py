"""Appends that are part of their step, where they fail.

What is of a transaction Kafka appends within its operation (F-RT-05). If that append fails, all has been taken back and
answered when the operation ends: one step, where the core is handed ``AppendFailed`` as a step of its own. Beside each
other both are seen as the second of these steps: what they did together, net of what was taken back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import AppendFailed, Event, TimerKey
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.view import GroupView

from ..generate.world import appends_within
from ..targets.base import Observation

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def fails_within(events: Sequence[Event], index: int) -> bool:
    """Whether the event appends within its step, and fails to."""
    after = index + 1
    return after < len(events) and isinstance(events[after], AppendFailed) and appends_within(events[index])


def joined(events: Sequence[Event], seen: Sequence[Observation]) -> Sequence[Observation]:
    """The observations, each append that failed within its step joined to the ``AppendFailed`` behind it; the step
    itself shows nothing. As many as were handed in, which may be fewer than events."""
    if not any(fails_within(events, index) for index in range(len(seen))):
        return seen
    told, shown, begun = list[Observation](), _Shown(), Observation()
    for index, step in enumerate(seen):
        if fails_within(events, index):
            begun = step
            told.append(Observation())
        elif index and fails_within(events, index - 1):
            after = shown.after(begun).after(step)
            told.append(shown.net(begun, step, after))
            shown = after
        else:
            told.append(step)
            shown = shown.after(step)
    return told


@dataclass(frozen=True, slots=True)
class _Shown:
    """What stands, as far as observations have told."""

    groups: Mapping[str, GroupView | None] = field(default_factory=dict)
    consumer_groups: Mapping[str, ConsumerGroupView | None] = field(default_factory=dict)
    timers: Mapping[TimerKey, int | None] = field(default_factory=dict)
    offsets: OffsetsView = field(default_factory=OffsetsView)

    def after(self, step: Observation) -> _Shown:
        """With what a step tells."""
        return _Shown(
            {**self.groups, **step.groups},
            {**self.consumer_groups, **step.consumer_groups},
            {**self.timers, **step.timers},
            self.offsets if step.offsets is None else step.offsets,
        )

    def net(self, step: Observation, failure: Observation, now: _Shown) -> Observation:
        """What the two did together, from here to ``now``."""
        return Observation(
            records=step.records + failure.records,
            replies=step.replies + failure.replies,
            timers=_changed(self.timers, now.timers),
            groups=_changed(self.groups, now.groups),
            error=step.error or failure.error,
            consumer_groups=_changed(self.consumer_groups, now.consumer_groups),
            tasks=step.tasks + failure.tasks,
            offsets=None if now.offsets == self.offsets else now.offsets,
        )


def _changed(before: Mapping[_Key, _Value | None], now: Mapping[_Key, _Value | None]) -> dict[_Key, _Value | None]:
    return {key: value for key, value in now.items() if before.get(key) != value}
