"""Random schedules of a member of a consumer group.

The core takes a schedule while it is made, as with a classic member. Here an application call may last for many
events: a listener takes time, and unsubscribe and close wait for the answer to the leave. Network and clock events
continue meanwhile.
"""

from __future__ import annotations

import random
from typing import Any

from fencepost.member.consumer import ConsumerMember, ConsumerSettings, consumer_step
from fencepost.member.consumer.turn import armed
from fencepost.member.events import (
    Answered,
    Close,
    CloseOption,
    Command,
    ListenerDone,
    MemberEvent,
    MemberTimerFired,
    MetadataChanged,
    Poll,
    RequestLost,
    RequestMetadata,
    Send,
    Subscribe,
    SubscribeRegex,
    Unsubscribe,
)
from fencepost.protocol.events import Topic
from fencepost.protocol.profile import Profile

from .consumer_answers import beaten, topic_id
from .consumer_outcomes import outcome
from .schedule import Schedule, looked_up

#: name to number and partitions; the id of a topic is its number in every byte
TOPICS = {"a": (1, 3), "b": (2, 2), "c": (3, 1)}
#: draws in a row after which nothing more happens, for example because the consumer is closed
_IDLE = 200
_CLOSE = {
    CloseOption.DEFAULT: "DEFAULT",
    CloseOption.LEAVE_GROUP: "LEAVE_GROUP",
    CloseOption.REMAIN_IN_GROUP: "REMAIN_IN_GROUP",
}


class _Maker:
    def __init__(self, seed: int, profile: Profile) -> None:
        self.dice = random.Random(f"consumer {seed}")
        options: dict[str, Any] = {
            "group_id": "g",
            "group_instance_id": self.dice.choice((None, None, "i")),
            "rack": self.dice.choice((None, "r")),
            "server_assignor": self.dice.choice((None, "uniform")),
            "max_poll_interval_ms": self.dice.choice((4_000, 300_000)),
            "request_timeout_ms": 1_000_000_000,
            "retry_backoff_ms": 100,
            "retry_backoff_max_ms": 1_000,
            "auto_commit": False,
            "listener": self.dice.random() < 0.8,
        }
        self.made = Schedule(options, TOPICS)
        self.now = 1_000_000
        self.member = ConsumerMember(ConsumerSettings(**options, profile=profile), "m")
        self.numbers: dict[int, int] = {}  # sending order by request id
        self.epochs: dict[int, int] = {}  # epoch in each request
        self.cluster: frozenset[str] = frozenset()

    def make(self, length: int) -> Schedule:
        idle = 0
        while len(self.made.events) < length and idle < _IDLE:
            before = len(self.made.events)
            self._one()
            idle = 0 if len(self.made.events) > before else idle + 1
        return self.made

    # --- steps ---

    def _do(self, event: MemberEvent, entry: dict[str, Any]) -> None:
        commands = self._step(event)
        asked = [each for each in commands if isinstance(each, RequestMetadata)]
        index = len(self.made.events)
        self.made.events.append({**entry, "at": self.now})
        while asked:  # metadata is answered at once
            self.cluster = self._covered(asked[-1])
            more = self._step(MetadataChanged(self.now, self._topics()))
            asked = [each for each in more if isinstance(each, RequestMetadata)]
            commands += more
        self.made.outcomes.append(outcome(index, self.now, self.member, commands))

    def _step(self, event: MemberEvent) -> tuple[Command, ...]:
        self.member, commands = consumer_step(self.member, event)
        for each in commands:
            if isinstance(each, Send):
                self.numbers[each.request_id] = len(self.numbers)
                self.epochs[each.request_id] = each.body.member_epoch  # type: ignore[union-attr]
        return commands

    def _covered(self, asked: RequestMetadata) -> frozenset[str]:
        """Return the topics that a metadata answer covers: the existing ones of those requested, or all. Kafka's client
        requests topics by name where it subscribes by name, and then not by id."""
        if asked.topics:
            return frozenset(TOPICS) & asked.topics
        return frozenset(name for name, (number, _) in TOPICS.items() if topic_id(number) in asked.topic_ids)

    def _topics(self) -> tuple[Topic, ...]:
        return tuple(Topic(name, topic_id(TOPICS[name][0]), TOPICS[name][1]) for name in sorted(self.cluster))

    # --- what happens ---

    def _one(self) -> None:
        member, dice = self.member, self.dice
        self.now += dice.choice((0, 0, 1, 50))
        due = [each for each, at in armed(member).items() if at <= self.now]
        if due:
            self._do(MemberTimerFired(self.now, due[0]), {"kind": "timer"})
            return
        listening = member.waiting is not None and member.waiting.running is not None
        if listening and dice.random() < 0.6:
            error = "oops" if dice.random() < 0.15 else None
            self._do(ListenerDone(self.now, error), {"kind": "listener", "error": error})
        elif member.coordinator.looking_up and dice.random() < 0.6:
            self._do(*looked_up(dice, self.now, 0.85))
        elif member.sent and dice.random() < 0.6:
            self._network(dice.choice(member.sent).request_id)
        elif dice.random() < 0.15 and armed(member):
            self.now = min(armed(member).values())
        elif member.waiting is None and not member.closed:
            self._application()

    def _application(self) -> None:
        dice = self.dice
        chance = dice.random()
        subscription = self.member.subscription
        if not subscription.subscribed or chance < 0.05:
            if subscription.regex is not None or (not subscription.subscribed and dice.random() < 0.2):
                regex = dice.choice(("a|b", ".*"))
                self._do(SubscribeRegex(self.now, regex), {"kind": "subscribe_regex", "regex": regex})
            else:
                topics = dice.choice((["a"], ["b"], ["a", "b"]))
                self._do(Subscribe(self.now, frozenset(topics)), {"kind": "subscribe", "topics": topics})
        elif chance < 0.08:
            self._do(Unsubscribe(self.now), {"kind": "unsubscribe"})
        elif chance < 0.09:
            option = dice.choice(list(CloseOption))
            self._do(Close(self.now, option), {"kind": "close", "option": _CLOSE[option]})
        else:
            self._do(Poll(self.now), {"kind": "poll"})

    def _network(self, request_id: int) -> None:
        dice = self.dice
        if dice.random() < 0.05:
            self._do(RequestLost(self.now, request_id=request_id), {"kind": "lost"})
            return
        body, words = beaten(dice, self.epochs[request_id], self.member.subscription.topics, TOPICS)
        entry = {"kind": "answer", "request": self.numbers[request_id], **words}
        self._do(Answered(self.now, request_id=request_id, body=body), entry)


def schedule(seed: int, length: int, profile: Profile) -> Schedule:
    """Return the schedule of that seed, about ``length`` events, with the core's outcomes."""
    return _Maker(seed, profile).make(length)
