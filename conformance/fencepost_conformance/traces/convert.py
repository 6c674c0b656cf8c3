"""Converts between the lines of a trace and the dataclasses of coordinator, model and targets."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from enum import Enum
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fencepost.protocol import events as ev
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.profile import SWITCH_NAMES, Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

from . import lines as ln
from .observation import Observation
from .profiles import JUDGED

_SETTINGS = {field.name for field in fields(Settings)}
_CODES = frozenset(map(int, ErrorCode))
_DEFAULTS = Settings()
_SETTINGS_TYPE = TypeAdapter(Settings)

#: lists that represent sets: written sorted, so that a trace has one text
_SETS = frozenset({"denied", "denied_topics", "denied_transactional_ids", "pending_join", "pending_sync"})
_LISTS_OF_SETS = frozenset({"racks"})

_PLAIN: tuple[tuple[type, type[ln.Line]], ...] = (
    (ev.TimerFired, ln.TimerFiredLine),
    (ev.Appended, ln.AppendedLine),
    (ev.AppendFailed, ln.AppendFailedLine),
    (ev.TaskDone, ln.TaskDoneLine),
    (ev.TopicsChanged, ln.TopicsChangedLine),
    (ev.GroupConfigChanged, ln.GroupConfigChangedLine),
    (ev.LoadStarted, ln.LoadStartedLine),
    (ev.Load, ln.LoadLine),
    (ev.LoadFailed, ln.LoadFailedLine),
    (ev.Unload, ln.UnloadLine),
)
_LINE_OF = dict(_PLAIN)
_EVENT_OF = {line: event for event, line in _PLAIN}


def header(
    kind: str,
    settings: Settings,
    profile: Profile,
    *,
    seed: int | None = None,
    name: str = "",
    provenance: dict[str, str] | None = None,
    assumed: tuple[str, ...] = (),
) -> ln.HeaderLine:
    """Return the header of a trace; values equal to the defaults are left out."""
    base = replace(JUDGED.get(profile.name, INTENDED), name=profile.name)
    return ln.HeaderLine(
        version=1,
        kind="events" if kind == "events" else "wire",
        name=name,
        profile=profile.name,
        switches={k: getattr(profile, k) for k in sorted(SWITCH_NAMES) if getattr(profile, k) != getattr(base, k)},
        settings={
            k: _setting_of(settings, k) for k in sorted(_SETTINGS) if getattr(settings, k) != getattr(_DEFAULTS, k)
        },
        assumed=assumed,
        seed=seed,
        provenance=provenance or {},
    )


def settings_of(line: ln.HeaderLine) -> Settings:
    """Return the settings. Raises ``ValueError`` for an unknown setting, and for contradicting ones."""
    if unknown := sorted({*line.settings, *line.assumed} - _SETTINGS):
        raise ValueError(f"unknown setting {unknown[0]!r}")
    try:
        settings: Settings = _SETTINGS_TYPE.validate_python(line.settings)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        where = f"setting {first['loc'][0]!r}: " if first["loc"] else ""
        raise ValueError(f"{where}{first['msg'].removeprefix('Value error, ')}") from None
    settings.require_assignors()
    return settings


def _setting_of(settings: Settings, name: str) -> ln.Setting:
    value = getattr(settings, name)
    return value.value if isinstance(value, Enum) else value  # type: ignore[no-any-return]


def profile_of(line: ln.HeaderLine) -> Profile:
    """Return the profile. Raises ``ValueError`` for an unknown switch, or an unknown profile without switches."""
    if unknown := sorted(set(line.switches) - {*SWITCH_NAMES}):
        raise ValueError(f"unknown switch {unknown[0]!r}")
    known = JUDGED.get(line.profile)
    if known is None and not line.switches:
        raise ValueError(f"unknown profile {line.profile!r}; known: {', '.join(sorted(JUDGED))}")
    changes: dict[str, Any] = dict(line.switches)
    return replace(known or replace(INTENDED, name=line.profile), **changes)


def line_of_event(event: ev.Event) -> ln.Line:
    """Return the line for this event."""
    if isinstance(event, ev.Request):
        made: ln.Line = ln.REQUEST_LINES[ln.API_OF_TYPE[type(event.body)]](
            **{field.name: getattr(event, field.name) for field in fields(ev.Request)}
        )
        return made
    return _LINE_OF[type(event)](**{field.name: getattr(event, field.name) for field in fields(event)})


def event_of_line(line: ln.Line) -> ev.Event | None:
    """Return the event in the line, None if it is not an event line."""
    if getattr(line, "type", None) == "request":
        return ev.Request(**{field.name: getattr(line, field.name) for field in fields(ev.Request)})
    kind = _EVENT_OF.get(type(line))
    if kind is None:
        return None
    made: ev.Event = kind(**{field.name: getattr(line, field.name) for field in fields(kind)})
    return made


def line_of_observation(seen: Observation) -> ln.ObservedLine:
    return ln.ObservedLine(
        records=seen.records,
        replies=tuple(
            ln.REPLY_PARTS[ln.API_OF_TYPE[type(reply.body)]](request_id=reply.request_id, body=reply.body)
            for reply in seen.replies
        ),
        timers=tuple(
            ln.TimerPart(key=key, deadline_ms=deadline)
            for key, deadline in sorted(
                seen.timers.items(),
                key=lambda item: (item[0].kind.value, item[0].group_id, item[0].member_id, item[0].operation),
            )
        ),
        groups=dict(sorted(seen.groups.items())),
        consumer_groups=dict(sorted(seen.consumer_groups.items())),
        tasks=seen.tasks,
        error=seen.error,
        offsets=seen.offsets,
    )


def observation_of_line(line: ln.ObservedLine) -> Observation:
    return Observation(
        records=line.records,
        replies=tuple(ev.Reply(part.request_id, part.body) for part in line.replies),
        timers={part.key: part.deadline_ms for part in line.timers},
        groups=dict(line.groups),
        error=line.error,
        consumer_groups=dict(line.consumer_groups),
        tasks=line.tasks,
        offsets=line.offsets,
    )


def text_of(line: ln.Line) -> str:
    """Return one line of JSON, without its end. The same line always has the same text; defaults are left out."""
    return json.dumps(plain(line), ensure_ascii=False, separators=(",", ":"))


def plain(line: ln.Line) -> dict[str, Any]:
    """Return the line as JSON data: ``type`` first, sets sorted, top-level fields with their default left out."""
    dumped = line.model_dump(mode="json")
    defaults = type(line).model_fields
    kept = {"type": dumped.pop("type")}
    if "api" in dumped:
        kept["api"] = dumped.pop("api")
    for name, value in dumped.items():
        default = defaults[name].get_default()
        if defaults[name].is_required() or (value != default and not (not value and not default and value is not None)):
            kept[name] = value
    sorted_sets: dict[str, Any] = _with_sorted_sets(kept)
    return sorted_sets


def _sorted(name: str, value: list[Any]) -> list[Any]:
    if name in _SETS:
        return sorted(value)
    if name in _LISTS_OF_SETS:
        return [sorted(inner) for inner in value]
    return [_with_sorted_sets(inner) for inner in value]


def _with_sorted_sets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _sorted(name, inner) if isinstance(inner, list) else _with_sorted_sets(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_with_sorted_sets(inner) for inner in value]
    return value


def wire_request(line: ln.SentLine) -> RequestBody | None:
    """Return the typed body of a request of the group APIs, None for any other API or an undecoded frame.

    Raises ``pydantic.ValidationError`` if the body has other fields than the API."""
    body: RequestBody | None = _typed(line.api_key, line.body, of_request=True)
    return body


def wire_response(line: ln.ReceivedLine) -> ResponseBody | None:
    """As ``wire_request``, for the answer; also None for an answer with an unknown error code (``odd_codes``)."""
    try:
        body: ResponseBody | None = _typed(line.api_key, line.body, of_request=False)
    except ValidationError:
        if odd_codes(line.body):
            return None
        raise
    return body


def odd_codes(body: Any) -> tuple[int, ...]:
    """Return the error codes in an answer (JSON data) that group coordination does not have, in order of appearance."""
    found: list[int] = []
    if isinstance(body, dict):
        code = body.get("error_code")
        if isinstance(code, int) and code not in _CODES:
            found.append(code)
        body = list(body.values())
    if isinstance(body, list):
        for inner in body:
            found += odd_codes(inner)
    return tuple(dict.fromkeys(found))


def _typed(api_key: int, body: dict[str, Any], *, of_request: bool) -> Any:
    name = ln.API_OF_KEY.get(api_key)
    if name is None or "undecoded" in body:
        return None
    _, request, response = ln.GROUP_APIS[name]
    return ln.body_model(request if of_request else response).model_validate_json(json.dumps({"body": body})).body


def wire_body(body: RequestBody | ResponseBody) -> dict[str, Any]:
    """Return the JSON data of a message, for the ``body`` of a wire line."""
    data: dict[str, Any] = ln.body_model(type(body))(body=body).model_dump(mode="json")["body"]
    return data
