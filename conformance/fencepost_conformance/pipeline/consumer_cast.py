"""Clients of the consumer protocol (KIP-848) over the wire, who forges their requests, and the topics they share.

Clients are those of random traces, and say ``orders`` where the broker is told of a topic of this trace alone: names
and regular expressions get the trace's prefix on their way. Topics are made before anybody joins, one comes later, and
one grows, so that the checker knows of each (``checker.consumer.topics``); in the end they are deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from fencepost.protocol import consumer_messages as c
from fencepost.protocol.messages import RequestBody, ResponseBody

from ..console import CannotRun
from ..generate import consumer_hostile, hostile
from ..generate.consumer_clients import ConsumerClient
from ..generate.consumer_plan import REGEXES, TOPICS, draw_consumer_plan
from ..generate.plan import ConsumerPlan
from .asking import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, Offer, Ranges
from .cast import AskPlain, around, group_names

_HEARTBEAT: Final = 68
_REBALANCE_TIMEOUTS: Final = (500, 2_000, 5_000, 60_000)
_NEW: Final = 4  #: how many topics there are at first; one more comes
_WITHIN_MS: Final = 10_000


class TraceTopics:
    """The topics of one trace, by the names that clients say; on the broker they have the trace's ``prefix``."""

    def __init__(self, rng: Random, prefix: str, offer: Offer) -> None:
        self._prefix = prefix
        self._newest = {key: high for key, (_, high) in offer.topics.items()}
        self._partitions = {name: rng.choice((1, 2, 3, 5)) for name in TOPICS[: _NEW + 1]}
        #: of those that are there, by their names on the broker
        self.sizes: dict[str, int] = {}

    def named(self, topic: str) -> str:
        return f"{self._prefix}-{topic}"

    async def set_up(self, ask: AskPlain) -> None:
        """Raises ``CannotRun`` if the broker refuses them: without any, nothing can be assigned."""
        await self._create(ask, TOPICS[:_NEW])

    async def meanwhile(self, ask: AskPlain, rng: Random) -> None:
        """A topic comes, one grows."""
        await asyncio.sleep(rng.uniform(0.2, 3.0))
        if rng.random() < 0.5:
            await self._create(ask, TOPICS[_NEW : _NEW + 1])
        if CREATE_PARTITIONS in self._newest and rng.random() < 0.5:
            name = rng.choice(TOPICS[:2])
            more = self._partitions[name] + rng.choice((1, 2))
            row = {"name": self.named(name), "count": more, "assignments": None}
            await ask("create_partitions", self._newest[CREATE_PARTITIONS], {"topics": [row], "timeout": _WITHIN_MS})
            self._partitions[name] = self.sizes[self.named(name)] = more

    async def clear_away(self, ask: AskPlain) -> None:
        """The topics go."""
        if DELETE_TOPICS in self._newest:
            names = [self.named(name) for name in self._partitions]
            await ask("delete_topics", self._newest[DELETE_TOPICS], {"topic_names": names, "timeout": _WITHIN_MS})

    async def _create(self, ask: AskPlain, names: Sequence[str]) -> None:
        if CREATE_TOPICS not in self._newest:
            raise CannotRun("the broker does not make topics (CreateTopics), which clients of groups need")
        rows = [
            {"name": self.named(name), "num_partitions": self._partitions[name], "replication_factor": 1}
            for name in names
        ]
        answer = await ask("create_topics", self._newest[CREATE_TOPICS], {"topics": rows, "timeout": _WITHIN_MS})
        for row in answer.topics:
            if row.error_code.value:
                said = getattr(row, "error_message", None) or row.error_code.name
                raise CannotRun(f"the broker does not make topic {row.name}, which clients of groups need: {said}")
        self.sizes |= {self.named(name): self._partitions[name] for name in names}

    def as_sent(self, body: RequestBody) -> RequestBody:
        """What is no regular expression, or has no end in sight, stays as it is."""
        if not isinstance(body, c.ConsumerGroupHeartbeatRequest):
            return body
        names, regex = body.subscribed_topic_names, body.subscribed_topic_regex
        return replace(
            body,
            subscribed_topic_names=None if names is None else tuple(map(self.named, names)),
            subscribed_topic_regex=self.named(regex) if regex in REGEXES else regex,
        )


class ConsumerCast:
    """Drawn from ``rng``; groups and topics are named after ``prefix``, groups after ``step`` too (``group_names``)."""

    def __init__(self, rng: Random, prefix: str, offer: Offer, step: int = 1) -> None:
        named = group_names(prefix, step)
        plan = draw_consumer_plan(rng, mixed=False)
        names = {name: named(number) for number, name in enumerate(plan.groups)}
        consumers = on_the_wire(plan.consumers, names, rng, offer.ranges)
        self.plan = replace(plan, groups=tuple(names.values()), consumers=consumers)
        self.clients = [ConsumerClient(client) for client in self.plan.consumers]
        topics = TraceTopics(rng, prefix, offer)
        self.set_up, self.meanwhile, self.clear_away = topics.set_up, topics.meanwhile, topics.clear_away
        self.as_sent = topics.as_sent
        self._around = around(self.plan, self.clients, offer.nodes)

    @property
    def groups(self) -> Sequence[str]:
        return self.plan.groups

    @property
    def restart(self) -> float:
        return self.plan.mood.restart

    @property
    def longest_s(self) -> float:
        """Heartbeats are answered at once."""
        return 0.0

    def forged(self, rng: Random) -> tuple[int, RequestBody]:
        return forged(rng, self._around, rng.choice(self.clients))

    def heard(self, body: ResponseBody) -> None:
        if isinstance(body, c.ConsumerGroupHeartbeatResponse) and body.member_id:
            self._around.known_ids.append(body.member_id)


def forged(rng: Random, surroundings: consumer_hostile.Surroundings, client: ConsumerClient) -> tuple[int, RequestBody]:
    """What no client of KIP-848 would send."""
    draw = rng.random()
    if draw < 0.5:
        return consumer_hostile.heartbeat(rng, surroundings, client)
    if draw < 0.8:
        return consumer_hostile.consumer_describe(rng, surroundings)
    return hostile.describe(rng, surroundings) if draw < 0.9 else consumer_hostile.delete(rng, surroundings)


def on_the_wire(
    clients: Iterable[ConsumerPlan], names: Mapping[str, str], rng: Random, ranges: Ranges
) -> tuple[ConsumerPlan, ...]:
    """With groups of these ``names``, timeouts that a run can wait for, and versions that the broker has."""
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
