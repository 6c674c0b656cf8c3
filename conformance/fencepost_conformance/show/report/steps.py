"""A trace of events, step by step in words: sender and receiver, answers, records and their replication, timers, the
groups afterwards, and the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fencepost.protocol import events as ev

from ...targets.leading import Leading
from ...traces.observation import Observation
from .holdings import GroupAt, changed
from .names import learn, member_ids
from .record_words import record_brief, record_words
from .words import (
    answer_brief,
    answer_words,
    api_of,
    body_words,
    errors_in,
    event_words,
    request_brief,
    task_words,
    timer_words,
)

COORDINATOR, LOG = "coordinator", "log"


class Kind(StrEnum):
    """The kind of a step; pictures show them differently."""

    REQUEST = "request"
    ANSWER = "answer"  #: nothing but answers (traces of the wire)
    TIMER = "timer"
    APPENDED = "appended"
    APPEND_FAILED = "append failed"
    FAIL_OVER = "fail-over"  #: the partition is won, loaded or lost
    CHANGE = "change"  #: topics, configuration, background tasks


_KINDS: dict[type, Kind] = {
    ev.Request: Kind.REQUEST,
    ev.TimerFired: Kind.TIMER,
    ev.Appended: Kind.APPENDED,
    ev.AppendFailed: Kind.APPEND_FAILED,
    ev.LoadStarted: Kind.FAIL_OVER,
    ev.Load: Kind.FAIL_OVER,
    ev.LoadFailed: Kind.FAIL_OVER,
    ev.Unload: Kind.FAIL_OVER,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. ``to``: a lane."""

    to: str
    request_id: int
    text: str
    brief: str
    error: bool


@dataclass(frozen=True, slots=True)
class Append:
    """Records of a step: offsets from ``first`` up to, but without, ``end``. ``fate`` "": the trace does not show
    it."""

    first: int
    end: int
    records: tuple[str, ...]
    brief: str
    fate: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class StepWords:
    """A step. ``who`` acts on ``whom`` (both are names of lanes); all texts are short and plain.

    ``brief`` is a short form of ``what``. ``groups``: those that the step changed. ``rules``: those that explain it.
    ``group``: the name of the group that the request or the timer is about, if it is one.
    """

    index: int
    at_ms: int
    kind: Kind
    who: str
    whom: str
    what: str
    brief: str
    answers: tuple[Answer, ...] = ()
    append: Append | None = None
    timers: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    groups: tuple[GroupAt, ...] = ()
    rules: tuple[str, ...] = ()
    error: str | None = None
    group: str = ""


class StepDescriber:
    """Describes the steps of a trace of events in order. ``rules``: for each event, if they are known."""

    def __init__(
        self,
        events: Sequence[ev.Event],
        observations: Sequence[Observation | None],
        rules: Sequence[tuple[str, ...]] = (),
    ) -> None:
        self._events = events
        self._observations = observations
        self._rules = rules
        self.names = learn(events, observations)
        self._lane_of = self._lanes()
        self._end = 0  # end of the log
        self._open: list[int] = []  # steps whose records are not replicated yet
        self._leading = Leading()
        self._shown: list[StepWords] = []

    def steps(self) -> list[StepWords]:
        """Return all steps; an event without an observation has only its own description."""
        self._end, self._open, self._shown = 0, [], []
        self._leading = Leading()
        for index, event in enumerate(self._events):
            seen = self._observations[index] if index < len(self._observations) else None
            self._fates(index, event, seen)
            self._shown.append(self._step(index, event, seen or Observation()))
        return self._shown

    def lanes(self) -> list[str]:
        """Return all lanes, the coordinator and its log last."""
        return [*dict.fromkeys(self._lane_of.values()), COORDINATOR, LOG]

    def _lanes(self) -> dict[int, str]:
        """Map request ids to lanes: the client, or client and member if one client is several members of a group."""
        views = [
            view
            for seen in self._observations
            for view in ((*seen.groups.values(), *seen.consumer_groups.values()) if seen else ())
            if view is not None
        ]
        known = {row.member_id for view in views for row in view.members}
        split = {
            client
            for view in views
            for client, count in Counter(_client(row.client_id, row.client_host) for row in view.members).items()
            if count > 1
        }
        given: dict[int, str] = {}  # member id that the answer hands out
        for seen in self._observations:
            for reply in seen.replies if seen else ():
                given.update((reply.request_id, member) for member in member_ids(reply.body) if member in known)
        lanes = {}
        for request in self._events:
            if isinstance(request, ev.Request):
                client = _client(request.client_id, request.client_host)
                member = getattr(request.body, "member_id", None)
                member = member if member in known else given.get(request.id) if member is not None else None
                lanes[request.id] = f"{client} {self.names.member(member)}" if member and client in split else client
        return lanes

    def _step(self, index: int, event: ev.Event, seen: Observation) -> StepWords:
        names = self.names
        if isinstance(event, ev.Request):
            who, whom = self._lane_of[event.id], COORDINATOR
            said = f"{api_of(event.body)} v{event.version} {body_words(event.body, names)}"
            what, brief = f"#{event.id} {said}{_denied(event)}", request_brief(event.body, names)
        else:
            who = whom = COORDINATOR
            what = brief = event_words(event)
        return StepWords(
            index,
            event.at_ms,
            _KINDS.get(type(event), Kind.CHANGE),
            who,
            whom,
            names.short(what),
            names.short(brief),
            tuple(
                Answer(
                    self._lane_of.get(reply.request_id, COORDINATOR),
                    reply.request_id,
                    names.short(f"{api_of(reply.body)} {answer_words(reply.body, names)}"),
                    names.short(answer_brief(reply.body, names)),
                    bool(errors_in(reply.body)),
                )
                for reply in seen.replies
            ),
            self._append(index, seen),
            tuple(names.short(text) for text in timer_words(seen.timers)),
            tuple(task_words(key) for key in seen.tasks),
            changed(seen, names),
            self._rules[index] if index < len(self._rules) else (),
            seen.error,
            getattr(event.body if isinstance(event, ev.Request) else getattr(event, "key", None), "group_id", "") or "",
        )

    def _append(self, index: int, seen: Observation) -> Append | None:
        if not seen.records:
            return None
        first = self._end
        self._end += len(seen.records)
        self._open.append(index)
        brief = ", ".join(record_brief(record) for record in seen.records)
        texts = tuple(self.names.short(record_words(record, self.names)) for record in seen.records)
        return Append(first, self._end, texts, brief)

    def _fates(self, index: int, event: ev.Event, seen: Observation | None) -> None:
        """Note what the event shows about earlier records; nothing, if it is an ignored load or loss (F-LOAD-03)."""
        if not self._leading.takes(event):
            return
        if isinstance(event, ev.Load):
            there = [view for groups in (seen.groups, seen.consumer_groups) for view in groups.values()] if seen else []
            self._leading.loaded(event.records, groups=seen is None or any(view is not None for view in there))
        if isinstance(event, ev.Appended):
            for each in [each for each in self._open if self._appended(each).end <= event.offset]:
                self._settle(each, f"replicated at event {index}")
        elif isinstance(event, ev.AppendFailed) and self._open:
            self._end = self._appended(self._open[-1]).first
            self._settle(self._open[-1], f"failed at event {index}: {event.error.name}", failed=True)
        elif isinstance(event, ev.Unload | ev.Load):
            for each in list(self._open):
                self._settle(each, f"not replicated when the partition was lost at event {index}", failed=True)
            if isinstance(event, ev.Load):
                self._end = len(event.records)

    def _appended(self, index: int) -> Append:
        append = self._shown[index].append
        assert append is not None
        return append

    def _settle(self, index: int, fate: str, *, failed: bool = False) -> None:
        append = replace(self._appended(index), fate=fate, failed=failed)
        self._shown[index] = replace(self._shown[index], append=append)
        self._open.remove(index)


def _client(client_id: str, host: str) -> str:
    return f"{client_id or '(no id)'} {host}"


def _denied(request: ev.Request) -> str:
    denied = [*sorted(request.denied), *(f"topic {name}" for name in sorted(request.denied_topics))]
    return f" (denied: {', '.join(denied)})" if denied else ""
