"""One step of a trace in words: who said what to whom, what was answered, written, armed, and how the group stands.

Used by every view of a trace, so that the terminal and the page say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_messages import ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupView

from ..targets.base import Observation

COORDINATOR = "coordinator"


@dataclass(frozen=True, slots=True)
class Answer:
    to: str
    request_id: int
    text: str
    error: bool


@dataclass(frozen=True, slots=True)
class StepWords:
    """``who`` acts on ``whom`` (both are names of lanes); all texts are short and plain."""

    index: int
    at_ms: int
    who: str
    whom: str
    what: str
    answers: tuple[Answer, ...]
    records: tuple[str, ...]
    timers: tuple[str, ...]
    groups: tuple[str, ...]
    error: str | None


class Teller:
    """Tells steps in order; it remembers who sent what, and shortens member ids as far as they stay apart."""

    def __init__(self, events: Sequence[ev.Event], observations: Sequence[Observation | None]) -> None:
        self._events = events
        self._observations = observations
        self._senders: dict[int, str] = {}
        self._short: dict[str, str] = {}
        self._learn_ids()

    def steps(self) -> list[StepWords]:
        """Every event; one without an observation has only its own words."""
        told = []
        for index, event in enumerate(self._events):
            seen = self._observations[index] if index < len(self._observations) else None
            told.append(self._step(index, event, seen))
        return told

    def lanes(self) -> list[str]:
        """Everybody who appears, the coordinator last."""
        senders = [sender(event) for event in self._events if isinstance(event, ev.Request)]
        return [*dict.fromkeys(senders), COORDINATOR]

    def short(self, text: str) -> str:
        """The text with member ids shortened."""
        for long, brief in self._short.items():
            text = text.replace(long, brief)
        return text

    def _learn_ids(self) -> None:
        # ids end with a UUID; its first four digits are enough for the eye
        found = dict.fromkeys(
            row.member_id
            for seen in self._observations
            if seen is not None
            for view in seen.groups.values()
            if view is not None
            for row in view.members
        )
        for seen in self._observations:
            for reply in seen.replies if seen else ():
                if isinstance(reply.body, m.JoinGroupResponse):
                    found[reply.body.member_id] = None
        taken: set[str] = set()
        for member_id in found:
            head, uuid = member_id[:-37], member_id[-36:]
            if len(member_id) > 37 and member_id[-37] == "-" and uuid.count("-") == 4:
                brief = f"{head}-{uuid[:4]}"
                if brief not in taken:
                    taken.add(brief)
                    self._short[member_id] = brief

    def _step(self, index: int, event: ev.Event, seen: Observation | None) -> StepWords:
        who, whom, what = self._event(event)
        if isinstance(event, ev.Request):
            self._senders[event.id] = who
        seen = seen or Observation()
        answers = tuple(
            Answer(
                self._senders.get(reply.request_id, "?"),
                reply.request_id,
                self.short(answer_words(reply.body)),
                not answer_words(reply.body).startswith("NONE"),
            )
            for reply in seen.replies
        )
        return StepWords(
            index,
            event.at_ms,
            who,
            whom,
            self.short(what),
            answers,
            tuple(self.short(record_words(record)) for record in seen.records),
            tuple(self.short(text) for text in timer_words(seen.timers)),
            tuple(self.short(group_words(name, view)) for name, view in sorted(seen.groups.items())),
            seen.error,
        )

    def _event(self, event: ev.Event) -> tuple[str, str, str]:
        if isinstance(event, ev.Request):
            denied = f" (denied: {', '.join(sorted(event.denied))})" if event.denied else ""
            return sender(event), COORDINATOR, f"{request_words(event)}{denied}"
        return COORDINATOR, COORDINATOR, event_words(event)


def sender(request: ev.Request) -> str:
    """The lane of a request: client id, and the host if it is not the only thing there is."""
    return f"{request.client_id or '(no id)'} {request.client_host}"


def request_words(request: ev.Request) -> str:
    """API, version and the fields that matter, request id first."""
    body = request.body
    api = type(body).__name__.removesuffix("Request")
    return f"#{request.id} {api} v{request.version} {body_words(body)}"


def body_words(body: m.RequestBody) -> str:
    if isinstance(body, m.JoinGroupRequest):
        offers = ", ".join(f"{row.name}({len(row.metadata)} B)" for row in body.protocols)
        return (
            f"{_who(body)} {body.protocol_type}: "
            f"{offers or 'nothing'}; session {body.session_timeout_ms}, rebalance {body.rebalance_timeout_ms}"
        )
    if isinstance(body, m.SyncGroupRequest):
        given = ", ".join(f"{row.member_id}={_bytes(row.assignment)}" for row in body.assignments)
        return f"{_who(body)} generation {body.generation_id}{f'; assigns {given}' if given else ''}"
    if isinstance(body, m.HeartbeatRequest):
        return f"{_who(body)} generation {body.generation_id}"
    if isinstance(body, m.LeaveGroupRequest):
        rows = ", ".join(
            f"{row.member_id or '(none)'}{f' instance {row.group_instance_id}' if row.group_instance_id else ''}"
            for row in body.members
        )
        return f"{body.group_id or '(empty)'}: {rows or 'nobody'}"
    if isinstance(body, m.ListGroupsRequest):
        return f"states {list(body.states_filter)} types {list(body.types_filter)}"
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        return f"{body.group_id or '(empty)'} member {body.member_id or '(none)'} epoch {body.member_epoch}"
    if isinstance(body, m.DescribeGroupsRequest):
        names = body.groups
    else:
        names = body.groups_names if isinstance(body, m.DeleteGroupsRequest) else body.group_ids
    return ", ".join(name or "(empty)" for name in names)


def _who(body: m.JoinGroupRequest | m.SyncGroupRequest | m.HeartbeatRequest) -> str:
    instance = f" instance {body.group_instance_id}" if body.group_instance_id is not None else ""
    return f"{body.group_id or '(empty)'} member {body.member_id or '(none)'}{instance}"


def event_words(event: ev.Event) -> str:
    """An event that is no request."""
    if isinstance(event, ev.TimerFired):
        return f"timer fires: {key_words(event.key)}"
    if isinstance(event, ev.Appended):
        return f"replicated below {event.offset}"
    if isinstance(event, ev.AppendFailed):
        return f"append fails: {event.error.name}"
    if isinstance(event, ev.LoadStarted):
        return f"loading starts, epoch {event.leader_epoch}"
    if isinstance(event, ev.Load):
        return f"loaded, epoch {event.leader_epoch}, {len(event.records)} records"
    if isinstance(event, ev.LoadFailed):
        return f"loading fails, epoch {event.leader_epoch}"
    if isinstance(event, ev.Unload):
        return f"partition lost, epoch {event.leader_epoch}"
    return "topics changed"


def answer_words(body: m.ResponseBody) -> str:
    """An answer: its error, and what else matters."""
    if isinstance(body, m.JoinGroupResponse):
        if body.generation_id < 0:
            return f"{body.error_code.name} member {body.member_id or '(none)'}"
        rows = f", members {', '.join(row.member_id for row in body.members)}" if body.members else ""
        skip = ", skip assignment" if body.skip_assignment else ""
        return (
            f"{body.error_code.name} member {body.member_id} generation {body.generation_id} leader {body.leader} "
            f"protocol {body.protocol_name}{skip}{rows}"
        )
    if isinstance(body, m.SyncGroupResponse):
        return f"{body.error_code.name} assignment {_bytes(body.assignment)}"
    if isinstance(body, m.LeaveGroupResponse):
        rows = ", ".join(f"{row.member_id or row.group_instance_id}: {row.error_code.name}" for row in body.members)
        return f"{body.error_code.name}{f' [{rows}]' if rows else ''}"
    if isinstance(body, m.DescribeGroupsResponse | ConsumerGroupDescribeResponse):
        return "; ".join(
            f"{row.error_code.name} {row.group_id} {row.group_state} {len(row.members)} members" for row in body.groups
        )
    if isinstance(body, m.ListGroupsResponse):
        return f"{body.error_code.name} {', '.join(f'{row.group_id} {row.group_state}' for row in body.groups)}"
    if isinstance(body, m.DeleteGroupsResponse):
        return "; ".join(f"{row.error_code.name} {row.group_id}" for row in body.results)
    return body.error_code.name


def record_words(record: Record) -> str:
    if record.value is None:
        return f"{record.key.group}: tombstone"
    value = record.group_metadata
    if value is None:
        return f"{record.key}: {record.value}"
    rows = ", ".join(f"{row.member_id}={_bytes(row.assignment)}" for row in value.members)
    return f"{record.key.group}: generation {value.generation} protocol {value.protocol} leader {value.leader} [{rows}]"


def timer_words(timers: Mapping[ev.TimerKey, int | None]) -> list[str]:
    """What changed of the timers, in a fixed order."""
    told = [f"{key_words(key)} {'off' if at is None else f'at {at}'}" for key, at in timers.items()]
    return sorted(told)


def key_words(key: ev.TimerKey) -> str:
    if key.kind is ev.TimerKind.OPERATION:
        return f"operation #{key.operation}"
    what = {"heartbeat": "session"}.get(key.kind.value, key.kind.value)
    return f"{what} of {key.member_id or key.group_id}"


def group_words(name: str, view: GroupView | None) -> str:
    if view is None:
        return f"{name}: gone"
    rows = ", ".join(
        f"{row.member_id}{'*' if row.member_id == view.leader else ''}"
        f"{' (joining)' if row.awaiting_join else ''}{' (syncing)' if row.awaiting_sync else ''}"
        for row in view.members
    )
    pending = f"; pending {', '.join(sorted(view.pending_join))}" if view.pending_join else ""
    unsynced = f"; not synced {', '.join(sorted(view.pending_sync))}" if view.pending_sync else ""
    return f"{name}: {view.state.value} generation {view.generation_id} [{rows}]{pending}{unsynced}"


def _bytes(data: bytes) -> str:
    text = data.decode("ascii", "replace")
    return repr(text) if text.isprintable() and "�" not in text else f"{len(data)} B"
