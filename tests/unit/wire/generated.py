"""Traces of the wire from the core: the requests of its generated clients and the answers, as a recorder would write
them.

The core has the faults of its profile, so such a trace shows the possible answers of a broker of that release to
clients that break every rule. The coordinator handles each request immediately; ``falsify.overlaps`` makes copies in
which requests overlap.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from fencepost.protocol import events as ev
from fencepost.protocol.messages import ListGroupsRequest
from fencepost_conformance.generate.generator import Generated
from fencepost_conformance.generate.plan import Plan, Wide
from fencepost_conformance.judge.checker.history import member_ids
from fencepost_conformance.judge.checker.listings import ALL, LISTS
from fencepost_conformance.judge.checker.offsets.reading import CREATE_TOPICS, DELETE_TOPICS
from fencepost_conformance.traces.convert import wire_body
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import API_OF_TYPE, GROUP_APIS, ReceivedLine, SentLine, WireLine

_CREATE_PARTITIONS = 37
#: A timer that is later than this exceeds the checker's tolerance.
LATE_MS = 2_000
#: Events that a recorder does not see, and the checker does not know.
_UNSEEN = (ev.AppendFailed, ev.GroupConfigChanged, ev.Load, ev.LoadFailed, ev.LoadStarted, ev.Unload)


#: The suffix of a member id that a coordinator makes (G-WIRE-28).
_MADE = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$|^[\w-]{22}$")


def steady(plan: Plan) -> Plan:
    """Return a plan in which one coordinator leads throughout, starts with an empty log, and can write to it."""
    mood = replace(plan.mood, append_fails=0.0, fail_over=0.0, late_timers=0.0, prompt=max(plan.mood.prompt, 0.6))
    return replace(plan, mood=mood, wide=Wide(), preloaded=False)


def wire_trace(made: Generated) -> WireTrace:
    """Return the trace as far as a recorder sees every relevant event: until the coordinator unloads, an append fails,
    a group is configured or a timer is late. It has no line if the coordinator begins with groups."""
    lines = tuple(_lines(made))
    coordinated = " ".join(_groups(made.events))
    return WireTrace(
        made.settings,
        made.profile,
        lines,
        made.seed,
        f"seed {made.seed}",
        (("nodes", "1"), ("coordinated", coordinated), (LISTS, ALL)),
    )


def _groups(events: Iterable[ev.Event]) -> list[str]:
    bodies = [each.body for each in events if isinstance(each, ev.Request)]
    found = [group for body in bodies for group in (getattr(body, "group_id", ""), *getattr(body, "group_ids", ()))]
    return [*dict.fromkeys(group for group in found if group and not any(map(str.isspace, group)))]


def _touch(groups: Collection[str]) -> bool:
    """Two groups may share the name of a timer, which then ends for both (C-TMR-11). The checker does not know this."""
    return any(one != other and other.startswith(f"{one}-") for one in groups for other in groups)


def _lines(made: Generated) -> Iterator[WireLine]:
    topics: dict[str, ev.Topic] = {}
    armed: dict[ev.TimerKey, int] = {}
    asked: dict[int, tuple[int, int]] = {}  #: API key and version, by request
    shown: set[str] = set()  #: member ids in answers
    loaded = False
    if _touch(_groups(made.events)):
        return
    for event, seen in zip(made.events, made.observations, strict=False):
        if isinstance(event, ev.Load) and not loaded and not event.records:
            loaded = True
        elif isinstance(event, ev.TopicsChanged):
            image = {topic.name: topic for topic in event.topics}
            yield from _topic_lines(event.at_ms, topics, image)
            topics = image
        elif _ends(event, armed, shown) if loaded else isinstance(event, ev.Load):
            return
        for key, deadline in seen.timers.items():
            if deadline is None:
                armed.pop(key, None)
            else:
                armed[key] = deadline
        if loaded and isinstance(event, ev.Request) and not _sees_part(event):
            key, *_ = GROUP_APIS[API_OF_TYPE[type(event.body)]]
            asked[event.id] = key, event.version
            yield _line(SentLine, event.at_ms, event.id, key, event.version, event.body, client_id=event.client_id)
        for reply in seen.replies:
            shown.update(member_ids([reply.body]))
            if reply.request_id in asked:
                yield _line(ReceivedLine, event.at_ms, reply.request_id, *asked.pop(reply.request_id), reply.body)


def _ends(event: ev.Event, armed: Mapping[ev.TimerKey, int], shown: Collection[str]) -> bool:
    """From here on a recorder would miss a relevant event."""
    return isinstance(event, _UNSEEN) or _is_late(event, armed) or _is_guessed(event, shown)


def _sees_part(event: ev.Request) -> bool:
    """A ListGroups of a client that may not list every group."""
    return isinstance(event.body, ListGroupsRequest) and bool(event.denied)


def _is_guessed(event: ev.Event, shown: Collection[str]) -> bool:
    """A request names an id that the coordinator has made, but not sent: clients see it in the core's state here."""
    body: Any = getattr(event, "body", None)
    rows = getattr(body, "members", ())
    named = [getattr(body, "member_id", ""), *(row.member_id for row in rows)]
    return any(_MADE.search(each) and each not in shown for each in named if each)


def _is_late(event: ev.Event, armed: Mapping[ev.TimerKey, int]) -> bool:
    """A timer fires later than the checker allows, or ends a request's wait for the log."""
    waits = isinstance(event, ev.TimerFired) and event.key.kind is ev.TimerKind.OPERATION
    due = (deadline for key, deadline in armed.items() if key.kind is not ev.TimerKind.EXPIRY)
    return waits or event.at_ms > min(due, default=event.at_ms) + LATE_MS


def _line(kind: Any, at_ms: int, number: int, key: int, version: int, body: Any, **more: Any) -> WireLine:  # noqa: PLR0917
    """Each request has a separate connection."""
    body = body if isinstance(body, dict) else wire_body(body)
    made: WireLine = kind(
        at_ms=at_ms, connection=number, correlation_id=number, api_key=key, api_version=version, body=body, **more
    )
    return made


def _topic_lines(at_ms: int, before: Mapping[str, ev.Topic], after: Mapping[str, ev.Topic]) -> Iterator[WireLine]:
    """An administrator creates, changes or deletes topics."""
    gone = [each for name, each in before.items() if name not in after or after[name].topic_id != each.topic_id]
    new = [each for name, each in after.items() if name not in before or before[name].topic_id != each.topic_id]
    grown = [each for name, each in after.items() if each not in new and each.partitions != before[name].partitions]
    for key, rows in ((DELETE_TOPICS, gone), (CREATE_TOPICS, new), (_CREATE_PARTITIONS, grown)):
        if not rows:
            continue
        counts = "count" if key == _CREATE_PARTITIONS else "num_partitions"
        asked = [{"name": each.name, counts: each.partitions} for each in rows]
        done = [{"name": each.name, "topic_id": str(UUID(bytes=each.topic_id)), "error_code": 0} for each in rows]
        answers = "topics" if key == CREATE_TOPICS else "responses" if key == DELETE_TOPICS else "results"
        number = 1_000_000 + next(_NUMBERS)
        yield _line(SentLine, at_ms, number, key, 6, {"topics": asked})
        yield _line(ReceivedLine, at_ms, number, key, 6, {answers: done})


_NUMBERS = iter(range(1 << 30))
