"""ListGroups as a part of the history of one group, so that each answer can be compared with it.

The answer becomes an operation of each group that the trace knows at that time: the group's row, or the fact that it
has none. A group that exists must be listed with its state, type and protocol type unless a filter excludes it, and
one that does not exist must not be listed (C-ADM-04, C-ADM-05, C-ADM-08).

The checker does not judge three cases:

* The broker may not be the group's coordinator at that time (``Coordination``).
* The row is of a share or streams group, about which the trace says nothing.
* The group is not listed, and the caller may lack the right to see it. A caller that has got an answer about the group
  on the same connection has that right; so have all callers if the header says so (``LISTS``).

Two equal rows for one group count once: Kafka lists a group twice after a failed deletion (C-ADM-05).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import ListedGroup, ListGroupsRequest, ListGroupsResponse
from fencepost_model.classic.admin import listed
from fencepost_model.classic.state import Group

from ...traces.convert import wire_request, wire_response
from ...traces.files import WireTrace
from ...traces.lines import ReceivedLine, SentLine
from .history import Event, History, Listing, Op

LIST_GROUPS: Final = 16
#: The first versions in which a row has a state or a type, and a request may filter by it.
STATE_VERSION: Final = 4
TYPE_VERSION: Final = 5
#: Key in the header's provenance: every client of the trace may list every group.
LISTS: Final = "lists"
ALL: Final = "all"

_TYPES: Final = frozenset({"", "classic", "consumer"})
_FOREIGN: Final = frozenset({"share", "streams"})
_DENIED: Final = frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED})


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A ListGroups and its answer without error, with their lines, which are counted as in ``Op``."""

    line: int
    answer_line: int
    sent: SentLine
    received: ReceivedLine
    asked: ListGroupsRequest
    rows: tuple[ListedGroup, ...]


def add_listings(trace: WireTrace, groups: Mapping[str, History]) -> None:
    """Add the answers to ListGroups to the histories of the groups that they concern."""
    sees_all = dict(trace.provenance).get(LISTS) == ALL
    number = count(1 + max((event.op.id for history in groups.values() for event in history.events), default=0))
    exchanges = list(_exchanges(trace))
    for group_id, history in groups.items():
        known = min((event.line for event in history.events if event.answered), default=0)
        callers = _callers(history.events)
        added: list[Event] = []
        for each in exchanges:
            rows = tuple(dict.fromkeys(row for row in each.rows if row.group_id == group_id))
            foreign = any(row.group_type not in _TYPES or row.protocol_type in _FOREIGN for row in rows)
            may_see = rows or sees_all or each.sent.connection in callers
            if known and each.line > known and may_see and not foreign and not _may_be_away(history, each):
                added += _events(next(number), group_id, each, rows)
        history.events = sorted([*history.events, *added], key=lambda event: event.line)


def expected(group_id: str, group: Group | None, version: int, asked: Listing) -> ListGroupsResponse:
    """The answer about one classic group in this state."""
    states = asked.states_filter if version >= STATE_VERSION else ()
    types = asked.types_filter if version >= TYPE_VERSION else ()
    filters = ListGroupsRequest(states_filter=states, types_filter=types)
    rows = () if group is None else listed({group_id: group}, filters)
    return ListGroupsResponse(ErrorCode.NONE, tuple(carried(row, version) for row in rows))


def carried(row: ListedGroup, version: int) -> ListedGroup:
    """The row as this version carries it."""
    state = row.group_state if version >= STATE_VERSION else ""
    kind = row.group_type.lower() if version >= TYPE_VERSION else ""
    return ListedGroup(row.group_id, protocol_type=row.protocol_type, group_state=state, group_type=kind)


def _exchanges(trace: WireTrace) -> Iterator[_Exchange]:
    asked: dict[tuple[int, int], tuple[int, SentLine]] = {}
    for number, line in enumerate(trace.lines, 1):
        if not isinstance(line, SentLine | ReceivedLine) or line.api_key != LIST_GROUPS:
            continue
        key = line.connection, line.correlation_id
        if isinstance(line, SentLine):
            asked[key] = number, line
            continue
        place, sent = asked.pop(key, (0, None))
        body = None if sent is None else wire_request(sent)
        answer = wire_response(line)
        if sent is None or not isinstance(body, ListGroupsRequest) or not isinstance(answer, ListGroupsResponse):
            continue
        if answer.error_code is ErrorCode.NONE:
            rows = tuple(carried(row, line.api_version) for row in answer.groups)
            yield _Exchange(place, number, sent, line, body, rows)


def _callers(events: Iterable[Event]) -> frozenset[int]:
    """The connections with an answer about the group that is not a denial: a caller that may read it may describe
    it."""
    answered = [event.op for event in events if event.answered]
    codes = [(op, getattr(op.answer, "error_code", None)) for op in answered]
    return frozenset(op.connection for op, code in codes if code is not None and code not in _DENIED)


def _may_be_away(history: History, each: _Exchange) -> bool:
    return history.coordination.may_be_away(
        each.line, each.answer_line, each.sent.connection, sent_ms=each.sent.at_ms, answered_ms=each.received.at_ms
    )


def _events(number: int, group_id: str, each: _Exchange, rows: tuple[ListedGroup, ...]) -> tuple[Event, Event]:
    sent = each.sent
    body = Listing((group_id,), each.asked.states_filter, each.asked.types_filter)
    answer = ListGroupsResponse(ErrorCode.NONE, rows)
    op = Op(
        number, each.line, sent.at_ms, sent.connection, sent.api_version, sent.client_id or "", body, None, answer,
        each.answer_line,
    )  # fmt: skip
    return Event(sent.at_ms, each.line, op, answered=False), Event(
        each.received.at_ms, each.answer_line, op, answered=True
    )
