"""A wire trace in the same words as a trace of events: a lane for each client, the broker last.

Who holds what is what the answers told the clients: an assignment counts from the answer that carries it until another
one, an answer that fences the member, or its leave. What the broker itself thinks cannot be seen on the wire.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from kio.schema.index import api_key_map

from fencepost.protocol import consumer_messages as cm
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode

from ..checker.consumer.topics import Topics, topic_events
from ..trace import WireTrace, convert
from ..trace.lines import API_OF_KEY, ConnectedLine, DisconnectedLine, ReceivedLine, SentLine, WireLine
from .holdings import CLASSIC, CONSUMER, GroupAt, MemberAt
from .names import Names, assignment_words, decoded, member_ids, topics_in
from .steps import COORDINATOR, Answer, Kind, StepWords
from .words import answer_brief, answer_words, body_words, errors_in, request_brief

#: answers after which a client must regard itself as no member (K-HB-10, K-ERR-06)
_FENCED = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.ILLEGAL_GENERATION,
)


def wire_steps(trace: WireTrace) -> list[StepWords]:
    """Each line as a step."""
    return _Told(trace).steps()


def wire_lanes(trace: WireTrace) -> list[str]:
    return [*dict.fromkeys(_clients(trace).values()), COORDINATOR]


class _Told:
    def __init__(self, trace: WireTrace) -> None:
        self._trace = trace
        self._clients = _clients(trace)
        self._names = _names(trace)
        self._open: dict[tuple[int, int], m.RequestBody] = {}
        self._groups: dict[str, GroupAt] = {}

    def steps(self) -> list[StepWords]:
        return [self._step(index, line) for index, line in enumerate(self._trace.lines)]

    def _step(self, index: int, line: WireLine) -> StepWords:
        who, short = self._clients[line.connection], self._names.short
        if isinstance(line, ConnectedLine | DisconnectedLine):
            by = f" (by {line.by})" if isinstance(line, DisconnectedLine) and line.by else ""
            what = "connects" if isinstance(line, ConnectedLine) else f"disconnects{by}"
            return StepWords(index, line.at_ms, Kind.REQUEST, who, COORDINATOR, what, what)
        api = _api(line.api_key)
        if isinstance(line, SentLine):
            request = convert.wire_request(line)
            if request is not None:
                self._open[line.connection, line.correlation_id] = request
            said = _plain(line.body) if request is None else body_words(request, self._names)
            what = f"#{line.correlation_id} {api} v{line.api_version} {said}"
            brief = api if request is None else request_brief(request, self._names)
            return StepWords(index, line.at_ms, Kind.REQUEST, who, COORDINATOR, short(what), short(brief))
        answer, groups = self._answer(line, who, api)
        return StepWords(index, line.at_ms, Kind.ANSWER, COORDINATOR, who, "", "", (answer,), groups=groups)

    def _answer(self, line: ReceivedLine, who: str, api: str) -> tuple[Answer, tuple[GroupAt, ...]]:
        response = convert.wire_response(line)
        if response is None:
            failed = bool(line.body.get("error_code"))
            return Answer(who, line.correlation_id, f"{api} {_plain(line.body)}", api, failed), ()
        text = self._names.short(f"{api} {answer_words(response, self._names)}")
        brief = self._names.short(answer_brief(response, self._names))
        request = self._open.pop((line.connection, line.correlation_id), None)
        groups = () if request is None else self._follow(request, response)
        return Answer(who, line.correlation_id, text, brief, bool(errors_in(response))), groups

    def _follow(self, request: m.RequestBody, response: m.ResponseBody) -> tuple[GroupAt, ...]:
        """What the answer tells its client that it holds; the group as it then is known, if that is anything new."""
        if isinstance(request, m.LeaveGroupRequest) and not errors_in(response):
            return self._without(request.group_id, [row.member_id for row in request.members])
        if not isinstance(
            request, m.SyncGroupRequest | m.JoinGroupRequest | m.HeartbeatRequest | cm.ConsumerGroupHeartbeatRequest
        ):
            return ()
        if any(error in _FENCED for error in errors_in(response)):
            return self._without(request.group_id, [request.member_id])
        if errors_in(response):
            return ()
        if isinstance(request, m.SyncGroupRequest) and isinstance(response, m.SyncGroupResponse):
            held = decoded(response.assignment)
            other = assignment_words(response.assignment) if held is None else ""
            epochs = f"gen {request.generation_id}"
            return self._put(request.group_id, CLASSIC, MemberAt(
                self._names.member(request.member_id), CLASSIC, epochs, "", held or (), other=other,
            ))  # fmt: skip
        if isinstance(response, cm.ConsumerGroupHeartbeatResponse):
            return self._heartbeat(request, response)
        return ()

    def _heartbeat(self, request: Any, response: cm.ConsumerGroupHeartbeatResponse) -> tuple[GroupAt, ...]:
        member_id = response.member_id or request.member_id
        if request.member_epoch in (cm.LEAVE_EPOCH, cm.STATIC_LEAVE_EPOCH):
            return self._without(request.group_id, [member_id])
        name = self._names.member(member_id)
        group = self._groups.get(request.group_id)
        known = next((row for row in group.members if row.member == name), None) if group else None
        held = known.holds if known else ()
        if response.assignment is not None:
            held = self._names.of_rows(response.assignment)
        told = MemberAt(name, CONSUMER, f"epoch {response.member_epoch}", "", held)
        return () if told == known else self._put(request.group_id, CONSUMER, told)

    def _put(self, group_id: str, kind: str, member: MemberAt) -> tuple[GroupAt, ...]:
        group = self._groups.get(group_id) or GroupAt(group_id, kind, "as told")
        rows = {row.member: row for row in group.members} | {member.member: member}
        self._groups[group_id] = replace(group, kind=kind, members=tuple(rows[name] for name in sorted(rows)))
        return (self._groups[group_id],)

    def _without(self, group_id: str, members: list[str]) -> tuple[GroupAt, ...]:
        group = self._groups.get(group_id)
        gone = {self._names.member(member_id) for member_id in members}
        if group is None or not any(row.member in gone for row in group.members):
            return ()
        self._groups[group_id] = replace(group, members=tuple(row for row in group.members if row.member not in gone))
        return (self._groups[group_id],)


def _clients(trace: WireTrace) -> dict[int, str]:
    """Connection to lane: its client id, with the connection's number where one id is several members at once."""
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
    """Member ids that answers hand out; topics by the names that descriptions and answers to CreateTopics tell."""
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
    """Kafka's name of any API."""
    name = API_OF_KEY.get(key) or api_key_map.get(key)
    return f"api {key}" if name is None else name if name in API_OF_KEY.values() else name.title().replace("_", "")


def _plain(body: dict[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in body.items())
    return text if len(text) <= 100 else f"{text[:100]} …"
