"""When the broker of a trace may say that it is not, or not yet, the coordinator of a group.

A broker that starts creates and loads the offsets topic. Until then it answers NOT_COORDINATOR,
COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE (F-RT-01, F-RT-02). Once it has answered about a group, it is
the coordinator until it stops or another broker takes over. The trace shows both: connections close, or FindCoordinator
answers with an error or another broker.

In a cluster of several brokers a coordinator may move at any time, and usually no connection closes. There the checker
takes a broker for the coordinator only between two answers that show it, if nothing between them shows a move. A move
is an answer of another broker as the coordinator, a FindCoordinator that names another broker or fails, or a connection
that a broker closes. A second FindCoordinator that names the same broker counts as the later answer. Before the first
such answer and after the last one, a broker may say that it is not the coordinator. If a coordinator moves away and
back between two answers and no line shows it, the checker refuses the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatRequest, SyncGroupRequest

from ...traces.files import WireTrace
from ...traces.lines import ConnectedLine, DisconnectedLine, ReceivedLine, SentLine

#: Answers by which a broker says that it is not, or not yet, the coordinator (F-RT-01, F-RT-02).
NOT_HERE: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
#: Keys in the header's provenance: how many brokers the cluster has, and the groups (separated by spaces) whose
#: coordinator had answered before the trace began.
NODES: Final = "nodes"
COORDINATED: Final = "coordinated"
#: The longest time that a broker may take to start and to load its log.
LOADS_MS: Final = 60_000
#: A broker that stops may give up a group at most this long before it closes its connections.
STOPS_MS: Final = 10_000

_FIND_COORDINATOR: Final = 10


#: Errors that only a coordinator that has loaded the group gives.
_BY_COORDINATOR: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.NON_EMPTY_GROUP,
    }
)


def proves(body: object, answer: object, *, scala: bool = False) -> bool:
    """Whether an answer shows that the broker is the coordinator and has loaded the group.

    NONE for a Heartbeat does not show it: a coordinator that is loading answers NONE, too (C-HB-03). In the Scala
    coordinator, REBALANCE_IN_PROGRESS for a SyncGroup does not show it either (D-01).
    """
    code = getattr(answer, "error_code", None)
    if scala and code is ErrorCode.REBALANCE_IN_PROGRESS and isinstance(body, SyncGroupRequest):
        return False
    if code is None:
        rows = [getattr(row, "error_code", None) for name in ("results", "groups") for row in getattr(answer, name, ())]
        return any(each in _BY_COORDINATOR for each in rows)
    return code in _BY_COORDINATOR and not (code is ErrorCode.NONE and isinstance(body, HeartbeatRequest))


def is_absent(answer: object) -> bool:
    """Whether an answer, or each of its rows, says that the broker is not the coordinator."""
    code = getattr(answer, "error_code", None)
    if code is not None and code is not ErrorCode.NONE:
        return code in NOT_HERE
    rows = [getattr(row, "error_code", None) for name in ("results", "groups") for row in getattr(answer, name, ())]
    return bool(rows) and all(code in NOT_HERE for code in rows)


@dataclass(slots=True)
class Coordination:
    """The facts that a trace shows about the coordinator of one group.

    ``signs``: line and time of each sign that the coordinator may have been lost, in order. ``proofs``: the lines of
    requests and answers that show a broker as the coordinator, with the connection. ``ready``: the header says that the
    broker was the coordinator when the trace began. ``several``: the trace shows, or its header says, that the cluster
    has several brokers. ``searches``: line of each answer to FindCoordinator, and the broker that it names.
    ``servers``: the broker at the other end of each connection, if the trace shows it.
    """

    began_ms: int = 0
    ready: bool = False
    several: bool = False
    signs: list[tuple[int, int]] = field(default_factory=list)
    proofs: list[tuple[int, int, int]] = field(default_factory=list)
    searches: list[tuple[int, object]] = field(default_factory=list)
    servers: Mapping[int, str] = field(default_factory=dict)

    def may_be_away(self, sent: int, answered: int, connection: int, *, sent_ms: int, answered_ms: int) -> bool:
        """Whether the coordinator may have been lost, or not loaded yet, when it processed a request.

        ``sent`` and ``answered`` are the lines of the request and its answer; the times are theirs, in ms.
        """
        if self.several:
            return self._may_have_moved(sent, answered, self.servers.get(connection, ""))
        proven = max((asked for asked, proved, _ in self.proofs if proved < sent), default=-1)
        if proven < 0 and not self.ready and sent_ms <= self.began_ms + LOADS_MS:
            return True
        return any(
            line > proven and sent_ms - LOADS_MS <= at_ms <= answered_ms + STOPS_MS for line, at_ms in self.signs
        )

    def _may_have_moved(self, sent: int, answered: int, server: str) -> bool:
        """Whether this broker of several may have been another than the coordinator at some time between two lines."""
        here = [(asked, proved) for asked, proved, by in self.proofs if self.servers.get(by, "") == server]
        elsewhere = [proved for _, proved, by in self.proofs if self.servers.get(by, "") != server]
        before = max((asked for asked, proved in here if proved < sent), default=-1)
        if before < 0 and not self.ready:
            return True
        named = next((where for line, where in reversed(self.searches) if line < sent), None)
        confirmed = [line for line, where in self.searches if line > answered and where is not None and where == named]
        after = min([asked for asked, _ in here if asked > answered] + confirmed, default=-1)
        if after < 0:
            return True
        changed = [line for (_, was), (line, where) in pairwise(self.searches) if where != was]
        signs = [*changed, *elsewhere, *(line for line, _ in self.signs)]
        return any(before < line < after for line in signs)


def coordinations(trace: WireTrace) -> Mapping[str, Coordination]:
    """The facts about each group that FindCoordinator or the header names, and, under "", about all others."""
    provenance = dict(trace.provenance)
    servers = {line.connection: line.server for line in trace.lines if isinstance(line, ConnectedLine)}
    several = len({*servers.values()} - {""}) > 1 or int(provenance.get(NODES, "1")) > 1
    first = trace.lines[0].at_ms if trace.lines else 0
    cuts = [
        (number, line.at_ms)
        for number, line in enumerate(trace.lines, 1)
        if isinstance(line, DisconnectedLine) and line.by == "server"
    ]
    found: dict[str, list[tuple[int, int, object]]] = {}
    for number, at_ms, group, where in _searches(trace):
        found.setdefault(group, []).append((number, at_ms, where))
    places = {where for rows in found.values() for *_, where in rows if where is not None}
    several = several or len(places) > 1
    ready = provenance.get(COORDINATED, "").split()
    made = {}
    for group in ("", *ready, *found):
        rows = found.get(group, ())
        signs = sorted([*cuts, *((number, at_ms) for number, at_ms, where in rows if where is None)])
        searches = [(number, where) for number, _, where in rows]
        made[group] = Coordination(first, group in ready, several, signs, searches=searches, servers=servers)
    return made


def _searches(trace: WireTrace) -> Iterator[tuple[int, int, str, object]]:
    """Line and time of each answer to FindCoordinator, the group, and the broker that it names; None for an error."""
    asked: dict[tuple[int, int], list[str]] = {}
    for number, line in enumerate(trace.lines, 1):
        if not isinstance(line, SentLine | ReceivedLine) or line.api_key != _FIND_COORDINATOR:
            continue
        key = line.connection, line.correlation_id
        body: dict[str, Any] = line.body
        if isinstance(line, SentLine):
            of_groups = not body.get("key_type")
            asked[key] = [*body.get("coordinator_keys", ()), body.get("key", "")] if of_groups else []
            continue
        rows: list[dict[str, Any]] = body.get("coordinators") or [body]
        groups = asked.pop(key, [])
        for row in rows:
            group = row.get("key") or "".join(groups[-1:])
            if group and group in groups and "error_code" in row:
                where = None if row["error_code"] else (row.get("host"), row.get("port"))
                yield number, line.at_ms, group, where
