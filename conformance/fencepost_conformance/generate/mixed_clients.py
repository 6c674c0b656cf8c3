"""A client program of the classic protocol whose group may become a consumer group: what it says can be read.

The broker passes the bytes of subscriptions and assignments on unread until a group changes its protocol (X-UP-05,
X-JOIN-10). So here a leader assigns partitions, a cooperative member reports what it owns, and an eager one owns
nothing when it joins. A few write bytes that nobody can read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from fencepost.protocol import messages as m
from fencepost.protocol.embedded import (
    Assignment,
    SchemaError,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import Protocol, RequestBody, ResponseBody
from fencepost.protocol.partitions import TopicPartition

from .clients import Client
from .plan import ClientPlan

_COOPERATIVE = "cooperative-sticky"
_VERSIONS = (0, 1, 1, 2, 3, 3, 3)


@dataclass(slots=True)
class MixedClient(Client):
    """``version``: of its subscriptions and assignments. ``reports``: the protocols under which it says what it owns.
    ``garbled``: the place of the one that it offers with bytes that say nothing (X-SYNC-07, X-DOWN-09). ``owned``:
    what it was assigned last. ``sizes``: how many partitions each topic has, which the host keeps up to date."""

    version: int = 3
    reports: tuple[str, ...] = ()
    garbled: int | None = None
    owned: tuple[TopicPartition, ...] = ()
    sizes: dict[str, int] = field(default_factory=dict)

    def restart(self, rng: Random) -> None:
        """It may come back believing that it owns what it did (X-JOIN-23)."""
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
        return Protocol(
            name, encode_subscription(Subscription(self.plan.topics, user_data, owned, self.generation), self.version)
        )

    def sync(self, rng: Random) -> tuple[int, RequestBody]:
        version, body = Client.sync(self, rng)
        assert isinstance(body, m.SyncGroupRequest)
        if self.plan.protocol_type != "consumer" or rng.random() < 0.1:
            return version, body
        topics = self.plan.topics
        partitions = [TopicPartition(topic, each) for topic in topics for each in range(self.sizes.get(topic, 0))]
        count = len(body.assignments)
        shares = [partitions[n::count] for n in range(count)]
        if count > 1 and rng.random() < 0.05:
            shares[0] = shares[1]  # one partition for two (X-UP-06)
        user_data = b"custom" if rng.random() < 0.05 else None  # X-UP-02
        rows = tuple(
            replace(row, assignment=encode_assignment(Assignment(tuple(share), user_data), self.version))
            for row, share in zip(body.assignments, shares, strict=True)
        )
        return version, replace(body, assignments=rows)

    def answered(self, request_id: int, body: ResponseBody) -> None:
        counts = request_id == self.waiting_for
        Client.answered(self, request_id, body)
        if counts and isinstance(body, m.SyncGroupResponse) and body.error_code is ErrorCode.NONE:
            try:
                self.owned = decode_assignment(body.assignment).partitions
            except SchemaError:
                self.owned = ()


def mixed_client(plan: ClientPlan, rng: Random) -> MixedClient:
    """The client of this plan, with its ways of its own."""
    return MixedClient(
        plan,
        version=rng.choice(_VERSIONS),
        reports=rng.choice(((), (_COOPERATIVE,), plan.protocols)),
        garbled=rng.choice((0, 1)) if rng.random() < 0.1 else None,
    )
