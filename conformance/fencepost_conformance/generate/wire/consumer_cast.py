"""Clients of the consumer protocol (KIP-848) over the wire, and requests that none of them would send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from fencepost.protocol import consumer_messages as c
from fencepost.protocol.messages import RequestBody, ResponseBody

from .. import consumer_hostile, hostile
from ..consumer_clients import ConsumerClient
from ..consumer_plan import draw_consumer_plan
from ..plan import ConsumerPlan
from .asking import Offer, Ranges
from .cast import Player, group_names, groups_apart, knowledge
from .offset_requests import CastWithOffsets
from .topics import topics_of

_HEARTBEAT: Final = 68
_REBALANCE_TIMEOUTS: Final = (500, 2_000, 5_000, 60_000)


class ConsumerCast(CastWithOffsets):
    """Drawn from ``rng``; groups and topics are named after ``prefix``, groups after ``step`` too (``group_names``)."""

    def __init__(self, rng: Random, prefix: str, offer: Offer, step: int = 1) -> None:
        named = group_names(prefix, step)
        plan = draw_consumer_plan(rng, mixed=False)
        names = {name: named(number) for number, name in enumerate(plan.groups)}
        consumers = on_the_wire(plan.consumers, names, rng, offer.ranges)
        self.plan = replace(plan, groups=tuple(names.values()), consumers=consumers)
        self.clients = [ConsumerClient(client) for client in self.plan.consumers]
        self._around = knowledge(self.plan, self.clients, offer.nodes)
        super().__init__(offer, topics_of(rng, prefix, offer), self._around, groups_apart(prefix, offer.nodes))

    @property
    def groups(self) -> Sequence[str]:
        return self.plan.groups

    @property
    def restart(self) -> float:
        return self.plan.mood.restart

    @property
    def longest_s(self) -> float:
        """Return 0: heartbeats are answered at once."""
        return 0.0

    def as_sent(self, body: RequestBody) -> RequestBody:
        return self.topics.as_sent(body)

    def aside(self, rng: Random, client: Player) -> tuple[int, RequestBody] | None:
        return self.offsets.by_member(rng, client) if isinstance(client, ConsumerClient) else None

    def forged(self, rng: Random) -> tuple[int, RequestBody] | None:
        return self.about_offsets(rng) or forged(rng, self._around, rng.choice(self.clients))

    def parked(self, rng: Random) -> tuple[int, RequestBody] | None:
        """Return None: heartbeats are answered at once."""
        return None

    def heard(self, body: ResponseBody) -> None:
        if isinstance(body, c.ConsumerGroupHeartbeatResponse) and body.member_id:
            self._around.known_ids.append(body.member_id)


def forged(rng: Random, surroundings: consumer_hostile.Surroundings, client: ConsumerClient) -> tuple[int, RequestBody]:
    """Draw a request that no client of KIP-848 would send."""
    draw = rng.random()
    if draw < 0.5:
        return consumer_hostile.heartbeat(rng, surroundings, client)
    if draw < 0.8:
        return consumer_hostile.consumer_describe(rng, surroundings)
    if draw < 0.92:
        return hostile.list_groups(rng) if rng.random() < 0.4 else hostile.describe(rng, surroundings)
    return consumer_hostile.delete(rng, surroundings)


def on_the_wire(
    clients: Iterable[ConsumerPlan], names: Mapping[str, str], rng: Random, ranges: Ranges
) -> tuple[ConsumerPlan, ...]:
    """Return the clients with these groups ``names``, timeouts that a run can wait for, and the broker's versions."""
    low, high = ranges[_HEARTBEAT]
    return tuple(
        replace(
            client,
            group_id=names[client.group_id],
            rebalance_timeout_ms=rng.choice(_REBALANCE_TIMEOUTS),
            version=min(max(client.version, low), high),
        )
        for client in clients
    )
