"""A step and its surroundings, in the terms of the rule book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState, GroupView, MemberView

from ...traces.observation import Observation
from .once import once


@dataclass(frozen=True, slots=True)
class LeaderSync:
    """A leader's SyncGroup whose record is in the log but not yet replicated; ``offset`` is the one after it."""

    group_id: str
    generation: int
    offset: int


class Situation:
    """One step: the event, its observation, and the groups, timers and open requests before it.

    ``group_id`` is the event's group, ``before`` and ``after`` are its views. ``answer`` is the reply to the request
    itself, if it came in this step; ``member`` is the member (before) that the request or timer names.
    """

    def __init__(
        self,
        settings: Settings,
        event: ev.Event,
        seen: Observation,
        groups: Mapping[str, GroupView],
        armed: Mapping[ev.TimerKey, int],
        *,
        requests: Mapping[int, ev.Request],
        loading: bool,
        leader_syncs: Sequence[LeaderSync],
    ) -> None:
        self.settings = settings
        self.event = event
        self.seen = seen
        self.groups = groups
        self.armed = armed
        self.requests = requests
        self.loading = loading
        self.leader_syncs = leader_syncs
        self.body: Any = event.body if isinstance(event, ev.Request) else None
        self.version = event.version if isinstance(event, ev.Request) else -1
        self.answer: Any = None
        self.group_id, member_id = self._subject()
        self.before: GroupView | None = groups.get(self.group_id)
        self.after: GroupView | None = seen.groups.get(self.group_id, self.before)
        self.member: MemberView | None = self._member(member_id)
        if isinstance(event, ev.Request):
            self.answer = next((reply.body for reply in seen.replies if reply.request_id == event.id), None)

    def _subject(self) -> tuple[str, str]:
        if self.body is not None:
            return getattr(self.body, "group_id", ""), getattr(self.body, "member_id", "")
        if isinstance(self.event, ev.TimerFired):
            return self.event.key.group_id, self.event.key.member_id
        return "", ""

    def _member(self, member_id: str) -> MemberView | None:
        if self.before is None or not member_id:
            return None
        return next((row for row in self.before.members if row.member_id == member_id), None)

    @once
    def error(self) -> ErrorCode | None:
        """The error code of the request's own answer, if it came in this step."""
        return None if self.answer is None else getattr(self.answer, "error_code", None)

    @once
    def state(self) -> GroupState | None:
        return None if self.before is None else self.before.state

    @once
    def is_leader(self) -> bool:
        return self.member is not None and self.before is not None and self.before.leader == self.member.member_id

    @once
    def initial(self) -> bool:
        """An initial rebalance was in progress (C-ST-20)."""
        return self.state is GroupState.PREPARING_REBALANCE and self.before.previous_state is GroupState.EMPTY  # type: ignore[union-attr]

    @once
    def replaced(self) -> MemberView | None:
        """The static member that this JoinGroup replaced (C-STATIC-02)."""
        body, before, after = self.body, self.before, self.after
        if before is None or after is None or body.member_id or body.group_instance_id is None:
            return None
        old = dict(before.static_members).get(body.group_instance_id)
        if old is None or dict(after.static_members).get(body.group_instance_id) == old:
            return None
        return next((row for row in before.members if row.member_id == old), None)

    @once
    def added(self) -> MemberView | None:
        """The member that this step added as new (C-JOIN-40)."""
        if self.after is None:
            return None
        had = {row.member_id for row in self.before.members} if self.before else set()
        return next((row for row in self.after.members if row.member_id not in had and row.is_new), None)

    @once
    def gone(self) -> set[str]:
        """Members of the group that the step removed."""
        if self.before is None:
            return set()
        left = {row.member_id for row in self.after.members} if self.after else set()
        return {row.member_id for row in self.before.members} - left

    @once
    def completed(self) -> list[tuple[GroupView, GroupView]]:
        """Groups whose join phase this step completed: view before and after (C-JOIN-44)."""
        return [
            (self.groups[name], view)
            for name, view in self.seen.groups.items()
            if view is not None and name in self.groups and view.generation_id == self.groups[name].generation_id + 1
        ]

    @once
    def rebalanced(self) -> bool:
        """The step brought the group into a (new) Preparing phase, perhaps through it."""
        before, after = self.before, self.after
        if before is None or after is None or before.state is GroupState.PREPARING_REBALANCE:
            return False
        return after.state is GroupState.PREPARING_REBALANCE or after.generation_id > before.generation_id

    @once
    def same_protocols(self) -> bool:
        """C-JOIN-61, for a JoinGroup of a known member."""
        return self.member is not None and self.member.protocols == self.body.protocols

    @once
    def failed(self) -> list[tuple[ev.Request, m.ResponseBody]]:
        """Requests of earlier steps, to groups of this protocol, that this step answered with an error, with their
        answers."""
        return [
            (self.requests[reply.request_id], reply.body)
            for reply in self.seen.replies
            if reply.request_id in self.requests
            and getattr(reply.body, "error_code", ErrorCode.NONE) is not ErrorCode.NONE
            and reply.body is not self.answer
            and not isinstance(reply.body, ConsumerGroupHeartbeatResponse)
        ]
