"""A scene for a coordinator: one group, short requests, and a log that replicates immediately unless the test changes
that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fencepost import coordinator
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    CancelTimer,
    Event,
    Load,
    Outcome,
    Request,
    SetTimer,
    TimerFired,
    TimerKey,
    TimerKind,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState, GroupView, MemberView

GROUP = "g"


class FirstOf:
    """Count member ids, and take the first option of every other choice."""

    def __init__(self) -> None:
        self.count = 0

    def member_id(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        return candidates[0]

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        return tied[0]

    def uuid(self) -> str:
        return self.member_id("uuid")

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return tied[0]

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        return most

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        return self.assignor(group_id, tied)

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return keys

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return topic_ids

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return keys


class Scene:
    def __init__(self, profile: Profile = INTENDED, *, log: str = "at once", running: bool = True, **settings: int):
        self.state = coordinator.initial_state(Settings(**settings), profile, running=running)
        self.choices = FirstOf()
        self.now = 0
        self.ids = 0
        self.log = log
        self.records: list[Record] = []
        self.timers: dict[TimerKey, int] = {}
        self.answers: dict[int, m.ResponseBody] = {}
        self.fed: list[Event] = []
        self.feed(Load(0, leader_epoch=1, records=()))

    def feed(self, event: Event) -> Outcome:
        self.state, outcome = coordinator.step(self.state, event, self.choices)
        self.fed.append(event)
        self.records += outcome.records
        for command in outcome.timers:
            match command:
                case SetTimer(key, delay):
                    self.timers[key] = self.now + delay
                case CancelTimer(key):
                    self.timers.pop(key, None)
        for reply in outcome.replies:
            assert reply.request_id not in self.answers, "answered twice"
            self.answers[reply.request_id] = reply.body
        if outcome.records and self.log == "at once":
            self.replicate()
        return outcome

    def replicate(self) -> None:
        self.feed(Appended(self.now, offset=len(self.records)))

    def fail(self, error: ErrorCode, count: int = 1) -> None:
        del self.records[-count:]
        self.feed(AppendFailed(self.now, error))

    def ask(self, body: m.RequestBody, version: int | None = None, client: str = "c", **more: object) -> int:
        """Send a request of the newest version, or the given one; return its id."""
        self.ids += 1
        newest = m.VERSIONS[type(body)][1] if version is None else version
        event = Request(self.now, id=self.ids, version=newest, client_id=client, client_host="/127.0.0.1", body=body)
        self.feed(replace(event, **more))  # type: ignore[arg-type]
        return self.ids

    def pass_time(self, ms: int) -> None:
        """Fire the timers that become due within ``ms``, in order of time."""
        end = self.now + ms
        while due := [key for key, at in self.timers.items() if at <= end]:
            key = min(due, key=lambda key: (self.timers[key], key.kind.value, key.group_id, key.member_id))
            self.now = max(self.now, self.timers.pop(key))
            self.feed(TimerFired(self.now, key))
        self.now = end

    def fire(self, kind: TimerKind, member_id: str = "") -> Outcome:
        """Fire this timer of the group when it is due; other timers that are due by then are late."""
        key = TimerKey(kind, GROUP, member_id)
        self.now = max(self.now, self.timers.pop(key))
        return self.feed(TimerFired(self.now, key))

    # Shortcuts

    def join(
        self,
        member_id: str = "",
        *names: str,
        instance: str | None = None,
        version: int = 9,
        group: str = GROUP,
        session: int = 10_000,
        rebalance: int = 30_000,
        kind: str = "consumer",
        data: bytes = b"",
        client: str = "c",
    ) -> int:
        protocols = tuple(m.Protocol(name, data or name.encode()) for name in names or ("range",))
        body = m.JoinGroupRequest(
            group,
            session_timeout_ms=session,
            rebalance_timeout_ms=rebalance,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=kind,
            protocols=protocols,
        )
        return self.ask(body, version, client)

    def sync(self, member_id: str, generation: int, shares: dict[str, bytes] | None = None, **more: object) -> int:
        rows = tuple(m.SyncGroupAssignment(member, share) for member, share in (shares or {}).items())
        body = m.SyncGroupRequest(
            GROUP,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=rows,
        )
        return self.ask(replace(body, **more))  # type: ignore[arg-type]

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode | None:
        answer = self.answers.get(
            self.ask(
                m.HeartbeatRequest(GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance)
            )
        )
        assert answer is None or isinstance(answer, m.HeartbeatResponse)
        return None if answer is None else answer.error_code

    def leave(self, *members: str | m.LeaveGroupMember, version: int = 5) -> int:
        rows = tuple(each if isinstance(each, m.LeaveGroupMember) else m.LeaveGroupMember(each) for each in members)
        return self.ask(m.LeaveGroupRequest(GROUP, rows), version)

    def joined(self, request_id: int) -> m.JoinGroupResponse:
        answer = self.answers[request_id]
        assert isinstance(answer, m.JoinGroupResponse)
        return answer

    def synced(self, request_id: int) -> m.SyncGroupResponse:
        answer = self.answers[request_id]
        assert isinstance(answer, m.SyncGroupResponse)
        return answer

    def left(self, request_id: int) -> m.LeaveGroupResponse:
        answer = self.answers[request_id]
        assert isinstance(answer, m.LeaveGroupResponse)
        return answer

    def newcomer(self, *names: str, **more: object) -> tuple[str, int]:
        """Bring a dynamic member to its second JoinGroup; return its id and the id of the parked request."""
        given = self.joined(self.join("", *names, **more))  # type: ignore[arg-type]
        assert given.error_code is ErrorCode.MEMBER_ID_REQUIRED
        return given.member_id, self.join(given.member_id, *names, **more)  # type: ignore[arg-type]

    def group(self, name: str = GROUP) -> GroupView:
        view = coordinator.view(self.state, name)
        assert view is not None
        return view

    def member(self, member_id: str) -> MemberView:
        return next(member for member in self.group().members if member.member_id == member_id)

    @property
    def now_in(self) -> GroupState:
        return self.group().state

    def timer(self, kind: TimerKind, member_id: str = "") -> int | None:
        """Return the time left on a timer of the group, or None if it is not set."""
        at = self.timers.get(TimerKey(kind, GROUP, member_id))
        return None if at is None else at - self.now

    def stable(self, count: int) -> list[str]:
        """Create dynamic members, all in generation 1 and Stable; the first one leads."""
        pairs = [self.newcomer() for _ in range(count)]
        self.pass_time(self.state.settings.group_initial_rebalance_delay_ms * 2)
        ids = [member_id for member_id, _ in pairs]
        for member_id in ids[1:]:
            self.sync(member_id, 1)
        self.sync(ids[0], 1, {member_id: member_id.encode() for member_id in ids})
        if self.log == "at once":
            assert self.now_in is GroupState.STABLE
        return ids
