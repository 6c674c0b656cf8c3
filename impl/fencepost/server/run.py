"""Serve until a signal: what ``fencepost serve`` does, without its options."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fencepost.aio import GroupBroker
from fencepost.aio.coordinator import wall_clock_ms
from fencepost.functions import KafkaFunctions
from fencepost.protocol.choices import Functions
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.store import SharedMemoryStore, SharedStore, SQLiteStore

from .choices import KafkaChoices
from .dispatch import Dispatch
from .faults import Hostile, Plan
from .faults.hostile import FailingStore
from .net.connection import Answer
from .node import Node
from .observe.http import StatusPort
from .observe.metrics import Metrics
from .observe.rebalances import Rebalance, Rebalances
from .observe.status import pages
from .observe.watched import Watched
from .options import Address, Options
from .restore import restore
from .security.acl import Acl
from .security.sasl import Users
from .server import Server

_log = logging.getLogger(__name__)

#: in the folder that is given
FILE: Final = "fencepost.db"


@asynccontextmanager
async def hosted(setup: Setup, store: SharedStore, functions: Functions) -> AsyncIterator[GroupBroker]:
    """The coordinators of a server."""
    choices = KafkaChoices(hyphens=not setup.profile.draws_no_hyphens)
    async with GroupBroker(
        store,
        setup.settings,
        setup.profile,
        choices=choices,
        functions=functions,
    ) as groups:
        yield groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """All that a server needs. ``topics``: those to make if they are not there, with their partitions. ``data``: the
    folder in which everything is kept; None: in memory. ``status``: where numbers and a page are served, if any.
    ``faults``: what is to go wrong, if anything. ``flush``: what is acknowledged is on the disk, not only with the
    system."""

    data: Path | None = None
    flush: bool = True

    options: Options = field(default_factory=Options)
    settings: Settings = field(default_factory=Settings)
    profile: Profile = INTENDED
    topics: Mapping[str, int] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    users: Users | None = None
    acl: Acl = field(default_factory=Acl)
    status: Address | None = None
    faults: Plan | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """Where a server listens, and what it has."""

    listen: Address
    status: Address | None
    node: Node


def opened(setup: Setup) -> SharedStore:
    """Where everything is kept. Raises ``OSError`` for a folder that cannot be made."""
    partitions = setup.options.offsets_partitions
    if setup.data is None:
        return SharedMemoryStore(partitions)
    setup.data.mkdir(parents=True, exist_ok=True)
    return SQLiteStore(setup.data / FILE, partitions, flush=setup.flush)


async def serve(setup: Setup, ready: Callable[[Ready], None], until: asyncio.Event | None = None) -> None:
    """Serve until SIGTERM or SIGINT, or until that event. ``ready`` is called once clients may come. Raises ``OSError``
    if an address or a folder cannot be had, ``StoreError`` for a store that cannot be used."""
    stop = until or asyncio.Event()
    loop = asyncio.get_running_loop()
    if until is None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
    metrics = Metrics()
    rebalances = Rebalances(wall_clock_ms, _tell)
    async with AsyncExitStack() as stack:
        store = opened(setup)
        await store.open()
        stack.push_async_callback(store.close)
        written = store if setup.faults is None else FailingStore(store, setup.faults)
        groups = await stack.enter_async_context(hosted(setup, written, KafkaFunctions()))
        node = Node(
            setup.options,
            setup.settings,
            Watched(groups, rebalances),
            store,
            acl=setup.acl,
            users=setup.users,
        )
        await restore(node)
        server = Server(node, tls=setup.tls, observe=metrics.observe, between=hostile(setup.faults, stack, groups))
        address = await server.start(setup.topics)
        stack.push_async_callback(server.stop)
        status = None
        if setup.status is not None:
            port = StatusPort(pages(server, metrics, rebalances, setup.profile.name))
            status = await port.start(setup.status)
            stack.push_async_callback(port.stop)
        ready(Ready(address, status, node))
        await stop.wait()
        _log.info("ending: %s connections are open", len(server.listener.connections))


def hostile(plan: Plan | None, stack: AsyncExitStack, groups: GroupBroker) -> Callable[[Dispatch], Answer]:
    """What makes a server misbehave as a plan says; without a plan nothing does."""

    def between(dispatch: Dispatch) -> Answer:
        if plan is None:
            return dispatch
        faults = Hostile(dispatch, plan)
        moving = asyncio.get_running_loop().create_task(faults.moves(groups))
        stack.callback(moving.cancel)
        stack.callback(lambda: _log.info("faults: %s", dict(faults.done)))
        return faults

    return between


def _tell(seen: Rebalance) -> None:
    _log.info("group %s (%s) is at %s: %s", seen.group_id, seen.protocol, seen.generation, seen.cause)
