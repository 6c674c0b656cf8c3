"""The broker of a schedule of workers: in their process, or a server behind a network that fails.

It restarts, moves its partitions, and may show a certificate that clients do not trust.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import cache
from random import Random
from typing import Final, Unpack

from fencepost import GroupBroker, Settings, Topic
from fencepost.aio.inside import Inside
from fencepost.protocol.consumer_messages import STATIC_LEAVE_EPOCH
from fencepost.remote import Groups
from fencepost.store import StoreError
from fencepost.work import Worker
from fencepost.work.worker import Options as WorkerOptions
from fencepost.work.worker import worker_of
from fencepost_server.node import Node
from fencepost_server.options import Address, Limits, Options
from fencepost_server.restore import restore
from fencepost_server.security.sasl import Users
from fencepost_server.server import Server

from .certificates import NAME, contexts
from .link import FaultyLink, Trouble
from .network import Network
from .store import FaultyStore
from .worker_plan import PASSWORD, USER, Plan

PARTITIONS: Final = 2
TOPIC: Final = Topic("t", b"t" * 16, 4)
GROUP: Final = "g"
SESSION_MS: Final = 2_000
SETTINGS: Final = Settings(
    group_initial_rebalance_delay_ms=0,
    group_min_session_timeout_ms=100,
    group_consumer_assignment_interval_ms=0,
    group_consumer_session_timeout_ms=SESSION_MS,
    group_consumer_min_session_timeout_ms=100,
    group_consumer_heartbeat_interval_ms=500,
    group_consumer_min_heartbeat_interval_ms=100,
)
#: how long a late request may have effects, until the heartbeat of its member
_LATE_S: Final = SESSION_MS / 1_000
_SERVER: Final = ("server", 9092)
_PROXY: Final = (NAME, 9092)


class FaultyBroker:
    """A broker that workers reach as the plan says. ``seen`` counts log-ins."""

    def __init__(self, plan: Plan, store: FaultyStore, random: Random, seen: Counter[str]) -> None:
        self._plan = plan
        self._store = store
        self._random = random
        self._seen = seen
        self._tls = contexts() if plan.security.tls else None
        self._strange = False  #: the server's certificate is one that clients do not trust
        self._calm = False
        self._topics = [TOPIC]
        self._groups: GroupBroker | None = None
        self._server: Server | None = None
        self._network: Network | None = None
        self._links: dict[Worker, FaultyLink] = {}

    # its life

    async def start(self) -> None:
        """Start, without failures; then the store fails as planned."""
        self._store.calm = True
        groups = self._groups = GroupBroker(self._store, SETTINGS, topics=self._topics, clock=_clock)
        await groups.start()
        if self._plan.remote:
            limits = Limits(drain_s=0.1)
            security = self._plan.security
            options = Options(
                listen=Address(host=_SERVER[0], port=_SERVER[1]),
                advertised=Address(host=_PROXY[0], port=_PROXY[1]),
                offsets_partitions=PARTITIONS,
                limits=limits,
                login_ms=security.login_ms,
            )
            node = Node(options, SETTINGS, groups, self._store, users=None if security.sasl is None else _users())
            await restore(node)
            tls = None if self._tls is None else self._tls.strange if self._strange else self._tls.trusted
            self._server = Server(node, tls=tls, observe=self._observe)
            await self._server.start({"t": TOPIC.partitions})
        self._store.calm = self._calm

    def _observe(self, api: str, version: int, seconds: float) -> None:
        if api == "sasl_handshake":
            self._seen["handshake"] += 1

    async def _stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
        await self._running.stop()

    async def restart(self, pause_s: float) -> None:
        """Stop, and start after a pause."""
        await self._stop()
        await asyncio.sleep(pause_s)
        await self.start()

    async def shut_down(self) -> None:
        """Stop, and end the network."""
        if self._network is not None:
            await self._network.stop()
        await self._stop()
        for link in self._links.values():
            link.end()

    def become_calm(self) -> None:
        """From now on, nothing fails."""
        self._calm = self._store.calm = True
        if self._network is not None:
            self._network.calm.set()

    @property
    def _running(self) -> GroupBroker:
        assert self._groups is not None
        return self._groups

    # its clients

    async def connect(self, stack: AsyncExitStack) -> Callable[..., Worker]:
        """Return the function that creates a worker."""
        if not self._plan.remote:
            return self._within
        security = self._plan.security
        faults, random = self._plan.network, Random(self._random.random())
        self._network = Network(_PROXY, _SERVER, faults, random, opaque=security.tls)
        self._network.calm.set()
        await self._network.start()
        tls = None if self._tls is None else self._tls.client
        groups = await stack.enter_async_context(Groups(f"{_PROXY[0]}:{_PROXY[1]}", tls=tls, sasl=security.sasl))
        self._network.calm.clear()
        return groups.worker

    def _within(self, group_id: str, topics: list[str], **options: Unpack[WorkerOptions]) -> Worker:
        groups = self._running
        link = FaultyLink(Inside(groups.request, lambda: groups.topics, groups.gone))
        worker = worker_of(link, group_id, topics, options)
        self._links[worker] = link
        return worker

    def trouble(self, worker: Worker) -> None:
        """Let the link of a worker in this process fail for a while."""
        trouble = self._random.choice((Trouble.CUT, Trouble.SILENT, Trouble.LATE_ANSWERS))
        self._links[worker].fail(trouble, self._random.choice((0.3, 2.2, 3.5)), self._random.choice((0.2, 0.9)))

    def has_member(self, member_id: str) -> bool:
        """Whether it has the member in the group, and the member has not left for a while, as a static member does. It
        then gives up what it should have revoked (M-PE-04)."""
        broker = self._running
        with suppress(Exception):
            consumers = broker.consumer_view(GROUP)
            if consumers is not None and any(
                each.member_id == member_id and each.member_epoch != STATIC_LEAVE_EPOCH for each in consumers.members
            ):
                return True
            classic = broker.view(GROUP)
            return classic is not None and any(each.member_id == member_id for each in classic.members)
        return False

    @property
    def topic(self) -> Topic:
        """The topic at this moment; it may grow."""
        return self._topics[0]

    # failures

    async def show_strange_certificate(self) -> None:
        """Restart with a certificate that clients do not trust, and later with the trusted one."""
        self._strange = True
        await self.restart(0.0)
        await asyncio.sleep(self._random.choice((1.0, 4.0)))
        self._strange = False
        await self.restart(0.0)

    async def move(self) -> None:
        """Move a partition away and back; without failures if it cannot be loaded."""
        broker = self._running
        partition = self._random.randrange(PARTITIONS)
        try:
            await broker.move(partition, self._random.choice((0.0, 0.5)))
        except StoreError:
            self._store.calm = True
            await broker.move(partition)
            self._store.calm = self._calm

    def grow(self) -> None:
        """Add partitions to the topic; a server has the topics itself."""
        if self._plan.remote:
            return
        self._topics = [Topic("t", b"t" * 16, 6)]
        self._running.set_topics(self._topics)

    def heard_late(self) -> bool:
        """Whether the network has just delivered a request whose client had given it up."""
        return self._network is not None and asyncio.get_running_loop().time() < self._network.late_s + _LATE_S

    @property
    def has_network(self) -> bool:
        """Whether its clients are behind a network."""
        return self._network is not None

    def cut(self) -> None:
        """Close every connection of the network."""
        assert self._network is not None
        self._network.cut()

    def check_network(self) -> None:
        """Raise ``Broken`` if an answer did not belong to its request."""
        if self._network is not None and self._network.broken is not None:
            raise self._network.broken


def _clock() -> int:
    return int(asyncio.get_running_loop().time() * 1_000) + 1_700_000_000_000


@cache
def _users() -> Users:
    return Users({USER: PASSWORD})
