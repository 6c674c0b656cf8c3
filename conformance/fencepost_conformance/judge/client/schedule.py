"""Random schedules of a classic member: its application's calls, and the answers to its requests.

The core takes a schedule while it is made, since only sent requests can be answered. Kafka's member then takes the
whole schedule. A poll does not wait. A schedule has no poll during a back-off, because the Java consumer sleeps through
a back-off inside ``poll``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.assignors.sticky import CooperativeStickyAssignor
from fencepost.member.events import (
    Answered,
    Command,
    CoordinatorFound,
    EnforceRebalance,
    Listener,
    ListenerDone,
    LookupFailed,
    MemberEvent,
    MemberTimer,
    MemberTimerFired,
    MetadataChanged,
    Poll,
    RequestLost,
    RequestMetadata,
    Send,
    Subscribe,
    Unsubscribe,
)
from fencepost.member.settings import MemberSettings
from fencepost.member.state import Member, SentKind
from fencepost.member.step import step
from fencepost.member.turn import armed
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import HeartbeatResponse, LeaveGroupResponse, ResponseBody
from fencepost.protocol.profile import Profile

from .group_answers import GROUP_ERRORS, crowded, in_words, joined, synced
from .outcomes import Outcome, outcome

TOPICS = {"a": 3, "b": 2}
_CLUSTER = tuple(Topic(name, bytes([index + 1] * 16), count) for index, (name, count) in enumerate(TOPICS.items()))
ASSIGNORS = {"range": RangeAssignor, "cooperative-sticky": CooperativeStickyAssignor}
_LOOKUP = (None, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.GROUP_AUTHORIZATION_FAILED)


@dataclass
class Schedule:
    """A schedule in the JVM's format. ``outcomes``: the core's, one an event except for a listener's."""

    settings: dict[str, Any]
    topics: dict[str, Any]
    events: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {"settings": self.settings, "topics": self.topics, "events": self.events}


class _Maker:
    def __init__(self, seed: int, profile: Profile) -> None:
        self.dice = random.Random(seed)
        self.crowd = crowded(seed)
        names = self.dice.choice((["range"], ["cooperative-sticky"], ["range", "cooperative-sticky"]))
        options: dict[str, Any] = {
            "group_id": "g",
            "group_instance_id": self.dice.choice((None, None, "i")),
            "session_timeout_ms": self.dice.choice((6_000, 45_000)),
            "heartbeat_interval_ms": self.dice.choice((1_000, 3_000)),
            "max_poll_interval_ms": self.dice.choice((4_000, 300_000)),
            "request_timeout_ms": 30_000,
            "retry_backoff_ms": 100,
            "retry_backoff_max_ms": 1_000,
        }
        self.made = Schedule({**options, "assignors": names}, TOPICS)
        settings = MemberSettings(**options, assignors=tuple(ASSIGNORS[name]() for name in names), profile=profile)
        self.now = 1_000_000
        self.member = Member(settings)
        self.numbers: dict[int, int] = {}  # sending order by request id
        self.bodies: dict[int, Any] = {}
        self.commands: list[Command] = []

    def make(self, length: int) -> Schedule:
        self._do(MetadataChanged(self.now, _CLUSTER), {"kind": "metadata"})
        while len(self.made.events) < length:
            self._one()
        return self.made

    def _step(self, event: MemberEvent, entry: dict[str, Any]) -> bool:
        self.made.events.append({**entry, "at": self.now})
        self.member, commands = step(self.member, event)
        self.commands.extend(commands)
        for each in commands:
            if isinstance(each, Send):
                self.bodies[each.request_id] = each.body
                self.numbers[each.request_id] = len(self.numbers)
        return any(isinstance(each, Listener) for each in commands)

    def _do(self, event: MemberEvent, entry: dict[str, Any]) -> None:
        first = len(self.made.events)
        self.commands = []
        listening = self._step(event, entry)
        while listening:
            if self.dice.random() < 0.1:  # a slow listener
                self.now += self.dice.choice((10, 500))
            error = "oops" if self.dice.random() < 0.1 else None
            listening = self._step(ListenerDone(self.now, error), {"kind": "listener", "error": error})
        asked = sum(isinstance(each, RequestMetadata) for each in self.commands)
        while asked:  # metadata arrive at once, so that a waiting call continues in this event
            before = len(self.commands)
            self._step(MetadataChanged(self.now, _CLUSTER), {"kind": "within"})
            asked = sum(isinstance(each, RequestMetadata) for each in self.commands[before:])
        self.made.outcomes.append(outcome(first, self.member, tuple(self.commands)))

    def _one(self) -> None:
        member, dice = self.member, self.dice
        self.now += dice.choice((0, 0, 1, 50))
        due = [each for each, at in armed(member).items() if at <= self.now]
        if due:
            whose = min(due, key=lambda each: each is MemberTimer.RETRY)  # the heartbeat thread runs at other timers
            for timer in due:
                if armed(self.member).get(timer, self.now + 1) <= self.now:
                    self._do(MemberTimerFired(self.now, timer), {"kind": "timer", "timer": whose.value})
            return
        if member.coordinator.looking_up and dice.random() < 0.7:
            self._do(*looked_up(dice, self.now, 0.8))
        elif member.sent and dice.random() < 0.7:
            self._network(dice.choice(member.sent).request_id)
        elif dice.random() < 0.1 and armed(member):
            self.now = min(armed(member).values())
        else:
            self._application()

    def _application(self) -> None:
        dice = self.dice
        chance = dice.random()
        subscribed = self.member.subscription.subscribed
        if not subscribed and chance < 0.2:
            self._do(Poll(self.now), {"kind": "poll"})
        elif not subscribed or chance < 0.06:
            topics = dice.choice((["a"], ["b"], ["a", "b"]))
            self._do(Subscribe(self.now, frozenset(topics)), {"kind": "subscribe", "topics": topics})
        elif chance < 0.1:
            self._do(Unsubscribe(self.now), {"kind": "unsubscribe"})
        elif chance < 0.16:
            self._do(EnforceRebalance(self.now, "asked"), {"kind": "enforce", "reason": "asked"})
        else:
            waits = [
                at for each, at in self.member.deadlines.items() if each in (MemberTimer.RETRY, MemberTimer.LOOKUP)
            ]
            self.now = max([self.now, *waits])
            if any(at <= self.now for at in armed(self.member).values()):
                return
            self._do(Poll(self.now), {"kind": "poll"})

    def _network(self, request_id: int) -> None:
        dice = self.dice
        sent = next(each for each in self.member.sent if each.request_id == request_id)
        if dice.random() < 0.05:
            self._do(RequestLost(self.now, request_id=request_id), {"kind": "lost"})
            return
        error = ErrorCode.NONE if dice.random() < 0.75 else dice.choice(GROUP_ERRORS)
        entry: dict[str, Any] = {"kind": "answer", "request": self.numbers[request_id], "error": int(error.value)}
        body: ResponseBody
        match sent.kind:
            case SentKind.JOIN:
                body = joined(dice, self.bodies[request_id], error, crowd=self.crowd)
            case SentKind.SYNC:
                protocol = self.member.generation.protocol_name
                body = synced(dice, self.member.subscription.topics, TOPICS, protocol, error)
            case SentKind.HEARTBEAT:
                body = HeartbeatResponse(error)
            case SentKind.LEAVE:
                body = LeaveGroupResponse(error)
        self._do(Answered(self.now, request_id=request_id, body=body), entry | in_words(body))


def looked_up(dice: random.Random, now: int, found: float) -> tuple[CoordinatorFound | LookupFailed, dict[str, Any]]:
    """Return the end of a look-up of the coordinator, which succeeds with the probability ``found``, and its JSON."""
    if dice.random() < found:
        return CoordinatorFound(now, node=0), {"kind": "found"}
    error = dice.choice(_LOOKUP)
    return LookupFailed(now, error), {"kind": "lookup_failed", "error": error and int(error.value)}


def schedule(seed: int, length: int, profile: Profile) -> Schedule:
    """Return the schedule of that seed, about ``length`` events, with the core's outcomes."""
    return _Maker(seed, profile).make(length)
