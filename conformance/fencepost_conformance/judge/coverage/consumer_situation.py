"""A step with the consumer group around it, in the terms of section 7 of the rule book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.protocol import consumer_messages as c
from fencepost.protocol import consumer_records as r
from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView, MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView

from ...traces.observation import Observation
from .once import once
from .situation import LeaderSync


class ConsumerSituation:
    """One step. ``before`` and ``after`` are the views of the event's group, ``member`` and ``now`` the member that it
    names. ``answer`` and ``error`` are those of the request itself, if they came in this step.

    With classic groups: ``classic_before`` and ``classic_after`` are the views of the classic group with the same id.
    ``classic_requests``: open ones of the classic protocol to a consumer group. ``downgraded_at``: the generation with
    which a downgrade began the present classic group. ``leader_syncs``: unreplicated writes of leaders of classic
    groups."""

    def __init__(
        self,
        settings: Settings,
        event: ev.Event,
        seen: Observation,
        groups: Mapping[str, ConsumerGroupView],
        armed: Mapping[ev.TimerKey, int],
        *,
        requests: Mapping[int, ev.Request],
        classic_requests: Mapping[int, ev.Request],
        classic: Mapping[str, GroupView],
        downgrades: Mapping[str, int],
        leader_syncs: Sequence[LeaderSync],
    ) -> None:
        self.settings = settings
        self.event = event
        self.seen = seen
        self.groups = groups
        self.armed = armed
        self.body: Any = event.body if isinstance(event, ev.Request) else None
        self.version = event.version if isinstance(event, ev.Request) else -1
        self.group_id, self.member_id = self._subject()
        self.before = groups.get(self.group_id)
        self.after = seen.consumer_groups.get(self.group_id, self.before)
        self.classic_before = classic.get(self.group_id)
        self.classic_after = seen.groups.get(self.group_id, self.classic_before)
        self.downgraded_at = downgrades.get(self.group_id)
        self.leader_syncs = leader_syncs
        self.requests = requests
        self.classic_requests = classic_requests
        self.answer: Any = None
        if isinstance(event, ev.Request):
            self.answer = next((reply.body for reply in seen.replies if reply.request_id == event.id), None)
        self.error: ErrorCode | None = getattr(self.answer, "error_code", None)
        joins = isinstance(self.body, c.ConsumerGroupHeartbeatRequest | m.JoinGroupRequest)
        if joins and not self.member_id and self.after is not None:
            old = self.before or self.classic_before
            had = {row.member_id for row in old.members} if old else set()
            self.member_id = next((row.member_id for row in self.after.members if row.member_id not in had), "")
        self.member = member_of(self.before, self.member_id)
        self.now = member_of(self.after, self.member_id)

    def _subject(self) -> tuple[str, str]:
        if self.body is not None:
            return getattr(self.body, "group_id", ""), getattr(self.body, "member_id", "")
        if isinstance(self.event, ev.TimerFired | ev.TaskDone):
            return self.event.key.group_id, getattr(self.event.key, "member_id", "")
        return "", ""

    @once
    def answers_to_classic(self) -> Sequence[tuple[ev.Request, m.ResponseBody]]:
        """Answers to requests of the classic protocol that met a consumer group."""
        requests = self.classic_requests
        return [(requests[reply.request_id], reply.body) for reply in self.seen.replies if reply.request_id in requests]

    @once
    def answers(self) -> Sequence[tuple[ev.Request, c.ConsumerGroupHeartbeatResponse]]:
        """The heartbeat answers of this step, each with its request."""
        return [
            (self.requests[reply.request_id], reply.body)
            for reply in self.seen.replies
            if isinstance(reply.body, c.ConsumerGroupHeartbeatResponse) and reply.request_id in self.requests
        ]

    @once
    def upgraded(self) -> bool:
        """A classic group with members became this consumer group (X-UP-01)."""
        old = self.classic_before
        return old is not None and bool(old.members) and self.before is None and self.after is not None

    @once
    def downgraded(self) -> bool:
        """The consumer group, which had members, became a classic one (X-DOWN-01, X-DOWN-20)."""
        old = self.before
        return old is not None and bool(old.members) and self.after is None and self.classic_after is not None

    @once
    def gone(self) -> list[ConsumerMemberView]:
        """Members of the group that the step removed."""
        stands = self.after or self.classic_after
        left = {row.member_id for row in stands.members} if stands else set()
        return [row for row in self.before.members if row.member_id not in left] if self.before else []

    @once
    def accepted(self) -> bool:
        """The coordinator accepted a heartbeat with epoch ≥ 0."""
        return self.body.member_epoch >= 0 and self.now is not None and self.error in (None, ErrorCode.NONE)

    def wrote(self, key: type, *, removed: bool = False) -> list[Any]:
        """Return the keys (of tombstones) or values that the step wrote for that kind of key."""
        return self._records.get((key, removed), [])

    @once
    def _records(self) -> dict[tuple[type, bool], list[Any]]:
        found: dict[tuple[type, bool], list[Any]] = {}
        for record in self.seen.records:
            content = record.key if record.value is None else record.value
            found.setdefault((type(record.key), record.value is None), []).append(content)
        return found

    @once
    def bumped(self) -> bool:
        return bool(self.wrote(r.ConsumerGroupMetadataKey))

    @once
    def computed(self) -> bool:
        return bool(self.wrote(r.ConsumerGroupTargetAssignmentMetadataKey))

    @once
    def reconciled(self) -> bool:
        return bool(self.wrote(r.ConsumerGroupCurrentMemberAssignmentKey))

    @once
    def fenced(self) -> bool:
        """The step removed members permanently."""
        return self.bumped and bool(self.wrote(r.ConsumerGroupMemberMetadataKey, removed=True))

    @once
    def resubscribed(self) -> bool:
        """The names or the regex of a known member changed."""
        old, new = self.member, self.now
        return (
            old is not None
            and new is not None
            and (old.subscribed_topic_names, old.subscribed_topic_regex)
            != (new.subscribed_topic_names, new.subscribed_topic_regex)
        )

    @once
    def replaced(self) -> bool:
        """A static member replaced another (M-STATIC-03)."""
        instance = getattr(self.body, "instance_id", None)
        if self.before is None or self.after is None or instance is None:
            return False
        old = dict(self.before.static_members).get(instance)
        left = bool(self.wrote(r.ConsumerGroupMemberMetadataKey, removed=True))
        return old is not None and left and dict(self.after.static_members).get(instance) == self.member_id

    @once
    def granted(self) -> set[tuple[bytes, int]]:
        """Partitions that the member was not assigned before."""
        return held(self.now) - held(self.member)

    @once
    def dropped(self) -> set[tuple[bytes, int]]:
        """Partitions that it was assigned before."""
        return held(self.member) - held(self.now)

    def turned(self, source: MemberState | None, target: MemberState) -> bool:
        """The member's own heartbeat reconciled it from one state to another."""
        was = None if self.member is None else self.member.state
        return self.reconciled and self.now is not None and was is source and self.now.state is target


def member_of(view: ConsumerGroupView | None, member_id: str) -> ConsumerMemberView | None:
    return None if view is None else next((row for row in view.members if row.member_id == member_id), None)


def held(member: ConsumerMemberView | None) -> set[tuple[bytes, int]]:
    """Its assigned partitions."""
    return {(row.topic_id, p) for row in member.assigned for p in row.partitions} if member else set()


def pending(member: ConsumerMemberView | None) -> set[tuple[bytes, int]]:
    """Return the partitions that it must revoke."""
    return {(row.topic_id, p) for row in member.pending_revocation for p in row.partitions} if member else set()
