"""The topics of a trace: created for it, or existing on the broker (``--topic``).

Clients of random traces use names such as ``orders`` and ``payments``. On the broker each name has the trace's prefix,
or is one of the given topics. Created topics are noted in the trace, so that the checker knows their ids and sizes
(``checker.consumer.topics``). One is created later, one grows, and all are deleted after the trace.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, Protocol
from uuid import UUID

from fencepost.protocol import consumer_messages as c
from fencepost.protocol.messages import RequestBody

from ...common.errors import CannotRun
from ..consumer_plan import REGEXES, TOPICS
from .asking import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, Offer
from .cast import AskPlain

_WITHIN_MS: Final = 10_000
#: the newest version of Metadata that the suite supports
_NEWEST_METADATA: Final = 13
#: how often Metadata is requested until it contains new topics, and the pause in seconds
_TRIES, _AGAIN_S = 100, 0.1


class Topics(Protocol):
    """``sizes``, ``ids``: of the existing topics, by their names on the broker; some ids may be unknown."""

    sizes: dict[str, int]
    ids: dict[str, bytes]

    def named(self, topic: str) -> str:
        """Return the broker's name of a client's ``topic``."""

    def as_sent(self, body: RequestBody) -> RequestBody:
        """Return a request with the broker's topic names."""

    async def set_up(self, ask: AskPlain) -> None:
        """Prepare before a client joins. Raises ``CannotRun``."""

    async def meanwhile(self, ask: AskPlain, rng: Random) -> None:
        """Change topics during the trace."""

    async def clear_away(self, ask: AskPlain) -> None:
        """Clean up after the trace."""


class _Named(ABC):
    """The common part of created and given topics: the translation of subscriptions."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.ids: dict[str, bytes] = {}

    @abstractmethod
    def named(self, topic: str) -> str:
        """Return the broker's name of a client's ``topic``."""

    @abstractmethod
    def regex(self, regex: str) -> str:
        """Return the broker's expression for a client's ``regex``, which is one of those of random traces."""

    def as_sent(self, body: RequestBody) -> RequestBody:
        """Translate a request; expressions of other origin stay, since they are malformed on purpose."""
        if not isinstance(body, c.ConsumerGroupHeartbeatRequest):
            return body
        names, regex = body.subscribed_topic_names, body.subscribed_topic_regex
        return replace(
            body,
            subscribed_topic_names=None if names is None else self._all_named(names),
            subscribed_topic_regex=self.regex(regex) if regex in REGEXES else regex,
        )

    def _all_named(self, names: Sequence[str]) -> tuple[str, ...]:
        """Merge different names of one given topic; a name that a client repeats stays repeated."""
        firsts: dict[str, str] = {}
        return tuple(broker for name in names if firsts.setdefault(broker := self.named(name), name) == name)


class CreatedTopics(_Named):
    """Topics of one trace, on the broker with its ``prefix``; ``count`` of them at first, and one more may follow."""

    def __init__(self, rng: Random, prefix: str, offer: Offer, count: int = 4) -> None:
        super().__init__()
        self._prefix, self._count = prefix, count
        self._newest = {key: high for key, (_, high) in offer.topics.items()}
        self._metadata = offer.metadata
        self._partitions = {name: rng.choice((1, 2, 3, 5)) for name in TOPICS[: count + 1]}

    def named(self, topic: str) -> str:
        return f"{self._prefix}-{topic}"

    def regex(self, regex: str) -> str:
        return self.named(regex)

    async def set_up(self, ask: AskPlain) -> None:
        """Create topics. Raises ``CannotRun`` if the broker does not: without topics nothing can be assigned."""
        await self._create(ask, TOPICS[: self._count])

    async def meanwhile(self, ask: AskPlain, rng: Random) -> None:
        """Create one topic, and let one grow."""
        await asyncio.sleep(rng.uniform(0.2, 3.0))
        if rng.random() < 0.5:
            await self._create(ask, TOPICS[self._count : self._count + 1])
        if CREATE_PARTITIONS in self._newest and rng.random() < 0.5:
            name = rng.choice(TOPICS[:2])
            more = self._partitions[name] + rng.choice((1, 2))
            row = {"name": self.named(name), "count": more, "assignments": None}
            await ask("create_partitions", self._newest[CREATE_PARTITIONS], {"topics": [row], "timeout": _WITHIN_MS})
            self._partitions[name] = self.sizes[self.named(name)] = more

    async def clear_away(self, ask: AskPlain) -> None:
        """Delete the topics."""
        if DELETE_TOPICS in self._newest and self.sizes:
            names = [*self.sizes]
            await ask("delete_topics", self._newest[DELETE_TOPICS], {"topic_names": names, "timeout": _WITHIN_MS})

    async def _create(self, ask: AskPlain, names: Sequence[str]) -> None:
        rows = [
            {"name": self.named(name), "num_partitions": self._partitions[name], "replication_factor": 1}
            for name in names
        ]
        answer = await ask("create_topics", self._newest[CREATE_TOPICS], {"topics": rows, "timeout": _WITHIN_MS})
        for row in answer.topics:
            if row.error_code.value:
                said = getattr(row, "error_message", None) or row.error_code.name
                raise CannotRun(f"the broker does not create topic {row.name}, which clients of groups need: {said}")
            _keep_id(self.ids, str(row.name), row)
        await self._visible(ask, [self.named(name) for name in names])
        self.sizes |= {self.named(name): self._partitions[name] for name in names}

    async def _visible(self, ask: AskPlain, names: Sequence[str]) -> None:
        """Wait until the broker knows the topics that it has created: a busy broker needs seconds."""
        for _ in range(_TRIES):
            answer = await _described(ask, self._metadata, names)
            if all(row.error_code.value == 0 and row.partitions for row in answer.topics):
                return
            await asyncio.sleep(_AGAIN_S)


class GivenTopics(_Named):
    """Existing topics of the broker. Traces neither change nor delete them; all traces of a run share them."""

    def __init__(self, names: Sequence[str], prefix: str, metadata: tuple[int, int]) -> None:
        super().__init__()
        self._names, self._prefix = names, prefix
        self._metadata = metadata

    def named(self, topic: str) -> str:
        if topic not in TOPICS:
            return f"{self._prefix}-{topic}"  # it does not exist, on purpose
        return self._names[TOPICS.index(topic) % len(self._names)]

    def regex(self, regex: str) -> str:
        """Return an expression for one of them, and for topics whose names begin alike."""
        return f"{re.escape(self._names[REGEXES.index(regex) % len(self._names)])}.*"

    async def set_up(self, ask: AskPlain) -> None:
        """Request their sizes and ids. Raises ``CannotRun`` for one that does not exist."""
        answer = await _described(ask, self._metadata, self._names)
        for row in answer.topics:
            if row.error_code.value:
                raise CannotRun(f"--topic {row.name}: the broker has no such topic ({row.error_code.name})")
            self.sizes[str(row.name)] = len(row.partitions)
            _keep_id(self.ids, str(row.name), row)

    async def meanwhile(self, ask: AskPlain, rng: Random) -> None:
        """Do nothing: the topics stay as they are."""

    async def clear_away(self, ask: AskPlain) -> None:
        """They stay."""


class NoTopics(_Named):
    """For a broker that creates no topics, if none are given; offsets are then not tested."""

    def named(self, topic: str) -> str:
        return topic

    def regex(self, regex: str) -> str:
        return regex

    async def set_up(self, ask: AskPlain) -> None:
        """Nothing."""

    async def meanwhile(self, ask: AskPlain, rng: Random) -> None:
        """Nothing."""

    async def clear_away(self, ask: AskPlain) -> None:
        """Nothing."""


async def _described(ask: AskPlain, versions: tuple[int, int], names: Sequence[str]) -> Any:
    """Return the answer to Metadata for these topics."""
    wanted = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
    return await ask("metadata", min(versions[1], _NEWEST_METADATA), wanted)


def _keep_id(ids: dict[str, bytes], name: str, row: object) -> None:
    topic_id = getattr(row, "topic_id", None)
    if isinstance(topic_id, UUID):
        ids[name] = topic_id.bytes


def topics_of(rng: Random, prefix: str, offer: Offer, count: int = 4) -> Topics:
    """Return the given topics if there are any, else topics of this trace, if the broker creates some."""
    if offer.given:
        return GivenTopics(offer.given, prefix, offer.metadata)
    return CreatedTopics(rng, prefix, offer, count) if CREATE_TOPICS in offer.topics else NoTopics()
