"""A wire trace in the same words as a trace of events: a lane for each client, the broker last.

The holders of partitions are derived from the answers to the clients (``wire_holdings``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode

from ...judge.checker.consumer.topics import Topics, topic_events
from ...traces import convert
from ...traces.files import WireTrace
from ...traces.lines import (
    API_OF_KEY,
    ConnectedLine,
    DisconnectedLine,
    NamesLine,
    ReceivedLine,
    SentLine,
    UndecodedLine,
    WireLine,
)
from .holdings import GroupAt
from .names import Names, member_ids, topics_in
from .steps import COORDINATOR, Answer, Kind, StepWords
from .wire_holdings import WireHoldings
from .words import answer_brief, answer_words, body_words, errors_in, request_brief

#: characters of the body of another API
_PLAIN: Final = 300
_ERRORS: Final = {each.value: each.name for each in ErrorCode}


def wire_steps(trace: WireTrace) -> list[StepWords]:
    """Return each line as a step."""
    return _WireSteps(trace).steps()


def wire_names(trace: WireTrace) -> dict[str, str]:
    """Return the full form of each short name in the steps."""
    return _names(trace).full()


def wire_lanes(trace: WireTrace) -> list[str]:
    return [*dict.fromkeys(_clients(trace).values()), COORDINATOR]


class _WireSteps:
    def __init__(self, trace: WireTrace) -> None:
        self._trace = trace
        self._clients = _clients(trace)
        self._names = _names(trace)
        self._open: dict[tuple[int, int], m.RequestBody] = {}
        self._holdings = WireHoldings(self._names, trace.settings)

    def steps(self) -> list[StepWords]:
        return [self._step(index, line) for index, line in enumerate(self._trace.lines)]

    def _step(self, index: int, line: WireLine) -> StepWords:
        who, short = self._clients[line.connection], self._names.short
        if isinstance(line, ConnectedLine | DisconnectedLine):
            by = f" (by {line.by})" if isinstance(line, DisconnectedLine) and line.by else ""
            what = "connects" if isinstance(line, ConnectedLine) else f"disconnects{by}"
            return StepWords(index, line.at_ms, Kind.REQUEST, who, COORDINATOR, what, what)
        if isinstance(line, NamesLine):
            what = "topics: " + ", ".join(f"{name} is {topic_id}" for topic_id, name in line.names.items())
            return StepWords(index, line.at_ms, Kind.REQUEST, COORDINATOR, who, short(what), "names of topics")
        if isinstance(line, UndecodedLine):
            way = (who, COORDINATOR) if line.by == "client" else (COORDINATOR, who)
            what = f"{line.bytes} bytes that could not be decoded: {line.why}"
            return StepWords(index, line.at_ms, Kind.REQUEST, *way, what, "not decoded")
        api = _api(line.api_key)
        if isinstance(line, SentLine):
            request = convert.wire_request(line)
            groups: tuple[GroupAt, ...] = ()
            if request is not None:
                self._open[line.connection, line.correlation_id] = request
                groups = self._holdings.sent(line.at_ms, request)
            said = _plain(line.body) if request is None else body_words(request, self._names)
            what = f"#{line.correlation_id} {api} v{line.api_version} {said}"
            brief = api if request is None else request_brief(request, self._names)
            return StepWords(
                index, line.at_ms, Kind.REQUEST, who, COORDINATOR, short(what), short(brief), groups=groups,
                group=getattr(request, "group_id", "") or "",
            )  # fmt: skip
        answer, groups, group = self._answer(line, who, api)
        return StepWords(
            index, line.at_ms, Kind.ANSWER, COORDINATOR, who, "", "", (answer,), groups=groups, group=group
        )

    def _answer(self, line: ReceivedLine, who: str, api: str) -> tuple[Answer, tuple[GroupAt, ...], str]:
        response = convert.wire_response(line)
        if response is None:
            errors = dict.fromkeys(_errors(line.body))
            brief = f"{api} {', '.join(errors)}".rstrip()
            failed = any(each != ErrorCode.NONE.name for each in errors)
            return Answer(who, line.correlation_id, f"{api} {_plain(line.body)}", brief, failed), (), ""
        text = self._names.short(f"{api} {answer_words(response, self._names)}")
        brief = self._names.short(answer_brief(response, self._names))
        request = self._open.pop((line.connection, line.correlation_id), None)
        group = getattr(request, "group_id", "") or ""
        groups = () if request is None else self._holdings.answered(line.at_ms, request, response)
        return Answer(who, line.correlation_id, text, brief, bool(errors_in(response))), groups, group


def _clients(trace: WireTrace) -> dict[int, str]:
    """Map connections to lanes: the client id, with the connection's number if one id is several members at once."""
    clients: dict[int, str] = {}
    addresses: dict[int, str] = {}
    used: dict[str, dict[str, tuple[int, int]]] = {}  # client id to member id to its first and last line
    for index, line in enumerate(trace.lines):
        addresses.setdefault(line.connection, "")
        if isinstance(line, ConnectedLine):
            addresses[line.connection] = line.client
        elif isinstance(line, SentLine) and line.client_id:
            clients[line.connection] = line.client_id
            member = line.body.get("member_id")
            if isinstance(member, str) and member:
                spans = used.setdefault(line.client_id, {})
                spans[member] = (spans.get(member, (index, index))[0], index)
    several = {client for client, spans in used.items() if _overlap(sorted(spans.values()))}
    return {
        connection: f"{connection}: {address}" if (client := clients.get(connection)) is None
        else f"{client} #{connection}" if client in several else client
        for connection, address in addresses.items()
    }  # fmt: skip


def _overlap(spans: list[tuple[int, int]]) -> bool:
    return any(later[0] < earlier[1] for earlier, later in pairwise(spans))


def _names(trace: WireTrace) -> Names:
    """Collect member ids that answers hand out, and topic names from descriptions and answers to CreateTopics."""
    members: dict[str, None] = {}
    created = Topics()
    for event in topic_events(trace):
        created.take(event)
    topics = list(created.names.items())
    groups: set[str] = set()
    for line in trace.lines:
        if isinstance(line, SentLine):
            request = convert.wire_request(line)
            group = getattr(request, "group_id", "")
            groups |= {group} if group else set()
            members.update((name, None) for name in (member_ids(request) if request is not None else ()))
        elif isinstance(line, ReceivedLine):
            response = convert.wire_response(line)
            if response is not None:
                members.update((name, None) for name in member_ids(response))
                topics += topics_in(response)
    return Names(members, topics, several=len(groups) > 1)


def _api(key: int) -> str:
    """Return Kafka's name of any API."""
    from kio.schema.index import api_key_map  # noqa: PLC0415 — only traces of the wire need kio

    name = API_OF_KEY.get(key) or api_key_map.get(key)
    return f"api {key}" if name is None else name if name in API_OF_KEY.values() else name.title().replace("_", "")


def _errors(body: object) -> Iterator[str]:
    """Yield the name of each error code in an answer, at any depth."""
    if isinstance(body, list):
        for each in body:
            yield from _errors(each)
    elif isinstance(body, dict):
        for name, value in body.items():
            if name.endswith("error_code") and isinstance(value, int):
                yield _ERRORS.get(value, str(value))
            else:
                yield from _errors(value)


def _plain(body: dict[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in body.items() if name != "throttle_time_ms")
    return text if len(text) <= _PLAIN else f"{text[:_PLAIN]} …"
