"""The failure group of a trace: the key that ``fencepost diff`` gives to such a difference.

``JoinGroup: reply.error_code NONE->UNKNOWN_MEMBER_ID`` where core and target differ; ``JoinGroup: model refuses
records`` where the model does not allow what the core did; ``JoinGroup: core raises KeyError``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.view import GroupView

from ...targets.kafka_jvm import follow
from ...traces.observation import Observation
from ..compare.difference import Difference
from ..compare.key import key_of, kind_of_event
from ..compare.leaves import Seen, base_of, leaves
from .job import TraceOutcome

_NUMBERS = re.compile(r"\[[^]]*\]|\d+")


def group_of(
    outcome: TraceOutcome,
    difference: Difference,
    events: Sequence[ev.Event],
    ours: Sequence[Observation],
    other: Sequence[Observation] | None,
) -> str:
    """Return the key of a trace's failure; ``ours`` and ``other``: the observations at least up to it."""
    at = difference.event
    happened = kind_of_event(events[at]) if at < len(events) else "end"
    if outcome is TraceOutcome.RAISED:
        return f"{happened}: core raises {difference.left.split(':')[0]}"
    if outcome is TraceOutcome.REFUSED:
        part = difference.field.removeprefix("model").removeprefix(": ") or difference.right
        return f"{happened}: model refuses {plain(part).removesuffix(' to')}"  # of "reply to 40"
    if other is not None and at < min(len(ours), len(other), len(events)):
        one, two = _seen(events, ours, ours[:at], at), _seen(events, other, ours[:at], at)
        found = leaves(*_whole(one, two, ours[:at]))
        if found:
            return key_of(events[at], found[0])
    return f"{happened}: {plain(difference.field)}"


def plain(text: str) -> str:
    """Return the text without numbers and names in brackets."""
    return " ".join(_NUMBERS.sub("", text).split())


def _seen(events: Sequence[ev.Event], seen: Sequence[Observation], before: Sequence[Observation], at: int) -> Seen:
    """Return what one side did at the step; up to there both did the same."""
    views: dict[str, GroupView | ConsumerGroupView] = {}
    for each in before:
        follow(views, each.groups)
        follow(views, each.consumer_groups)
    asked = {
        event.id: getattr(event.body, "group_id", "") for event in events[: at + 1] if isinstance(event, ev.Request)
    }
    event = events[at]
    about = getattr(event.body, "group_id", "") if isinstance(event, ev.Request) else ""
    return Seen(seen[at], {name: base_of(view) for name, view in views.items()}, asked, about)


def _whole(one: Seen, other: Seen, before: Sequence[Observation]) -> tuple[Seen, Seen]:
    """Return both with the state of everything that either changed; the other side keeps its previous state."""
    halves: list[dict[str, Any]] = [{}, {}]
    for name in ("groups", "consumer_groups", "timers"):
        known: dict[Any, Any] = {}
        for each in before:
            follow(known, getattr(each, name))
        changes = [getattr(side.observation, name) for side in (one, other)]
        for side, change in enumerate(changes):
            halves[side][name] = {key: change.get(key, known.get(key)) for key in {**changes[0], **changes[1]}}
    parts = [
        Observation(
            side.observation.records,
            side.observation.replies,
            own["timers"],
            own["groups"],
            consumer_groups=own["consumer_groups"],
            tasks=side.observation.tasks,
        )
        for side, own in zip((one, other), halves, strict=True)
    ]
    return tuple(  # type: ignore[return-value]  # two of them
        Seen(part, side.bases, side.asked, side.about) for part, side in zip(parts, (one, other), strict=True)
    )
