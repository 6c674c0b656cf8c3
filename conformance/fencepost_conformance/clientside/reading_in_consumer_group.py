"""Random schedules of a consumer that reads in a group of KIP-848: what reconciliations do to positions, to records
that were fetched, and to commits.

Heartbeats leave when there is something to tell; their intervals are hours apart, and what a member does otherwise is
compared by schedules of its own (``consumer_schedule``).
"""

from __future__ import annotations

from typing import Any, Final

from fencepost.member.consumer.state import ConsumerMember
from fencepost.member.consumer.turn import armed
from fencepost.member.events import (
    Answered,
    Listener,
    ListenerDone,
    MemberTimerFired,
    MetadataChanged,
    RequestLost,
    RequestMetadata,
    Send,
    Subscribe,
    Unsubscribe,
)
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.events import Topic
from fencepost.protocol.profile import Profile
from fencepost.reader.consumer import ConsumerCommand, ConsumerEvent, Stage
from fencepost.reader.events import LeadersChanged, NeverArrived, ReaderTimerFired
from fencepost.reader.settings import Client

from .consumer_answers import beaten, topic_id
from .reading_outcomes import kind
from .reading_schedule import HOURS_MS, TOPICS, Maker, known
from .schedule import Schedule

_CLUSTER: Final = tuple(Topic(name, topic_id(number), count) for name, (number, count) in TOPICS.items())
#: draws in a row after which nothing happens any more
_IDLE: Final = 200


class _InGroup(Maker):
    """``listens``: the listener runs; ``sent_at``: request ids, to the order in which they left."""

    def __init__(self, seed: int, profile: Profile) -> None:
        self.listens = False
        self.sent_at: dict[int, int] = {}
        super().__init__(seed, profile, Client.CONSUMER, in_group=True)

    @property
    def member(self) -> ConsumerMember:
        member = self.consumer.member
        assert isinstance(member, ConsumerMember)
        return member

    def make(self, length: int) -> Schedule:
        super()._metadata()
        self._subscribe()
        idle = 0
        while len(self.made.events) < length and idle < _IDLE and not (self.reader.closed and self._rests):
            before = len(self.made.events)
            self._one()
            idle = 0 if len(self.made.events) > before else idle + 1
        return self.made

    def _due(self) -> list[ConsumerEvent]:
        due: list[ConsumerEvent] = [
            MemberTimerFired(self.now, timer) for timer, at in armed(self.member).items() if at <= self.now
        ]
        return due + super()._due()

    def _due_too(self, event: ConsumerEvent) -> ConsumerEvent | None:
        """Kafka's background goes by the clock alone."""
        timer = isinstance(event, MemberTimerFired | ReaderTimerFired)
        return next(iter(self._due()), None) if timer else None

    @property
    def _rests(self) -> bool:
        """No call of the application goes on."""
        return self.consumer.stage is None and self.reader.waiting is None

    def _after(self, event: ConsumerEvent, commands: tuple[ConsumerCommand, ...]) -> tuple[ConsumerEvent, ...]:
        self.listens = (self.listens and not isinstance(event, ListenerDone)) or any(
            isinstance(each, Listener) for each in commands
        )
        for each in commands:
            if isinstance(each, Send) or hasattr(each, "request_id"):
                self.sent_at[each.request_id] = len(self.sent_at)
        if isinstance(event, LeadersChanged | MetadataChanged):
            return ()
        return self._news() if any(isinstance(each, RequestMetadata) for each in commands) else ()

    def _news(self) -> tuple[ConsumerEvent, ...]:
        """Metadata that are asked for come at once, and are for both halves; they are of what is subscribed to,
        and of what a question for the end of a log is about."""
        watched = self.member.subscription.watched | self.reader.transient_topics
        kept = {each: at for each, at in self.leaders.items() if each.topic in watched}
        cluster = tuple(each for each in _CLUSTER if each.name in watched)
        return MetadataChanged(self.now, cluster), LeadersChanged(self.now, known(kept), self._ids())

    def _metadata(self) -> None:
        """Leaders move in the schedules of partitions that are assigned by hand."""

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

    def _assign(self) -> None:
        """Partitions come from the group."""
        self._poll()

    def _subscribe(self) -> None:
        topics = self.dice.choice((["a"], ["b"], ["a", "b"], ["a", "b"]))
        self._do(Subscribe(self.now, frozenset(topics)), {"kind": "subscribe", "topics": topics})

    # --- answers ---

    def _network(self, number: int) -> None:
        """What is lost is lost with all that went to the coordinator, the member's too, the oldest first."""
        if not self._loses(2 * number + 1, coordinator=kind(self.reader.sent[number])[1] is None):
            self._answer(number)

    def _of_member(self, number: int) -> None:
        if self._loses(2 * number, coordinator=True):
            return
        asked = self.bodies[2 * number]
        assert isinstance(asked, ConsumerGroupHeartbeatRequest)
        topics = self.member.subscription.topics
        body, words = beaten(self.dice, asked.member_epoch, topics, TOPICS, (HOURS_MS // 2,))
        told = {"kind": "answer", "of": self._place(2 * number), **words}
        self._do(Answered(self.now, request_id=2 * number, body=body), told)

    def _loses(self, request_id: int, *, coordinator: bool) -> bool:
        if self.dice.random() >= 0.05:
            return False
        if coordinator:
            own = [2 * each.request_id for each in self.member.sent]
            own += [2 * each + 1 for each, sent in self.reader.sent.items() if kind(sent)[1] is None]
            request_id = min(own, key=self.sent_at.__getitem__)
        told = {"kind": "lost", "of": self._place(request_id)}
        lost = NeverArrived if request_id % 2 else RequestLost
        self._do(lost(self.now, request_id=request_id), told)
        return True

    def _place(self, request_id: int) -> list[Any]:
        if request_id % 2:
            return super()._placed(request_id // 2)
        place = [each.request_id for each in self.member.sent].index(request_id // 2)
        return ["heartbeat", "null", place]


def schedule(seed: int, length: int, profile: Profile) -> Schedule:
    """The schedule of that seed, about ``length`` events, with what the core made of it."""
    return _InGroup(seed, profile).make(length)
