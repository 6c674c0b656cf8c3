"""Appends within their own step, when they fail.

Kafka appends a transaction's records within its operation (F-RT-05). If that append fails, everything has been undone
and answered when the operation ends, in one step. The core gets ``AppendFailed`` as a separate step. For the comparison
both are shown as the second of these steps: their combined effect, without what was undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import AppendFailed, Event, TimerKey
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.view import GroupView

from ...generate.world import appends_within
from ...traces.observation import Observation

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def fails_within(events: Sequence[Event], index: int) -> bool:
    """Whether the event appends within its step and that append fails."""
    after = index + 1
    return after < len(events) and isinstance(events[after], AppendFailed) and appends_within(events[index])


def joined(events: Sequence[Event], seen: Sequence[Observation]) -> Sequence[Observation]:
    """Return the observations with each append that failed within its step joined to its ``AppendFailed``; the first
    step then shows nothing. The result is as long as the input, which may be shorter than the events."""
    if not any(fails_within(events, index) for index in range(len(seen))):
        return seen
    observations, shown, begun = list[Observation](), _Shown(), Observation()
    for index, step in enumerate(seen):
        if fails_within(events, index):
            begun = step
            observations.append(Observation())
        elif index and fails_within(events, index - 1):
            after = shown.after(begun).after(step)
            observations.append(shown.net(begun, step, after))
            shown = after
        else:
            observations.append(step)
            shown = shown.after(step)
    return observations


@dataclass(frozen=True, slots=True)
class _Shown:
    """The state that observations have shown so far."""

    groups: Mapping[str, GroupView | None] = field(default_factory=dict)
    consumer_groups: Mapping[str, ConsumerGroupView | None] = field(default_factory=dict)
    timers: Mapping[TimerKey, int | None] = field(default_factory=dict)
    offsets: OffsetsView = field(default_factory=OffsetsView)

    def after(self, step: Observation) -> _Shown:
        """Return the state after a step."""
        return _Shown(
            {**self.groups, **step.groups},
            {**self.consumer_groups, **step.consumer_groups},
            {**self.timers, **step.timers},
            self.offsets if step.offsets is None else step.offsets,
        )

    def net(self, step: Observation, failure: Observation, now: _Shown) -> Observation:
        """Return the combined effect of the two steps, from here to ``now``."""
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
