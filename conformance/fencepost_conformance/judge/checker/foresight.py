"""Rule out steps of the search that later answers of the trace make impossible.

A wrong guess about hidden steps often shows only many lines later. To go back from there one choice at a time would
take too long. But much is known at once, since two things in a group never go back:

* *Generations grow* (INV-GEN-01). If a request for generation g was answered NONE or REBALANCE_IN_PROGRESS, the
  coordinator processed it while g was current. If it was answered as in a group without a rebalance, the coordinator
  processed it before the rebalance that ended g began.
* *Member ids do not come back* (INV-FENCE-02). If a request was answered as that of a known member, that member must
  stay until the coordinator has processed the request.

Also, a parked JoinGroup is answered with the next generation, or with an error.

So a step is a dead end if, after it, a request that the coordinator has not yet processed can no longer get its answer.
A deleted group starts again with generation 0, and an internal error of the coordinator may have used up a number
(C-ST-27). So nothing is ruled out in a trace with a deletion of the group or the answer UNKNOWN_SERVER_ERROR. A
deletion that the coordinator rejected does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
)
from fencepost_model.classic.state import Group
from fencepost_model.machines import PREPARING

from .commits import Commit
from .history import NEVER, Answer, Event, Op

#: Codes that only a known member, or a pending id, gets.
_KNOWN: Final = frozenset({ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})


@dataclass(frozen=True, slots=True)
class _Demand:
    """The state of the group that a request needs for its answer.

    ``generation``: the group must not be beyond it; ``calm``: nor in the rebalance that ends it. ``member`` must be
    known. ``joins``: a JoinGroup of a dynamic member, which is in the generation only if its JoinGroup was parked.
    """

    generation: int = NEVER
    calm: bool = False
    member: str = ""
    joins: bool = False


def _demand(body: object, answer: Answer) -> _Demand | None:
    error = getattr(answer, "error_code", None)
    if isinstance(body, JoinGroupRequest):
        if error is ErrorCode.NONE and isinstance(answer, JoinGroupResponse):
            dynamic = body.group_instance_id is None
            return _Demand(answer.generation_id, calm=True, member=body.member_id, joins=dynamic)
        return None
    if not isinstance(body, HeartbeatRequest | SyncGroupRequest | Commit) or error not in _KNOWN:
        return None
    if error is ErrorCode.ILLEGAL_GENERATION:
        return _Demand(member=body.member_id)
    if body.generation_id < 0:
        return None
    calm = error is ErrorCode.NONE and not isinstance(body, Commit)
    return _Demand(body.generation_id, calm, body.member_id)


def may_delete(op: Op, answer: Answer | None) -> bool:
    """Whether this is a deletion of the group that was not rejected."""
    rows = answer.results if isinstance(answer, DeleteGroupsResponse) else ()
    refused = bool(rows) and all(row.error_code is not ErrorCode.NONE for row in rows)
    return isinstance(op.body, DeleteGroupsRequest) and not refused


class Foresight:
    """The demands of the requests in one search. ``known``: the answers of the trace that the model must give."""

    def __init__(self, events: Sequence[Event], known: Mapping[int, Answer], *, blind: bool = False) -> None:
        self._demands: dict[int, _Demand] = {}
        self._joins: dict[int, JoinGroupResponse] = {}
        deletes = any(may_delete(event.op, known.get(event.op.id)) for event in events)
        failed = any(getattr(answer, "error_code", None) is ErrorCode.UNKNOWN_SERVER_ERROR for answer in known.values())
        self._blind = blind or deletes or failed
        #: By position: the least generation that requests sent there or later demand; all requests, and the calm ones.
        self._least = [NEVER] * (len(events) + 1)
        self._least_calm = [NEVER] * (len(events) + 1)
        #: By member: the last position at which a request that needs it is sent.
        self._last: dict[str, int] = {}
        for at in range(len(events) - 1, -1, -1):
            self._least[at], self._least_calm[at] = self._least[at + 1], self._least_calm[at + 1]
            op = events[at].op
            answer = known.get(op.id)
            demand = None if events[at].answered or answer is None else _demand(op.body, answer)
            if demand is None:
                continue
            self._demands[op.id] = demand
            if isinstance(answer, JoinGroupResponse):
                self._joins[op.id] = answer
            self._least[at] = min(self._least[at], demand.generation)
            if demand.calm:
                self._least_calm[at] = min(self._least_calm[at], demand.generation)
            if demand.member:
                self._last.setdefault(demand.member, at)

    def dead_end(self, at: int, under_way: Sequence[int], before: Group | None, after: Group | None) -> bool:
        """Whether some request under way, or sent from position ``at`` on, is too late once the group is ``after``."""
        if self._blind or after is None or before is after:
            return False
        generation, preparing = after.generation, after.state == PREPARING
        if generation > self._least[at] or (preparing and generation >= self._least_calm[at]):
            return True
        members = _ids(after)
        gone = set() if before is None else _ids(before) - members
        if any(self._last.get(member, -1) >= at for member in gone):
            return True
        for number in under_way:
            demand = self._demands.get(number)
            if demand is not None and (
                generation > demand.generation
                or (preparing and demand.calm and generation == demand.generation)
                or demand.member in gone
                or (demand.joins and generation == demand.generation and demand.member not in members)
            ):
                return True
        return False

    def answered_otherwise(self, number: int, after: Group | None) -> bool:
        """Whether this JoinGroup, parked in a rebalance, cannot get its answer in the trace."""
        seen = self._joins.get(number)
        if seen is None or after is None or after.state != PREPARING or self._blind:
            return False
        # A leader whose JoinGroup is parked stays the leader (C-JOIN-45).
        leads_wrongly = after.leader == seen.member_id != seen.leader
        return leads_wrongly or seen.generation_id != after.generation + 1


def _ids(group: Group) -> set[str]:
    return {member.member_id for member in group.members} | group.pending_join
