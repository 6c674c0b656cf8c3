"""The common part of random schedules of consumers that read in groups of either protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

from fencepost.member.events import Listener, ListenerDone, MetadataChanged, RequestLost, RequestMetadata, Send
from fencepost.protocol.events import Topic
from fencepost.protocol.profile import Profile
from fencepost_consumer.consumer import ConsumerCommand, ConsumerEvent
from fencepost_consumer.events import LeadersChanged, NeverArrived
from fencepost_consumer.settings import Client

from .consumer_answers import topic_id
from .reading_outcomes import kind
from .reading_schedule import TOPICS, Maker, known

_CLUSTER: Final = tuple(Topic(name, topic_id(number), count) for name, (number, count) in TOPICS.items())


class Grouped(Maker, ABC):
    """``listens``: the listener runs; ``sent_at``: sending order by request id."""

    def __init__(self, seed: int, profile: Profile, client: Client) -> None:
        self.listens = False
        self.sent_at: dict[int, int] = {}
        super().__init__(seed, profile, client, in_group=True)

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
        """Deliver requested metadata at once, to both halves. They cover the topics that the member watches and those
        whose end of log is asked for. Topics without a subscription are not covered, even if the member still owns
        some."""
        watched = self.consumer.member.subscription.watched | self.reader.transient_topics
        kept = {each: at for each, at in self.leaders.items() if each.topic in watched}
        cluster = tuple(each for each in _CLUSTER if each.name in watched)
        return MetadataChanged(self.now, cluster), LeadersChanged(self.now, known(kept), self._ids())

    def _metadata(self) -> None:
        """Do nothing: leaders move in the schedules of manually assigned partitions."""

    def _assign(self) -> None:
        """Poll instead: partitions come from the group."""
        self._poll()

    # --- requests: the member's have even ids, the reader's odd ones ---

    def _lose(self, request_id: int, *, coordinator: bool) -> None:
        """Lose a request. Requests to the coordinator are lost together, of both halves, the oldest first."""
        if coordinator:
            own = [2 * each.request_id for each in self.consumer.member.sent]
            own += [2 * each + 1 for each, sent in self.reader.sent.items() if kind(sent)[1] is None]
            request_id = min(own, key=self.sent_at.__getitem__)
        entry = {"kind": "lost", "of": self._place(request_id)}
        lost = NeverArrived if request_id % 2 else RequestLost
        self._do(lost(self.now, request_id=request_id), entry)

    def _place(self, request_id: int) -> list[Any]:
        """Like ``_placed``, for a request of either half."""
        if request_id % 2:
            return self._placed(request_id // 2)
        return self._place_of_member(request_id // 2)

    @abstractmethod
    def _place_of_member(self, number: int) -> list[Any]:
        """Describe the member's request; each protocol has its own kinds."""
