"""Invariants of a coordinator's answers to members of consumer groups, of either protocol, over its history (12.2).

The rules compare a request with the group on its arrival and right after its step. The answer may wait for the log, but
must describe that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, AppendFailed, Event, Load, Reply, Request, Unload
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost_model.promises import HeartbeatView

from ...traces.observation import Observation
from .broken import demand, demand_promises
from .consumer_group_rules import Held, hard, held

Views = Mapping[str, ConsumerGroupView]


class _Asked(NamedTuple):
    """A request to a consumer group: its member before and after it, and the end of the log at that time."""

    request: Request
    before: ConsumerMemberView | None
    after: ConsumerMemberView | None
    end: int


class ConsumerAnswerRules:
    """Checks every event, given its observation and the views of consumer groups before and after it."""

    def __init__(self) -> None:
        self._asked: dict[int, _Asked] = {}
        self._end = self._last = self._replicated = 0

    def observe(self, event: Event, seen: Observation, before: Views, after: Views) -> None:
        match event:
            case Load(records=records):
                self._end = self._replicated = len(records)
            case Appended(offset=offset):
                self._replicated = offset
            case AppendFailed():
                self._end -= self._last
            case Unload():
                self._asked.clear()
        self._last = len(seen.records)
        self._end += self._last
        if isinstance(event, Request):
            self._handled(event, seen, before, after)
        for reply in seen.replies:
            asked = self._asked.pop(reply.request_id, None)
            if asked is not None:
                self._answered(asked, reply)

    def _handled(self, event: Request, seen: Observation, before: Views, after: Views) -> None:
        body = event.body
        if not isinstance(body, ConsumerGroupHeartbeatRequest | JoinGroupRequest | SyncGroupRequest | HeartbeatRequest):
            return
        old, new = before.get(body.group_id), after.get(body.group_id)
        if old is None and new is None:
            return
        # A JoinGroup without an id is answered with the id that it was given.
        refused = [each for each in seen.replies if each.request_id == event.id and _error(each) is not ErrorCode.NONE]
        changed = old is not None and (new is None or hard(new) != hard(old))
        if (
            refused and changed and old is not None and (old.members or not isinstance(body, JoinGroupRequest))
        ):  # C-JOIN-10
            answer = HeartbeatView(0, _error(refused[0]).name, 0, has_assignment=False, changed=True)
            demand_promises(answer, f"{body.group_id}: {old} became {new}: request {event.id}")
        self._asked[event.id] = _Asked(event, _member(old, body.member_id), _member(new, body.member_id), self._end)

    def _answered(self, asked: _Asked, reply: Reply) -> None:
        if _error(reply) is not ErrorCode.NONE:
            return
        body, text = asked.request.body, f"request {asked.request.id}"
        if isinstance(body, JoinGroupRequest) and asked.after is None:
            return  # the group became classic, and its join phase answers (X-DOWN-22)
        demand(asked.end <= self._replicated, "INV-KIP-10", f"{text} is answered NONE before it is in the log")
        match body, reply.body:
            case ConsumerGroupHeartbeatRequest() as beat, ConsumerGroupHeartbeatResponse() as answer:
                self._beaten(f"{beat.group_id}: {beat.member_id} ({text})", beat, answer, asked)
            case (HeartbeatRequest() | SyncGroupRequest()) as classic, HeartbeatResponse() | SyncGroupResponse():
                member = asked.before
                demand(
                    member is not None and member.classic is not None and member.member_epoch == classic.generation_id,
                    "INV-FENCE-02" if member is None else "X-SYNC-03",
                    f"{classic.group_id}: {classic.member_id} ({text}) at {classic.generation_id} is answered NONE, "
                    f"but the group has {member}",
                )
            case JoinGroupRequest() as join, JoinGroupResponse() as answer if asked.after is not None:
                demand(
                    asked.after.member_epoch == answer.generation_id,
                    "X-JOIN-15",
                    f"{join.group_id}: {join.member_id} ({text}) gets generation {answer.generation_id}, "
                    f"but its epoch is {asked.after.member_epoch}",
                )

    def _beaten(
        self, text: str, beat: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse, asked: _Asked
    ) -> None:
        before, after = asked.before, asked.after
        seen = HeartbeatView(
            beat.member_epoch,
            answer.error_code.name,
            answer.member_epoch,
            answer.assignment is not None,
            None if after is None else after.member_epoch,
            tuple(set[Held]() if member is None else held(member.assigned) for member in (before, after)),
        )
        demand_promises(seen, text)
        if beat.member_epoch < 0:
            return
        if beat.member_epoch != JOIN_EPOCH:
            said = f"{text} is answered NONE at {beat.member_epoch}"
            demand(before is not None, "M-FENCE-01", f"{said}, but is not a member")
            assert before is not None
            demand(_current(beat, before), "M-FENCE-05", f"{said}, but is {before}")


def _current(beat: ConsumerGroupHeartbeatRequest, member: ConsumerMemberView) -> bool:
    """M-FENCE-04, M-FENCE-06: the epoch is current, or the previous one if the member owns no more than it should."""
    if beat.member_epoch == member.member_epoch:
        return True
    owned = beat.topic_partitions
    return (
        beat.member_epoch == member.previous_member_epoch and owned is not None and held(owned) <= held(member.assigned)
    )


def _member(group: ConsumerGroupView | None, member_id: str) -> ConsumerMemberView | None:
    rows = () if group is None else group.members
    return next((member for member in rows if member.member_id == member_id), None)


def _error(reply: Reply) -> ErrorCode:
    error = getattr(reply.body, "error_code", ErrorCode.NONE)
    assert isinstance(error, ErrorCode)
    return error
