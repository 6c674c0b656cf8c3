"""Random schedules of a consumer that reads in a KIP-848 group: how reconciliation affects positions, fetched records
and commits.

The member heartbeats when it has something to report; the heartbeat interval is hours. Other behaviour of a member is
compared by its own schedules (``consumer_schedule``).
"""

from __future__ import annotations

from typing import Any, Final

from fencepost.member.consumer.state import ConsumerMember
from fencepost.member.consumer.turn import armed
from fencepost.member.events import (
    Answered,
    ListenerDone,
    MemberTimerFired,
    Subscribe,
    Unsubscribe,
)
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.profile import Profile
from fencepost_consumer.consumer import ConsumerEvent, Stage
from fencepost_consumer.events import ReaderTimerFired
from fencepost_consumer.settings import Client

from .consumer_answers import beaten
from .reading_grouped import Grouped
from .reading_outcomes import kind
from .reading_schedule import HOURS_MS, TOPICS, Maker
from .schedule import Schedule

#: draws in a row after which nothing more happens
_IDLE: Final = 200


class _InGroup(Grouped):
    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile, Client.CONSUMER)

    @property
    def member(self) -> ConsumerMember:
        member = self.consumer.member
        assert isinstance(member, ConsumerMember)
        return member

    def make(self, length: int) -> Schedule:
        Maker._metadata(self)
        self._subscribe()
        idle = 0
        while len(self.made.events) < length and idle < _IDLE and not (self.reader.closed and self._rests):
            before = len(self.made.events)
            self._one()
            idle = 0 if len(self.made.events) > before else idle + 1
        return self.made

    def _due(self) -> list[ConsumerEvent]:
        """Return the due timers: Kafka's background sends commits and look-ups before heartbeats (N-POLL-02)."""
        due: list[ConsumerEvent] = [
            MemberTimerFired(self.now, timer) for timer, at in armed(self.member).items() if at <= self.now
        ]
        return super()._due() + due

    def _due_too(self, event: ConsumerEvent) -> ConsumerEvent | None:
        """Return another due timer: Kafka's background follows the clock alone."""
        timer = isinstance(event, MemberTimerFired | ReaderTimerFired)
        return next(iter(self._due()), None) if timer else None

    @property
    def _rests(self) -> bool:
        """Whether no application call is in progress."""
        return self.consumer.stage is None and self.reader.waiting is None

    # --- what happens ---

    def _turn_of_member(self) -> bool:
        dice, member = self.dice, self.member
        if self.listens and dice.random() < 0.5:
            throws = dice.random() < 0.06 and self.consumer.stage is not Stage.CLOSE
            error = "oops" if throws else None
            self._do(ListenerDone(self.now, error), {"kind": "listener", "error": error})
            return True
        if member.sent and dice.random() < 0.5:
            self._of_member(dice.choice(member.sent).request_id)
            return True
        return False

    def _application(self) -> None:
        dice = self.dice
        if self.consumer.stage is not None:
            return
        chance = dice.random()
        if not self.member.subscription.subscribed or chance < 0.02:
            self._subscribe()
        elif chance < 0.55:
            self._poll()
        elif chance < 0.57:
            self._do(Unsubscribe(self.now), {"kind": "unsubscribe"})
        else:
            super()._application()

    def _subscribe(self) -> None:
        topics = self.dice.choice((["a"], ["b"], ["a", "b"], ["a", "b"]))
        self._do(Subscribe(self.now, frozenset(topics)), {"kind": "subscribe", "topics": topics})

    # --- answers ---

    def _network(self, number: int) -> None:
        if self.dice.random() < 0.05:
            self._lose(2 * number + 1, coordinator=kind(self.reader.sent[number])[1] is None)
        else:
            self._answer(number)

    def _of_member(self, number: int) -> None:
        if self.dice.random() < 0.05:
            self._lose(2 * number, coordinator=True)
            return
        asked = self.bodies[2 * number]
        assert isinstance(asked, ConsumerGroupHeartbeatRequest)
        topics = self.member.subscription.topics
        body, words = beaten(self.dice, asked.member_epoch, topics, TOPICS, (HOURS_MS // 2,))
        entry = {"kind": "answer", "of": self._place(2 * number), **words}
        self._do(Answered(self.now, request_id=2 * number, body=body), entry)

    def _place_of_member(self, number: int) -> list[Any]:
        return ["heartbeat", "null", [each.request_id for each in self.member.sent].index(number)]


def schedule(seed: int, length: int, profile: Profile) -> Schedule:
    """Return the schedule of that seed, about ``length`` events, with the core's outcomes."""
    return _InGroup(seed, profile).make(length)
