"""Connections to the brokers of a cluster. Each opens on first use, and again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any

from fencepost.wire.frames import MalformedFrame
from fencepost.work.link import Unsupported

from ...common.addresses import Address
from ...common.errors import CannotRun
from .access import OPEN, Access
from .questions import Questions, questions

#: the errors of a request that did not get an answer which can be read
Failed = (OSError, MalformedFrame)
_METADATA = (4, 12)


class Brokers:
    """The brokers of the cluster at ``at``. ``nodes``: their addresses by node id, once ``topics`` has returned."""

    def __init__(self, at: Address, access: Access = OPEN) -> None:
        self.at = at
        self.nodes: dict[int, Address] = {}
        self._access = access
        self._open: dict[Address, tuple[Questions, AsyncExitStack]] = {}

    async def topics(self, names: Iterable[str]) -> tuple[Any, ...]:
        """Return kio's rows of these topics from Metadata, and renew ``nodes``; any broker that responds is asked.
        Raises the ``Failed`` of the last broker."""
        rows = [{"name": name, "topic_id": None} for name in names]
        failed: Exception | None = None
        for at in dict.fromkeys([self.at, *self.nodes.values()]):
            try:
                broker = await self._to(at)
                answer = await broker.ask("metadata", *_METADATA, topics=rows, allow_auto_topic_creation=False)
            except Unsupported:
                raise
            except Failed as wrong:
                failed = failed or wrong
                continue
            self.nodes = {int(each.node_id): Address(str(each.host), int(each.port)) for each in answer.brokers}
            return tuple(answer.topics)
        assert failed is not None
        raise failed

    async def node(self, number: int) -> Questions:
        """Return a connection to a broker by its node id. Raises ``OSError``."""
        if number not in self.nodes:
            raise ConnectionError("the partition has no leader" if number < 0 else f"broker {number} is not known")
        return await self._to(self.nodes[number])

    async def _to(self, at: Address) -> Questions:
        found = self._open.get(at)
        if found is not None and not found[0].broken:
            return found[0]
        if found is not None:
            await self._open.pop(at)[1].aclose()
        stack = AsyncExitStack()
        broker = await stack.enter_async_context(questions(at.host, at.port, self._access))
        self._open[at] = broker, stack
        return broker

    async def close(self) -> None:
        """Close all connections."""
        stacks = [stack for _, stack in self._open.values()]
        self._open.clear()
        await asyncio.gather(*[each.aclose() for each in stacks], return_exceptions=True)


async def require_topics(brokers: Brokers, names: Iterable[str]) -> tuple[Any, ...]:
    """Return ``brokers.topics(names)``. Raises ``CannotRun`` if no broker responds."""
    try:
        return await brokers.topics(names)
    except Failed as wrong:
        raise CannotRun(f"{brokers.at}: {wrong}") from None
