"""Serve until a signal: what ``fencepost serve`` does, without its options."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from fencepost.aio import GroupCoordinator
from fencepost.functions import KafkaFunctions
from fencepost.protocol.choices import Functions
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.offset_messages import WriteTxnMarkerRequest
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.store import MemoryStore

from .data.journal import NoJournal
from .groups import Groups
from .node import Node
from .options import Address, Options
from .server import Server


@asynccontextmanager
async def hosted(setup: Setup, functions: Functions) -> AsyncIterator[Groups]:
    """The coordinators of a server."""
    async with _One(MemoryStore(), setup.settings, setup.profile, functions=functions) as groups:
        yield cast("Groups", groups)


class _One(GroupCoordinator):
    """One coordinator for all groups."""

    async def mark(self, partition: int, body: WriteTxnMarkerRequest) -> ResponseBody:
        return await self.request(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """All that a server needs. ``topics``: those to make if they are not there, with their partitions."""

    options: Options = field(default_factory=Options)
    settings: Settings = field(default_factory=Settings)
    profile: Profile = INTENDED
    topics: Mapping[str, int] = field(default_factory=dict)


async def serve(setup: Setup, ready: Callable[[Address, Node], None], until: asyncio.Event | None = None) -> None:
    """Serve until SIGTERM or SIGINT, or until that event. ``ready`` is called once clients may come."""
    stop = until or asyncio.Event()
    loop = asyncio.get_running_loop()
    if until is None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        groups = await stack.enter_async_context(hosted(setup, KafkaFunctions()))
        node = Node(replace(setup.options, offsets_partitions=1), setup.settings, groups, NoJournal())
        server = Server(node)
        address = await server.start(setup.topics)
        stack.push_async_callback(server.stop)
        ready(address, node)
        await stop.wait()
