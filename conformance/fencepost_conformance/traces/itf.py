"""ITF, the JSON trace format of Apalache and other TLA+ tools (``docs/traces.md``, section ITF).

It has one state for each event. A null becomes the record ``{"tag": "None"}``, since ITF has no null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.view import GroupView

from . import convert
from .files import EventTrace, explain
from .lines import HeaderLine, Line, ObservedLine, parse_line
from .observation import Observation

_NONE = {"tag": "None"}
_BIG = 2**53
_GROUPS = ("groups", "consumer_groups")

View = TypeVar("View", GroupView, ConsumerGroupView)


class NotItf(ValueError):
    """The file is not an ITF trace of events; the message says where and why."""


def to_itf(trace: EventTrace) -> dict[str, Any]:
    """Return the trace as ITF data."""
    observations = trace.observations or (None,) * len(trace.events)
    groups: dict[str, GroupView] = {}
    consumer_groups: dict[str, ConsumerGroupView] = {}
    states: list[dict[str, Any]] = []
    for index, (event, seen) in enumerate(zip(trace.events, observations, strict=True)):
        if seen is not None:
            _follow(groups, seen.groups)
            _follow(consumer_groups, seen.consumer_groups)
        views = Observation(groups=groups, consumer_groups=consumer_groups)
        shown = convert.plain(convert.line_of_observation(views))
        states.append(
            {
                "#meta": {"index": index},
                "event": _encode(convert.plain(convert.line_of_event(event))),
                "observed": _encode(convert.plain(convert.line_of_observation(seen)) if seen else None),
                **{
                    name: {"#map": [[key, _encode(row)] for key, row in shown.get(name, {}).items()]}
                    for name in _GROUPS
                },
            }
        )
    head = convert.header(
        "events",
        trace.settings,
        trace.profile,
        seed=trace.seed,
        name=trace.name,
        provenance=dict(trace.provenance),
    )
    return {
        "#meta": {"format": "ITF", "description": "coordinator trace", "fencepost": convert.plain(head)},
        "vars": ["event", "observed", *_GROUPS],
        "states": states,
    }


def _follow(groups: dict[str, View], changed: Mapping[str, View | None]) -> None:
    for group_id, view in changed.items():
        groups.pop(group_id, None)
        if view is not None:
            groups[group_id] = view


def from_itf(data: Any) -> EventTrace:
    """Return the trace in ITF data. Raises ``NotItf``."""
    if not isinstance(data, dict) or not isinstance(data.get("states"), list):
        raise NotItf("not an ITF trace: no list of states")
    head = data.get("#meta", {}).get("fencepost", {"type": "trace", "version": 1, "kind": "events"})
    header = _line(head, "#meta.fencepost")
    if not isinstance(header, HeaderLine) or header.kind != "events":
        raise NotItf("#meta.fencepost: not the header of a trace of events")
    try:
        settings, profile = convert.settings_of(header), convert.profile_of(header)
    except ValueError as wrong:
        raise NotItf(f"#meta.fencepost: {wrong}") from None
    events, observations = [], []
    for index, state in enumerate(data["states"]):
        if not isinstance(state, dict) or "event" not in state:
            raise NotItf(f"state {index}: no variable 'event'")
        event = convert.event_of_line(_line(_decode(state["event"]), f"state {index}, event"))
        if event is None:
            raise NotItf(f"state {index}: 'event' is not an event")
        events.append(event)
        seen = _decode(state.get("observed", _NONE))
        line = None if seen is None else _line(seen, f"state {index}, observed")
        if line is not None and not isinstance(line, ObservedLine):
            raise NotItf(f"state {index}: 'observed' is not an observation")
        observations.append(None if line is None else convert.observation_of_line(line))
    return EventTrace(
        settings,
        profile,
        tuple(events),
        tuple(observations),
        header.seed,
        header.name,
        tuple(header.provenance.items()),
    )


def read_itf(path: Path) -> EventTrace:
    """Read a file. Raises ``NotItf``, ``OSError``."""
    try:
        return from_itf(json.loads(path.read_bytes()))
    except ValueError as wrong:
        raise NotItf(f"{path}: {wrong}") from None


def write_itf(path: Path, trace: EventTrace) -> None:
    path.write_text(json.dumps(to_itf(trace), ensure_ascii=False, indent=1), encoding="utf-8")


def _line(data: Any, where: str) -> Line:
    try:
        return parse_line(json.dumps(data))
    except ValidationError as wrong:
        raise NotItf(f"{where}: {explain(wrong)}") from None


def _encode(value: Any) -> Any:
    if value is None:
        return dict(_NONE)
    if isinstance(value, dict):
        return {name: _encode(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_encode(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _BIG:
        return {"#bigint": str(value)}
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if value == _NONE:
            return None
        if set(value) == {"#bigint"}:
            return int(value["#bigint"])
        if set(value) in ({"#set"}, {"#tup"}):
            return [_decode(inner) for inner in next(iter(value.values()))]
        if set(value) == {"#map"}:
            return {_decode(name): _decode(inner) for name, inner in value["#map"]}
        return {name: _decode(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_decode(inner) for inner in value]
    return value
