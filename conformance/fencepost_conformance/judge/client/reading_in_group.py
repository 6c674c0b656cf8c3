"""Random schedules of a classic consumer that reads in a group: it joins, gets partitions, and has to give them up.

The heartbeat interval is hours, so the heartbeat thread only looks for the coordinator. These schedules compare how a
rebalance affects positions, fetched records and commits. Other behaviour of a member is compared by its own schedules
(``schedule``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fencepost.member.events import (
    Answered,
    CoordinatorFound,
    ListenerDone,
    LookupFailed,
    MemberTimer,
    MemberTimerFired,
    Subscribe,
    Unsubscribe,
)
from fencepost.member.state import Member, PrepareCommit, SentKind
from fencepost.member.turn import armed
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatResponse, LeaveGroupResponse, ResponseBody
from fencepost.protocol.profile import Profile
from fencepost_consumer.consumer import Stage
from fencepost_consumer.settings import Client

from .group_answers import GROUP_ERRORS, crowded, in_words, joined, synced
from .reading_answers import ELSEWHERE
from .reading_grouped import Grouped
from .reading_outcomes import kind
from .reading_schedule import TOPICS, Maker
from .schedule import Schedule

_COUNTS: Final = {name: count for name, (_, count) in TOPICS.items()}
#: names of a member's requests
_KINDS: Final = {
    SentKind.JOIN: "join", SentKind.SYNC: "sync", SentKind.HEARTBEAT: "heartbeat", SentKind.LEAVE: "leave",
}  # fmt: skip
_PASSES: Final = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_BACKS_OFF: Final = (MemberTimer.RETRY, MemberTimer.LOOKUP)


class _InGroup(Grouped):
    """``generation``: the last generation in an answer."""

    def __init__(self, seed: int, profile: Profile) -> None:
        self.generation = 0
        self.crowd = crowded(seed)
        super().__init__(seed, profile, Client.CLASSIC)

    @property
    def member(self) -> Member:
        member = self.consumer.member
        assert isinstance(member, Member)
        return member

    def make(self, length: int) -> Schedule:
        Maker._metadata(self)
        self._subscribe()
        while len(self.made.events) < length and not (self.reader.closed and self.consumer.stage is None):
            self._one()
        return self.made

    @property
    def cooperative(self) -> bool:
        return bool(self.made.settings["assignor"] == "cooperative-sticky")

    # --- what happens ---

    def _one(self) -> None:
        dice, member = self.dice, self.member
        if self.listens:
            if dice.random() < 0.1 and not self.reader.settings.auto_commit:  # a slow listener
                self.now += dice.choice((10, 500))
            # a listener that throws in unsubscribe would keep the member in the group
            throws = dice.random() < 0.06 and self.consumer.stage is not Stage.UNSUBSCRIBE
            error = "oops" if throws else None
            self._do(ListenerDone(self.now, error), {"kind": "listener", "error": error})
            return
        due = [each for each, at in armed(member).items() if at <= self.now]
        if any(at <= self.now for at in self.reader.deadlines.values()):
            super()._one()
        elif due:
            self._do(MemberTimerFired(self.now, due[0]), {"kind": "timer", "timer": due[0].value})
        elif self._sleeps():
            super()._one()
        elif member.coordinator.looking_up and dice.random() < 0.5:
            self._look_up()
        elif member.sent and dice.random() < 0.5:
            self._of_member(dice.choice(member.sent).request_id)
        else:
            super()._one()

    def _look_up(self) -> None:
        """Look up the coordinator. A fatal error goes to whichever half needs the coordinator next, so none is
        drawn."""
        if self._waits or self.dice.random() < 0.85:
            self._do(CoordinatorFound(self.now, node=0), {"kind": "found"})
        else:
            error = self.dice.choice((None, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            self._do(LookupFailed(self.now, error), {"kind": "lookup_failed", "error": error and int(error.value)})

    def _application(self) -> None:
        dice = self.dice
        if self.consumer.stage is not None:
            return
        waits = [at for each, at in self.member.deadlines.items() if each in _BACKS_OFF]
        waits += [lookup.retry_at for lookup in self.reader.lookups.values() if lookup.retry_at is not None]
        waits += [at for at in [self.reader.coordinator.retry_at] if at is not None]
        self.now = max([self.now, *waits])
        if any(at <= self.now for at in armed(self.member).values()):
            return
        chance = dice.random()
        if not self.member.subscription.subscribed or (chance < 0.02 and self.member.join is None):
            self._subscribe()
        elif chance < 0.55:
            self._poll()
        elif chance < 0.57:
            self._do(Unsubscribe(self.now), {"kind": "unsubscribe"})
        else:
            super()._application()

    def _close(self) -> None:
        """Close. Java's close first looks for an unknown coordinator, as long as there is time."""
        if self.member.coordinator.node is not None:
            super()._close()

    def _subscribe(self) -> None:
        """Subscribe. A cooperative member that drops a topic orders the rest by a hash table; so at most one
        remains."""
        topics = self.dice.choice((["a"], ["b"], ["a", "b"], ["a", "b"]))
        owned = self.member.subscription.owned
        if self.reader.buffer:  # dropping a topic drops its records, which reorders partitions
            topics = ["a", "b"]
        if self.cooperative and 1 < sum(each.topic in topics for each in owned) < len(owned):
            topics = ["a", "b"]
        self._do(Subscribe(self.now, frozenset(topics)), {"kind": "subscribe", "topics": topics})

    # --- answers ---

    def _network(self, number: int) -> None:
        """Lose a request. Requests to the coordinator are lost together, the member's too, the oldest first."""
        self._rolls(2 * number + 1, kind(self.reader.sent[number])[1] is None, lambda: self._answer(number))

    def _of_member(self, number: int) -> None:
        self._rolls(2 * number, True, lambda: self._answer_member(number))

    def _rolls(self, request_id: int, coordinator: bool, answers: Any) -> None:
        waits = coordinator and (self._waits or self._prepares)
        if self.dice.random() >= 0.05 or waits:
            answers()
            return
        self._lose(request_id, coordinator=coordinator)

    def _error(self, chance: float, errors: Iterable[ErrorCode]) -> ErrorCode:
        """Draw an error. While a call waits, the coordinator is not lost: the call's thread and the heartbeat thread
        would both look for it. A commit before a rejoin has no retriable error: Java backs off within its poll, which
        does not wait here."""
        error = super()._error(chance, errors)
        passes = error in ELSEWHERE or error in _PASSES
        held = (error in ELSEWHERE and self._waits) or (passes and self._prepares)
        return ErrorCode.NONE if held else error

    @property
    def _waits(self) -> bool:
        """Whether an application call waits, or the member's half of one."""
        return self.reader.waiting is not None or self.consumer.stage is not None

    @property
    def _prepares(self) -> bool:
        """Whether the commit before a rejoin, or that of a close, is in progress."""
        return self.member.prepare_commit is PrepareCommit.OPEN or self.consumer.stage is Stage.CLOSE

    def _place_of_member(self, number: int) -> list[Any]:
        sent = next(each for each in self.member.sent if each.request_id == number)
        alike = [each.request_id for each in self.member.sent if each.kind is sent.kind]
        return [_KINDS[sent.kind], "null", alike.index(number)]

    def _answer_member(self, number: int) -> None:
        dice = self.dice
        sent = next(each for each in self.member.sent if each.request_id == number)
        error = ErrorCode.NONE if dice.random() < 0.85 else dice.choice(GROUP_ERRORS)
        body: ResponseBody
        match sent.kind:
            case SentKind.JOIN:
                body = joined(dice, self.bodies[2 * number], error, self.generation, crowd=self.crowd)
                self.generation = max(self.generation, body.generation_id)
            case SentKind.SYNC:
                protocol = self.member.generation.protocol_name
                body = synced(dice, self.member.subscription.topics, _COUNTS, protocol, error)
            case SentKind.HEARTBEAT:
                body = HeartbeatResponse(error)
            case SentKind.LEAVE:
                body = LeaveGroupResponse(error)
        entry = {"kind": "answer", "of": self._place(2 * number), "error": int(error.value), **in_words(body)}
        self._do(Answered(self.now, request_id=2 * number, body=body), entry)


def schedule(seed: int, length: int, profile: Profile) -> Schedule:
    """Return the schedule of that seed, about ``length`` events, with the core's outcomes."""
    return _InGroup(seed, profile).make(length)
