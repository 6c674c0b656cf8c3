"""The run of a server until a signal: ``fencepost serve`` without its command line."""

from __future__ import annotations

import asyncio
import base64
import logging
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

from fencepost.aio import GroupBroker, RandomChoices
from fencepost.aio.engine import Watcher
from fencepost.codec import LAYOUTS, NEWEST
from fencepost.functions import KafkaFunctions
from fencepost.protocol.choices import Functions
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.store import MemoryStore, PostgresLease, PostgresStore, SQLiteStore, Store
from fencepost_server.cluster.member import Member, look
from fencepost_server.data.offsets_topic import OffsetsTopic
from fencepost_server.dispatch import Dispatch
from fencepost_server.faults import Hostile, Plan
from fencepost_server.faults.hostile import FailingStore
from fencepost_server.groups import Away, Groups
from fencepost_server.net.connection import Answer
from fencepost_server.net.port import Port
from fencepost_server.node import Node
from fencepost_server.observe.groups import CommitWatcher, GroupCounts
from fencepost_server.observe.http import StatusPort
from fencepost_server.observe.metrics import Metrics
from fencepost_server.observe.rebalances import Rebalances
from fencepost_server.observe.status import pages
from fencepost_server.options import LABELLED_GROUPS, Address, Options
from fencepost_server.restore import restore
from fencepost_server.security.acl import Acl
from fencepost_server.security.sasl import Users
from fencepost_server.server import Server

_log = logging.getLogger(__name__)

#: the name of the SQLite file in the folder of ``--data``
FILE: Final = "fencepost.db"
#: The number of partitions of a new offsets topic, as in Kafka.
OFFSETS_PARTITIONS: Final = 50


class KafkaChoices(RandomChoices):
    """Choices whose member ids of consumer groups have Kafka's text form (G-WIRE-28). ``hyphens``: an id may contain
    hyphens, but does not begin with one; otherwise it has none."""

    def __init__(self, *, hyphens: bool) -> None:
        self._hyphens = hyphens

    def uuid(self) -> str:
        while True:
            text = base64.urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
            if not (text.startswith("-") if self._hyphens else "-" in text):
                return text


@asynccontextmanager
async def hosted(
    setup: Setup, store: Store, functions: Functions, watchers: Iterable[Watcher] = ()
) -> AsyncIterator[GroupBroker]:
    """Run the coordinators of a server. The ``watchers`` see all their steps, loads included."""
    choices = KafkaChoices(hyphens=not setup.profile.draws_no_hyphens)
    groups = GroupBroker(store, setup.settings, setup.profile, choices=choices, functions=functions)
    for each in watchers:
        groups.watch(each)
    async with groups:
        yield groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The configuration of a server. Without ``data`` and ``database``, all data is in memory.

    Args:
        data: the folder for all data.
        flush: acknowledge a write only when it is on the disk, not already when the operating system has it.
        database: the URL of a PostgreSQL database that several nodes share, each with another ``options.node_id``.
        lease_s: another node takes over when the leader has not renewed its lease for so many seconds.
        options: addresses, numbers and limits.
        settings: the settings of the coordinators.
        profile: the profile of the coordinators.
        topics: topics to create if they do not exist, with their numbers of partitions.
        tls: the TLS context; None: no TLS.
        users: the users that may log in; None: clients need no login.
        acl: the access rights.
        status: the address of the status port; None: no status port.
        metric_groups: how many groups get their own label in /metrics; the others are summed.
        faults: the faults to inject.
        port: an open port to accept connections from, instead of listening on ``options.listen``.
    """

    data: Path | None = None
    flush: bool = True
    database: str | None = None
    lease_s: float = 6.0
    options: Options = field(default_factory=Options)
    settings: Settings = field(default_factory=Settings)
    profile: Profile = INTENDED
    topics: Mapping[str, int] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    users: Users | None = None
    acl: Acl = field(default_factory=Acl)
    status: Address | None = None
    metric_groups: int = LABELLED_GROUPS
    faults: Plan | None = None
    port: Port | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """The addresses of a server that is ready, and its node."""

    listen: Address
    status: Address | None
    node: Node


def opened(setup: Setup) -> Store:
    """Create the store for this configuration. Raises ``OSError`` if its folder cannot be created."""
    partitions = setup.options.offsets_partitions
    if setup.database is not None:
        return PostgresStore(setup.database, partitions, new_partitions=OFFSETS_PARTITIONS)
    if setup.data is None:
        return MemoryStore(partitions or OFFSETS_PARTITIONS)
    setup.data.mkdir(parents=True, exist_ok=True)
    return SQLiteStore(setup.data / FILE, partitions, new_partitions=OFFSETS_PARTITIONS, flush=setup.flush)


async def serve(setup: Setup, ready: Callable[[Ready], None], until: asyncio.Event | None = None) -> None:
    """Serve until SIGTERM or SIGINT, or until the event ``until``. ``ready`` is called once the server answers. Raises
    ``OSError`` if an address or a folder cannot be used, and ``StoreError`` if the store cannot."""
    stop = until or asyncio.Event()
    loop = asyncio.get_running_loop()
    if until is None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
    metrics = Metrics()
    rebalances = Rebalances(GroupCounts(setup.metric_groups))
    async with AsyncExitStack() as stack:
        store = opened(setup)
        partitions = await store.open()
        stack.push_async_callback(store.close)
        run = Run(setup, store, partitions, stack, metrics, rebalances, ready)
        await (run.alone(stop) if setup.database is None else run.shared(setup.database, stop))


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a server, over an open store."""

    setup: Setup
    store: Store
    partitions: int
    stack: AsyncExitStack
    metrics: Metrics
    rebalances: Rebalances
    ready: Callable[[Ready], None]

    async def alone(self, stop: asyncio.Event) -> None:
        """Serve as the only node."""
        plan = self.setup.faults
        groups = await self._hosted(self.store if plan is None else FailingStore(self.store, plan))
        node = self._node(groups)
        await restore(node)
        between = hostile(plan, self.stack, groups)
        server = Server(node, tls=self.setup.tls, observe=self.metrics.observe, between=between, port=self.setup.port)
        address = await server.start(self.setup.topics)
        self.stack.push_async_callback(server.stop)
        await self._report_ready(server, address)
        await stop.wait()
        _log.info("stopping: %s open connections", len(server.listener.connections))

    async def shared(self, database: str, stop: asyncio.Event) -> None:
        """Serve as one of several nodes on a database: stand by, and lead when no node does. Raises ``LeaseLost``."""
        lease = PostgresLease(database, self.setup.options.node_id, self.setup.lease_s)
        self.stack.push_async_callback(lease.close)
        node = self._node(Away(self.partitions))
        node.leads, node.leader_id = False, None
        node.transactions.ids = lease.producer_id
        server = Server(node, tls=self.setup.tls, observe=self.metrics.observe, port=self.setup.port)
        await lease.open()
        await look(node, lease)  # before listening, so that no existing topic is reported as unknown
        address = await server.listen()
        self.stack.push_async_callback(server.stop)
        at = self.setup.options.advertised or address
        await lease.join(at.host, at.port or address.port)

        async def lead(epoch: int, fenced: asyncio.Event) -> Node:
            groups = await self._hosted(self.store)
            fencing = asyncio.ensure_future(_when(groups.fenced, fenced))
            self.stack.callback(fencing.cancel)
            leading = self._node(groups, epoch)
            await restore(leading)
            return leading

        member = Member(server, lease, lead, self.setup.topics)
        self.stack.push_async_callback(member.leave)
        await self._report_ready(server, address)
        try:
            await member.run(stop)
        finally:
            await server.stop()

    async def _hosted(self, store: Store) -> GroupBroker:
        watchers: list[Watcher] = [self.rebalances.watch]
        if self.setup.status is not None:
            watchers.append(CommitWatcher(self.rebalances.groups).watch)
        return await self.stack.enter_async_context(hosted(self.setup, store, KafkaFunctions(), watchers))

    def _node(self, groups: Groups, leader_epoch: int = 0) -> Node:
        setup = self.setup
        layout = LAYOUTS.get(setup.profile.name, NEWEST)
        offsets = OffsetsTopic(groups, self.store, leader_epoch, layout) if isinstance(groups, GroupBroker) else None
        return Node(
            setup.options,
            setup.settings,
            groups,
            self.store,
            acl=setup.acl,
            users=setup.users,
            leader_epoch=leader_epoch,
            offsets=offsets,
        )

    async def _report_ready(self, server: Server, address: Address) -> None:
        status = None
        if self.setup.status is not None:
            port = StatusPort(pages(server, self.metrics, self.rebalances, self.setup.profile.name))
            status = await port.start(self.setup.status)
            self.stack.push_async_callback(port.stop)
        self.ready(Ready(address, status, server.node))


async def _when(one: asyncio.Event, other: asyncio.Event) -> None:
    await one.wait()
    other.set()


def hostile(plan: Plan | None, stack: AsyncExitStack, groups: GroupBroker) -> Callable[[Dispatch], Answer]:
    """Return the function that puts the plan's faults in front of the dispatch; without a plan, it changes nothing."""

    def between(dispatch: Dispatch) -> Answer:
        if plan is None:
            return dispatch
        faults = Hostile(dispatch, plan)
        moving = asyncio.get_running_loop().create_task(faults.moves(groups))
        stack.callback(moving.cancel)
        stack.callback(lambda: _log.info("faults: %s", dict(faults.done)))
        return faults

    return between
