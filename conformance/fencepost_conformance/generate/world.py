"""The host around a core while a trace is made: time, the log, timers, requests in flight, changes of leadership."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import DeleteGroupsRequest, JoinGroupResponse, RequestBody, ResponseBody
from fencepost.protocol.offset_messages import TxnOffsetCommitRequest, WriteTxnMarkerRequest
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupView

from ..targets.leading import Leading
from ..traces.observation import Observation
from .cleaner import Log
from .plan import Plan

#: errors of an append: each class of C-SYNC-30, and codes that it passes on
APPEND_ERRORS = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_FETCH_SIZE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)


class CoreRaised(Exception):
    """The core raised an exception where it must answer; the message has it."""


class Session(Protocol):
    """A coordinator that takes one event at a time. ``armed``: timers that are set, with their deadline in ms."""

    @property
    def armed(self) -> dict[ev.TimerKey, int]: ...
    @property
    def groups(self) -> dict[str, GroupView]: ...
    @property
    def consumer_groups(self) -> dict[str, ConsumerGroupView]: ...

    def feed(self, event: ev.Event) -> Observation:
        """Handle the event and return what it did."""


class Program(Protocol):
    """A client that the world plays. Its plan has a ``client_id``, a ``client_host`` and an ``instance_id``."""

    @property
    def plan(self) -> Any: ...

    def sent(self, request_id: int, version: int, body: RequestBody) -> None:
        """Note that one of its requests was sent."""

    def answered(self, request_id: int, body: ResponseBody) -> None:
        """Handle an answer."""


def appends_within(event: ev.Event) -> bool:
    """Whether the event's records belong to a transaction and are appended within its own step (F-RT-05)."""
    return isinstance(event, ev.Request) and isinstance(event.body, TxnOffsetCommitRequest | WriteTxnMarkerRequest)


class World:
    """Feeds events to a core, keeps their observations, and passes answers to the clients."""

    strange_groups: Sequence[str] = ("", "ghost", "nobody")

    def __init__(self, plan: Plan, rng: Random, clients: Sequence[Program], session: Session) -> None:
        self._rng = rng
        self.plan = plan
        self.clients = clients
        self.session = session
        self.events: list[ev.Event] = []
        self.observations: list[Observation] = []
        self.now = 0
        self.expires = False  #: the timer that expires offsets may fire
        self.log: list[Record] = []
        #: the length of the log after each step that wrote, and after loads
        self.ends: list[int] = [0]
        self.replicated = 0
        #: the log on disk, which a cleaner may have changed; kept up to date only if a cleaner works
        self.disk = Log()
        #: the newest leader epoch, which the coordinator need not know
        self.epoch = 0
        self._leading = Leading()
        #: an append within its own step may fail (``compare.atomic``)
        self.fails_within = True
        #: every member id that an answer named, oldest first
        self.known_ids: list[str] = []
        #: background tasks that have not ended
        self.tasks: list[ev.TaskKey] = []
        #: tasks whose coordinator has lost the partition, and which may end before the next one leads
        self.lost_tasks: list[ev.TaskKey] = []
        #: number of next appends that are likely to fail
        self._failing = 0
        self._next_request = 1
        self._asked: dict[int, Program] = {}

    @property
    def groups(self) -> dict[str, GroupView]:
        """Return the groups as the core has them now."""
        return self.session.groups

    @property
    def consumer_groups(self) -> Mapping[str, ConsumerGroupView]:
        """Return the consumer groups as the core has them now."""
        return self.session.consumer_groups

    @property
    def owned(self) -> bool:
        """Whether the partition is led."""
        return self._leading.owned

    @property
    def loading(self) -> bool:
        """Whether a load is in progress."""
        return self._leading.loading

    @property
    def unreplicated(self) -> bool:
        return self.owned and self.replicated < len(self.log)

    def due(self) -> list[ev.TimerKey]:
        """Return timers that may fire now, in an order that does not depend on hashing."""
        return sorted((key for key, at in self._armed() if at <= self.now), key=timer_order)

    def _armed(self) -> Iterable[tuple[ev.TimerKey, int]]:
        armed = self.session.armed.items()
        return armed if self.expires else [each for each in armed if each[0].kind is not ev.TimerKind.EXPIRY]

    def next_deadline(self) -> int | None:
        """Return the first deadline after now."""
        return min((at for _, at in self._armed() if at > self.now), default=None)

    def request(
        self, version: int, body: RequestBody, client: Program | None = None, *, host: tuple[str, str] | None = None,
        denied: frozenset[str] = frozenset(), denied_topics: frozenset[str] = frozenset(),
    ) -> int:  # fmt: skip
        """Send a request, of a client or of none; returns its id."""
        number = self._next_request
        self._next_request += 1
        name, address = host or (
            (client.plan.client_id, client.plan.client_host) if client else ("admin", "/127.0.0.99")
        )
        if client is not None:
            client.sent(number, version, body)
            self._asked[number] = client
        self.feed(
            ev.Request(
                self.now,
                id=number,
                version=version,
                client_id=name,
                client_host=address,
                body=body,
                denied=denied,
                denied_topics=denied_topics,
            )
        )
        return number

    def feed(self, event: ev.Event) -> None:
        """Feed one event, deliver its answers, then append or lose its records."""
        self.events.append(event)
        try:
            seen = self.session.feed(event)
        except Exception as raised:
            raise CoreRaised(f"{type(raised).__name__}: {raised}") from raised
        self.observations.append(seen)
        for reply in seen.replies:
            body = reply.body
            if isinstance(body, JoinGroupResponse | ConsumerGroupHeartbeatResponse):
                self._remember(body.member_id)
            if client := self._asked.pop(reply.request_id, None):
                client.answered(reply.request_id, body)
        self.tasks.extend(seen.tasks)
        if self.plan.wide.cleaned and not isinstance(event, ev.Load):
            self.disk = self.disk.after(event, seen.records)
        if not seen.records:
            return
        self.log.extend(seen.records)
        self.ends.append(len(self.log))
        mood = self.plan.mood
        if self._rng.random() < self._fails() and self._written_as_one(event):
            del self.log[len(self.log) - len(seen.records) :]
            self.ends.pop()
            self.feed(ev.AppendFailed(self.now, self._rng.choice(APPEND_ERRORS)))
        elif self._rng.random() < mood.prompt:
            self.replicate(len(self.log))

    def _fails(self) -> float:
        """Return the probability that the next append fails. Failures are single, or come in bursts."""
        mood, burst = self.plan.mood, self.plan.wide.burst
        if not burst:
            return mood.append_fails
        if self._failing:
            self._failing -= 1
            return burst
        self._failing = self._rng.choice((1, 2, 3)) if self._rng.random() < mood.append_fails else 0
        return float(self._failing > 0)

    def _remember(self, member_id: str | None) -> None:
        if member_id and member_id not in self.known_ids:
            self.known_ids.append(member_id)

    def _written_as_one(self, event: ev.Event) -> bool:
        """Whether the event's records are one append. Concurrent deletions (C-ADM-09) are appended one by one, so no
        single failure covers all of them. A transaction's writes within its own step (F-RT-05) may be several appends
        too."""
        if not self.fails_within and appends_within(event):
            return False
        if not isinstance(event, ev.Appended):
            return True
        answered = {reply.request_id for seen in self.observations[:-1] for reply in seen.replies}
        asked = (each for each in self.events if isinstance(each, ev.Request) and each.id not in answered)
        return sum(isinstance(each.body, DeleteGroupsRequest) for each in asked) < 2

    def replicate(self, offset: int) -> None:
        """Replicate everything below ``offset``."""
        self.replicated = offset
        self.feed(ev.Appended(self.now, offset=offset))

    def load(self, records: Sequence[Record], epoch: int | None = None, disk: Log | None = None) -> None:
        """End loading with these records. If no load is in progress, it began at this epoch, by default the newest one.
        ``disk``: the log as it is now, if it differs from what was read."""
        epoch = self.epoch if epoch is None else epoch
        event = ev.Load(self.now, leader_epoch=epoch, records=tuple(records))
        taken = self._leading.takes(event)
        if taken:
            self.log, self.replicated, self.ends = list(records), len(records), [len(records)]
            self.lost_tasks.clear()
            self.disk = disk or self.disk.after(event, ())
        self.feed(event)
        if taken and self.plan.wide.cleaned:
            self._leading.loaded(records, groups=bool(self.groups or self.consumer_groups))

    def start_loading(self, epoch: int | None = None) -> None:
        """Win the partition at this epoch, by default the next one."""
        if epoch is None:
            self.epoch += 1
            epoch = self.epoch
        event = ev.LoadStarted(self.now, leader_epoch=epoch)
        self._leading.takes(event)
        self.feed(event)

    def fail_loading(self) -> None:
        event = ev.LoadFailed(self.now, leader_epoch=self.epoch)
        self._leading.takes(event)
        self.feed(event)

    def lose(self, *, known_epoch: bool, epoch: int | None = None) -> None:
        """Lose the partition, unless at an epoch that is known (F-LOAD-03); unreplicated records may be lost too. The
        epoch defaults to the next one."""
        if epoch is None:
            self.epoch += 1
            epoch = self.epoch
        event = ev.Unload(self.now, leader_epoch=epoch if known_epoch else None)
        if self._leading.takes(event):
            self.lost_tasks.extend(self.tasks)
            self.tasks.clear()
        self.feed(event)


def timer_order(key: ev.TimerKey) -> tuple[str, str, str, int]:
    return key.kind.value, key.group_id, key.member_id, key.operation
