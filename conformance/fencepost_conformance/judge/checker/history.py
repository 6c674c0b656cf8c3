"""The history of one group in a wire trace: its operations, each with the times of its request and its answer.

A request is one operation of each group that it names. If a message is a list of groups (DeleteGroups), the operation
has only the row of its group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    RequestBody,
    ResponseBody,
    SyncGroupRequest,
)

from ...traces.convert import odd_codes, wire_request, wire_response
from ...traces.files import WireTrace
from ...traces.lines import DisconnectedLine, ReceivedLine, SentLine
from .answers import seen
from .commits import (
    COMMITS,
    TXN_OFFSET_COMMIT,
    UNVERIFIED,
    Commit,
    CommitAnswer,
    left_the_group,
    reached_the_group,
    read_commit,
    read_commit_answer,
)
from .coordination import Coordination, coordinations, proves

NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class OddAnswer:
    """An answer with error codes that none of the group APIs has. The model never gives one."""

    codes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A ListGroups request, as far as it concerns one group."""

    group_ids: tuple[str]
    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


Body: TypeAlias = RequestBody | Commit | Listing
Answer: TypeAlias = ResponseBody | CommitAnswer | OddAnswer


@dataclass(slots=True, eq=False)
class Op:
    """One request about one group.

    ``line`` and ``answer_line`` count the lines of the trace after its header, from 1. ``answer`` is None if the trace
    has none; ``closed_ms`` is then the time at which its connection closed (``NEVER`` if it did not).
    """

    id: int
    line: int
    sent_ms: int
    connection: int
    version: int
    client_id: str
    body: Body
    before: Op | None  #: the previous request on the same connection
    answer: Answer | None = None
    answer_line: int = 0
    closed_ms: int = NEVER


@dataclass(frozen=True, slots=True)
class Event:
    """The sending of a request, or (``answered``) the arrival of its answer."""

    at_ms: int
    line: int
    op: Op
    answered: bool


@dataclass(slots=True)
class History:
    """A group's events in order. ``foreign``: what the checker does not cover, and its line. ``cuts``: lines at which
    the broker closed a connection; a broker that stops closes all. ``coordination``: when the broker may say that it is
    not the coordinator. ``offsets``: the first and last line of each time in which the group certainly has offsets, or
    an open transaction."""

    group_id: str
    events: list[Event] = field(default_factory=list)
    foreign: tuple[int, str] | None = None
    cuts: list[int] = field(default_factory=list)
    coordination: Coordination = field(default_factory=Coordination)
    offsets: tuple[tuple[int, int], ...] = ()


_OF_ONE_GROUP: Final = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    ConsumerGroupHeartbeatRequest,
)


def _parts(body: RequestBody | None) -> dict[str, RequestBody]:
    """The groups that a request is about, each with its part of the request."""
    if isinstance(body, _OF_ONE_GROUP):
        return {body.group_id: body}
    if isinstance(body, ConsumerGroupDescribeRequest):
        return {group_id: ConsumerGroupDescribeRequest((group_id,)) for group_id in body.group_ids}
    if isinstance(body, DescribeGroupsRequest):
        return {group_id: DescribeGroupsRequest((group_id,)) for group_id in body.groups}
    if isinstance(body, DeleteGroupsRequest):
        return {group_id: DeleteGroupsRequest((group_id,)) for group_id in body.groups_names}
    return {}


def _part_of(answer: ResponseBody, group_id: str) -> ResponseBody:
    if isinstance(answer, DeleteGroupsResponse):
        return DeleteGroupsResponse(tuple(row for row in answer.results if row.group_id == group_id)[:1])
    if isinstance(answer, DescribeGroupsResponse):
        return DescribeGroupsResponse(tuple(row for row in answer.groups if row.group_id == group_id)[:1])
    if isinstance(answer, ConsumerGroupDescribeResponse):
        return ConsumerGroupDescribeResponse(tuple(row for row in answer.groups if row.group_id == group_id)[:1])
    return answer


def _odd_of(body: dict[str, Any], group_id: str) -> tuple[int, ...]:
    """The odd error codes of an answer, as far as they concern the group."""
    rows = body.get("results") or body.get("groups")
    if isinstance(rows, list):
        return odd_codes([row for row in rows if isinstance(row, dict) and row.get("group_id") == group_id])
    return odd_codes(body)


class _Histories:
    def __init__(self, trace: WireTrace, *, scala: bool) -> None:
        self._scala = scala
        self._coordinations = coordinations(trace)
        self.groups: dict[str, History] = {}
        self._open: dict[tuple[int, int], list[tuple[str, Op]]] = {}
        self._last: dict[tuple[int, str], Op] = {}
        self._count = 0

    def sent(self, number: int, line: SentLine) -> None:
        parts: Mapping[str, Body]
        if line.api_key in COMMITS:
            transactional = line.api_key == TXN_OFFSET_COMMIT
            commit = read_commit(line.api_version, line.body, transactional=transactional)
            parts = {} if commit is None else {commit.group_id: commit}
        else:
            parts = _parts(wire_request(line))
        opened = []
        for group_id, body in parts.items():
            history = self._history(group_id)
            self._count += 1
            lane = line.connection, group_id
            op = Op(
                self._count,
                number,
                line.at_ms,
                line.connection,
                line.api_version,
                line.client_id or "",
                body,
                self._last.get(lane),
            )
            self._last[lane] = op
            history.events.append(Event(line.at_ms, number, op, answered=False))
            opened.append((group_id, op))
        if opened:
            self._open[line.connection, line.correlation_id] = opened

    def _history(self, group_id: str) -> History:
        if group_id not in self.groups:
            about = self._coordinations.get(group_id, self._coordinations[""])
            self.groups[group_id] = History(group_id, coordination=replace(about, proofs=[]))
        return self.groups[group_id]

    def received(self, number: int, line: ReceivedLine) -> None:
        opened = self._open.pop((line.connection, line.correlation_id), None)
        if opened is None:
            return
        typed = line.api_key not in COMMITS
        answer: Any = wire_response(line) if typed else read_commit_answer(line.body)
        for group_id, op in opened:
            if isinstance(op.body, Commit) and left_the_group(op.body, line.body, scala=self._scala):
                if self._scala and reached_the_group(op.body, line.body):
                    self._answered(group_id, number, line.at_ms, op, UNVERIFIED)
                else:
                    self._forget(group_id, op)
                continue
            odd = _odd_of(line.body, group_id) if answer is None and (typed or "undecoded" in line.body) else ()
            if answer is None and not odd:
                history = self.groups[group_id]
                history.foreign = history.foreign or (number, "has an answer that could not be decoded")
                continue
            if odd:
                reported: Answer = OddAnswer(odd)
            elif isinstance(answer, CommitAnswer):
                reported = answer
            else:
                reported = seen(op.version, _part_of(answer, group_id))
            self._answered(group_id, number, line.at_ms, op, reported)
            if proves(op.body, op.answer, scala=self._scala):
                self.groups[group_id].coordination.proofs.append((op.line, number, op.connection))

    def _answered(self, group_id: str, number: int, at_ms: int, op: Op, answer: Answer) -> None:
        op.answer, op.answer_line = answer, number
        self.groups[group_id].events.append(Event(at_ms, number, op, answered=True))

    def _forget(self, group_id: str, op: Op) -> None:
        """Drop a request that did nothing to the group."""
        history = self.groups[group_id]
        history.events = [event for event in history.events if event.op is not op]

    def disconnected(self, number: int, line: DisconnectedLine) -> None:
        if line.by == "server":
            for history in self.groups.values():
                history.cuts.append(number)
        for key in [key for key in self._open if key[0] == line.connection]:
            for _, op in self._open.pop(key):
                op.closed_ms = line.at_ms


def histories(trace: WireTrace, *, scala: bool = False) -> dict[str, History]:
    """The history of each group in the trace, in order of appearance. ``scala``: the trace is of the Scala
    coordinator."""
    made = _Histories(trace, scala=scala)
    for number, line in enumerate(trace.lines, 1):
        if isinstance(line, SentLine):
            made.sent(number, line)
        elif isinstance(line, ReceivedLine):
            made.received(number, line)
        elif isinstance(line, DisconnectedLine):
            made.disconnected(number, line)
    return {name: history for name, history in made.groups.items() if not _only_described(history)}


def _only_described(history: History) -> bool:
    """Whether the trace only describes the group. It may be older, or live on another broker: nothing is known of
    it."""
    return all(isinstance(event.op.body, DescribeGroupsRequest) for event in history.events)


def member_ids(answers: Iterable[Answer | None]) -> set[str]:
    """Every member id that an answer contains."""
    found: set[str] = set()
    for answer in answers:
        for name in ("member_id", "leader"):
            value = getattr(answer, name, "")
            if value:
                found.add(value)
        groups: Any = answer.groups if isinstance(answer, DescribeGroupsResponse) else ()
        for body in (answer, *groups):
            found.update(row.member_id for row in getattr(body, "members", ()))
    return found
