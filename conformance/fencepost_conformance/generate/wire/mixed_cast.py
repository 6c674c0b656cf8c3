"""Clients of both protocols in the same groups over the wire, some classic, some of KIP-848; and requests that none of
them would send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final, TypeVar

from fencepost.protocol.consumer_messages import (
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.messages import JoinGroupResponse, RequestBody, ResponseBody

from ..clients import Client
from ..consumer_clients import ConsumerClient, ConsumerPhase
from ..consumer_plan import draw_consumer_plan
from ..mixed_clients import MixedClient, mixed_client
from ..plan import ClientPlan, ConsumerPlan, Plan
from . import classic_cast, consumer_cast
from .asking import Offer, Ranges
from .cast import Player, group_names, groups_apart, knowledge
from .offset_requests import CastWithOffsets
from .topics import Topics, topics_of

#: most clients are in the first group, so that both protocols meet in it
_TOGETHER: Final = 0.7
#: the requests of a trace between which KIP-848 clients take part
_EVER: Final = 1 << 30
_STAYS: Final = ((0, _EVER), (20, _EVER), (0, 30), (15, 35))

_Client = TypeVar("_Client", ClientPlan, ConsumerPlan)


class Part:
    """A client of KIP-848 that joins after so many requests of its trace and leaves after so many, so that the group
    changes its kind both ways; ``count`` is the number of requests so far."""

    def __init__(self, program: ConsumerClient, stays: range, count: Callable[[], int]) -> None:
        self._program, self._stays, self._count = program, stays, count

    @property
    def program(self) -> ConsumerClient:
        return self._program

    @property
    def plan(self) -> ConsumerPlan:
        return self._program.plan

    @property
    def silent(self) -> bool:
        return self._program.silent

    @silent.setter
    def silent(self, silent: bool) -> None:
        self._program.silent = silent

    def next_request(self, rng: Random, restart: float) -> tuple[int, RequestBody] | None:
        program, count = self._program, self._count()
        if count in self._stays:
            return program.next_request(rng, restart)
        if count < self._stays.start or program.phase is not ConsumerPhase.IN:
            return None
        version, body = program.leave(rng)
        assert isinstance(body, ConsumerGroupHeartbeatRequest)
        return version, replace(body, member_epoch=LEAVE_EPOCH)

    def sent(self, request_id: int, version: int, body: RequestBody) -> None:
        self._program.sent(request_id, version, body)

    def answered(self, request_id: int, body: ResponseBody) -> None:
        self._program.answered(request_id, body)


class MixedCast(CastWithOffsets):
    """Drawn from ``rng``; groups and topics are named after ``prefix``, groups after ``step`` too (``group_names``)."""

    def __init__(self, rng: Random, prefix: str, offer: Offer, step: int = 1) -> None:
        topics = topics_of(rng, prefix, offer)
        plan = draw_consumer_plan(rng, mixed=True)
        self.plan = _for_the_wire(plan, topics, rng, group_names(prefix, step), offer.ranges)
        self._classic = [mixed_client(client, rng) for client in self.plan.clients]
        for client in self._classic:
            client.sizes = topics.sizes
        self._consumers = [ConsumerClient(client) for client in self.plan.consumers]
        stays = range(*rng.choice(_STAYS))
        self._sent = 0
        parts = [Part(program, stays, lambda: self._sent) for program in self._consumers]
        self.clients: list[MixedClient | Part] = [*self._classic, *parts]
        programs: list[MixedClient | ConsumerClient] = [*self._classic, *self._consumers]
        self._around = knowledge(self.plan, programs, offer.nodes)
        super().__init__(offer, topics, self._around, groups_apart(prefix, offer.nodes))

    @property
    def groups(self) -> Sequence[str]:
        return self.plan.groups

    @property
    def restart(self) -> float:
        return self.plan.mood.restart

    @property
    def longest_s(self) -> float:
        """While a group is classic, joins wait for a rebalance timeout (C-JOIN-43)."""
        return classic_cast.LONGEST_S

    def as_sent(self, body: RequestBody) -> RequestBody:
        self._sent += 1
        return self.topics.as_sent(body)

    def aside(self, rng: Random, client: Player) -> tuple[int, RequestBody] | None:
        program = client.program if isinstance(client, Part) else client
        return self.offsets.by_member(rng, program) if isinstance(program, Client | ConsumerClient) else None

    def forged(self, rng: Random) -> tuple[int, RequestBody] | None:
        if (made := self.about_offsets(rng)) is not None:
            return made
        if rng.random() < 0.4:
            return classic_cast.forged(rng, self._around, rng.choice(self._classic), self.plan.mood.hostile)
        return consumer_cast.forged(rng, self._around, rng.choice(self._consumers))

    def parked(self, rng: Random) -> tuple[int, RequestBody] | None:
        return classic_cast.parked(rng, self._around, rng.choice(self._classic))

    def heard(self, body: ResponseBody) -> None:
        if isinstance(body, JoinGroupResponse | ConsumerGroupHeartbeatResponse) and body.member_id:
            self._around.known_ids.append(body.member_id)


def _for_the_wire(plan: Plan, topics: Topics, rng: Random, named: Callable[[int], str], ranges: Ranges) -> Plan:
    """Return the plan with the trace's own groups, and clients that a run can wait for. Classic subscriptions are
    encoded, so topics have their names on the broker from the beginning."""
    names = {name: named(number) for number, name in enumerate(plan.groups)}
    first = plan.groups[0]

    def placed(client: _Client) -> _Client:
        return replace(client, group_id=first) if rng.random() < _TOGETHER else client

    clients = []
    for each in map(placed, plan.clients):
        subscribes = tuple(map(topics.named, each.topics))
        own = replace(each, group_id=names[each.group_id], protocol_type="consumer", topics=subscribes)
        clients.append(classic_cast.on_the_wire(own, rng, ranges))
    consumers = consumer_cast.on_the_wire(map(placed, plan.consumers), names, rng, ranges)
    return replace(plan, groups=tuple(names.values()), clients=tuple(clients), consumers=consumers)
