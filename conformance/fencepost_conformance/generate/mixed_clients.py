"""A classic client program whose group may become a consumer group, so that the broker reads its bytes.

The broker passes on the bytes of subscriptions and assignments unread until a group changes its protocol (X-UP-05,
X-JOIN-10). So here a leader assigns partitions, a cooperative member reports what it owns, and an eager one owns
nothing when it joins. A client that loses its partitions forgets them. A few write unreadable bytes, report another
generation than theirs, or claim partitions that they do not own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

from fencepost.protocol import messages as m
from fencepost.protocol.embedded import (
    NO_GENERATION,
    Assignment,
    SchemaError,
    Subscription,
    decode_assignment,
    encode_assignment,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import Protocol, RequestBody, ResponseBody
from fencepost.protocol.partitions import TopicPartition

from .clients import Client
from .plan import ClientPlan, encoded

_COOPERATIVE = "cooperative-sticky"
_VERSIONS = (0, 1, 1, 2, 3, 3, 3)
_LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


class GenerationClaim(Enum):
    """The generation and the owned partitions in a subscription."""

    TRUTH = "truth"
    NO_GENERATION = "no generation"  #: as librdkafka does with its eager assignors
    PREVIOUS = "previous"  #: the previous generation
    LESS = "less"  #: the owned partitions but one
    MORE = "more"  #: the owned partitions, and some that others may own


@dataclass(slots=True)
class MixedClient(Client):
    """``version``: of its subscriptions and assignments. ``reports``: protocols under which it reports owned
    partitions. ``garbled``: position of the protocol that it offers with unreadable bytes (X-SYNC-07, X-DOWN-09).
    ``owned``: its last assignment. ``previous``: the previous generation. ``claim``: how its next JoinGroup reports
    both. ``sizes``: number of partitions by topic, which the host keeps up to date."""

    version: int = 3
    reports: tuple[str, ...] = ()
    garbled: int | None = None
    owned: tuple[TopicPartition, ...] = ()
    previous: int = NO_GENERATION
    claim: GenerationClaim = GenerationClaim.TRUTH
    sizes: dict[str, int] = field(default_factory=dict)

    def next_request(self, rng: Random, restart: float) -> tuple[int, RequestBody] | None:
        self.claim = rng.choice([*GenerationClaim][1:]) if rng.random() < 0.12 else GenerationClaim.TRUTH
        return Client.next_request(self, rng, restart)

    def restart(self, rng: Random) -> None:
        """Restart; it may still believe to own its partitions (X-JOIN-23)."""
        Client.restart(self, rng)
        if rng.random() < 0.6:
            self.owned = ()

    def join(self) -> tuple[int, RequestBody]:
        version, body = Client.join(self)
        assert isinstance(body, m.JoinGroupRequest)
        if self.plan.protocol_type != "consumer":
            return version, body
        return version, replace(body, protocols=tuple(self._offer(place) for place in range(len(self.plan.protocols))))

    def _offer(self, place: int) -> Protocol:
        name = self.plan.protocols[place]
        if place == self.garbled:
            return Protocol(name, b"")
        owned = self.owned if name in self.reports else ()
        user_data = self.round.to_bytes(4, "big") if self.round else None
        generation = self.generation
        match self.claim:
            case GenerationClaim.NO_GENERATION:
                generation = NO_GENERATION
            case GenerationClaim.PREVIOUS:
                generation = self.previous
            case GenerationClaim.LESS:
                owned = owned[1:]
            case GenerationClaim.MORE:
                owned = tuple(dict.fromkeys((*owned, *self._all())))
        return Protocol(name, encoded(Subscription(self.plan.topics, user_data, owned, generation), self.version))

    def _all(self) -> list[TopicPartition]:
        return [TopicPartition(topic, each) for topic in self.plan.topics for each in range(self.sizes.get(topic, 0))]

    def sync(self, rng: Random) -> tuple[int, RequestBody]:
        version, body = Client.sync(self, rng)
        assert isinstance(body, m.SyncGroupRequest)
        if self.plan.protocol_type != "consumer" or rng.random() < 0.1:
            return version, body
        partitions = self._all()
        count = len(body.assignments)
        shares = [partitions[n::count] for n in range(count)]
        if count > 1 and rng.random() < 0.05:
            shares[0] = shares[1]  # one partition for two members (X-UP-06)
        user_data = b"custom" if rng.random() < 0.05 else None  # X-UP-02
        rows = tuple(
            replace(row, assignment=encode_assignment(Assignment(tuple(share), user_data), self.version))
            for row, share in zip(body.assignments, shares, strict=True)
        )
        return version, replace(body, assignments=rows)

    def answered(self, request_id: int, body: ResponseBody) -> None:
        counts, before = request_id == self.waiting_for, self.generation
        Client.answered(self, request_id, body)
        if self.generation != before:
            self.previous = before
        if not counts:
            return
        if isinstance(body, m.JoinGroupResponse | m.SyncGroupResponse | m.HeartbeatResponse) and (
            body.error_code in _LOST
        ):
            self.owned = ()
        elif isinstance(body, m.SyncGroupResponse) and body.error_code is ErrorCode.NONE:
            try:
                self.owned = decode_assignment(body.assignment).partitions
            except SchemaError:
                self.owned = ()


def mixed_client(plan: ClientPlan, rng: Random) -> MixedClient:
    """Return the client of this plan, with random habits."""
    return MixedClient(
        plan,
        version=rng.choice(_VERSIONS),
        reports=rng.choice(((), (_COOPERATIVE,), plan.protocols)),
        garbled=rng.choice((0, 1)) if rng.random() < 0.1 else None,
    )
