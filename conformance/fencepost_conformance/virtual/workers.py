"""Workers on a virtual loop: over a broker in the same process, or over the Kafka port and a network that fails.

The guarantees that are checked, under every failure:

- While a worker works on a partition and the coordinator has it as a member, no other worker begins with the partition.
  Static classic members over the port are an exception, as in Kafka: a member whose JoinGroup comes after the rebalance
  timeout stays in the group, and the leader does not learn which partitions it owns.
- A commit that returned is durable. Once another worker has committed a partition, no commit of an earlier share of it
  follows in the log. In one process none follows a later share of the same worker either. Over the port it can, as with
  Kafka: the network may delay a commit until after the worker has sent it again.
- A lost share commits nothing.
- Once nothing fails, every partition gets a worker within ``SETTLED_S``, and the workers commit again. Static classic
  members are an exception, as in Kafka: if a member is replaced while its partitions should move, it has nothing to
  revoke, so no rebalance assigns them. The next member that joins gets them.
- A worker that leaves has left within ``FAREWELL_S``, even if its task is cancelled, and no task is leaked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from random import Random
from typing import Any, Final

from fencepost import GroupBroker, Settings, Topic
from fencepost.protocol.partitions import TopicPartition
from fencepost.remote import Groups, Sasl
from fencepost.remote.sasl import Mechanism
from fencepost.store import StoreError
from fencepost.work import CommitFailed, Share, ShareLost, Worker, WorkerFailed
from fencepost_server.node import Node
from fencepost_server.options import Address, Limits, Options
from fencepost_server.restore import restore
from fencepost_server.security.sasl import Users
from fencepost_server.server import Server

from .broken import Broken
from .certificates import NAME, contexts
from .loop import Ran, run
from .network import Network, NetworkFaults
from .store import FaultyStore, StoreFaults

PARTITIONS: Final = 2
TOPIC: Final = Topic("t", b"t" * 16, 4)
GROUP: Final = "g"
SESSION_MS: Final = 2_000
REBALANCE_MS: Final = 3_000
SETTINGS: Final = Settings(
    group_initial_rebalance_delay_ms=0,
    group_min_session_timeout_ms=100,
    group_consumer_assignment_interval_ms=0,
    group_consumer_session_timeout_ms=SESSION_MS,
    group_consumer_min_session_timeout_ms=100,
    group_consumer_heartbeat_interval_ms=500,
    group_consumer_min_heartbeat_interval_ms=100,
)
#: a session, two rebalances, and the retries of a load
SETTLED_S: Final = 20.0
#: a callback that hangs, the rebalance timeout, and the wait for the answer to the leave
FAREWELL_S: Final = 15.0
_SERVER: Final = ("server", 9092)
_PROXY: Final = (NAME, 9092)
_USER, _PASSWORD = "alice", "secret of alice"


class Way(Enum):
    """How workers reach the coordinator."""

    WITHIN = "in the same process"
    PORT = "over the port"
    SECURED = "over the port, with log-ins and TLS"


@dataclass(frozen=True, slots=True)
class Security:
    """``sasl``: the log-in of the workers, None if there is none. ``login_ms``: how long it lasts; 0: it does not end.
    ``tls``: whether TLS is spoken."""

    sasl: Sasl | None = None
    login_ms: int = 0
    tls: bool = False


NO_SECURITY: Final = Security()


@dataclass(frozen=True, slots=True)
class Plan:
    """The choices of a seed that are made before the run."""

    remote: bool
    protocol: str
    workers: int
    static: bool
    store: StoreFaults
    network: NetworkFaults
    disturbances: int
    restarts: bool
    security: Security = NO_SECURITY


def plan_of(random: Random, way: Way) -> Plan:
    """The plan of a seed: half of them have failures of the store, and half of those over the port failures of the
    network."""
    remote = way is not Way.WITHIN
    store, network = random.random() < 0.5, random.random() < 0.5
    return replace(
        _plan_of(random, remote, store=store, network=network),
        security=_security_of(random) if way is Way.SECURED else NO_SECURITY,
    )


def _security_of(random: Random) -> Security:
    mechanism: Mechanism = random.choice(("PLAIN", "PLAIN", "SCRAM-SHA-256"))
    return Security(
        sasl=Sasl(_USER, _PASSWORD, mechanism) if random.random() < 0.8 else None,
        login_ms=random.choice((0, 1_500, 4_000, 15_000)),
        tls=random.random() < 0.6,
    )


def _plan_of(random: Random, remote: bool, *, store: bool, network: bool) -> Plan:
    return Plan(
        remote=remote,
        protocol=random.choice(("consumer", "classic")),
        workers=random.randint(1, 3),
        static=random.random() < 0.3,
        store=StoreFaults(
            slow_s=random.choice((0.0, 0.01, 0.3)),
            refuse=0.1 if store else 0.0,
            doubt=random.choice((0.0, 0.05)) if store else 0.0,
            unloadable=0.2 if store else 0.0,
        ),
        network=NetworkFaults(
            latency_s=random.choice((0.0, 0.001, 0.05)),
            lose=0.03 if network else 0.0,
            stall=0.02 if network else 0.0,
            stall_s=random.choice((0.5, 4.0, 8.0)),
        ),
        disturbances=random.randint(0, 5),
        restarts=random.random() < 0.3,
    )


@dataclass(slots=True, eq=False)
class _Hand:
    """One worker and its program. ``works_on``: the partitions of ``share`` that its program works on now."""

    number: int
    name: str
    worker: Worker
    task: asyncio.Task[None] | None = None
    share: Share | None = None
    works_on: frozenset[TopicPartition] = frozenset()
    turn: int = 0
    old: Share | None = None
    stops: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False


class Schedule:
    """One run: call ``play``; ``seen`` then counts the events."""

    def __init__(self, seed: int, way: Way) -> None:
        self._random = Random(seed)
        self.plan = plan_of(self._random, way)
        self._tls = contexts() if self.plan.security.tls else None
        self._strange = False
        self.seen: Counter[str] = Counter()
        self._store = FaultyStore(PARTITIONS, self.plan.store, Random(self._random.random()))
        self._broker: GroupBroker | None = None
        self._server: Server | None = None
        self._network: Network | None = None
        self._offset = 0
        self._hands: list[_Hand] = []
        self._made = 0
        self._calm = False
        self._topics = [TOPIC]

    async def play(self) -> None:
        async with self._store, AsyncExitStack() as stack:
            stack.push_async_callback(self._hang_up)
            await self._begin()
            worker = await self._ways(stack)
            for _ in range(self.plan.workers):
                self._hire(worker)
            for _ in range(self.plan.disturbances):
                await asyncio.sleep(self._random.random() * 3)
                await self._disturb(worker)
            await self._come_to_rest(worker)
            await self._leave_all()

    # where the group is coordinated

    async def _begin(self) -> None:
        self._store.calm = True
        broker = self._broker = GroupBroker(self._store, SETTINGS, topics=self._topics, clock=_clock)
        await broker.start()
        if self.plan.remote:
            limits = Limits(drain_s=0.1)
            security = self.plan.security
            options = Options(
                listen=Address(host=_SERVER[0], port=_SERVER[1]),
                advertised=Address(host=_PROXY[0], port=_PROXY[1]),
                offsets_partitions=PARTITIONS,
                limits=limits,
                login_ms=security.login_ms,
            )
            node = Node(options, SETTINGS, broker, self._store, users=None if security.sasl is None else _users())
            await restore(node)
            tls = None if self._tls is None else self._tls.strange if self._strange else self._tls.trusted
            self._server = Server(node, tls=tls, observe=self._observe)
            await self._server.start({"t": TOPIC.partitions})
        self._store.calm = self._calm

    def _observe(self, api: str, version: int, seconds: float) -> None:
        if api == "sasl_handshake":
            self.seen["handshake"] += 1

    async def _hang_up(self) -> None:
        for hand in self._hands:
            if hand.task is not None:
                hand.task.cancel()
        if self._network is not None:
            await self._network.stop()
        await self._end()
        await asyncio.sleep(1)  # closed connections end by themselves

    async def _end(self) -> None:
        assert self._broker is not None
        if self._server is not None:
            await self._server.stop()
        await self._broker.stop()

    async def _ways(self, stack: AsyncExitStack) -> Callable[..., Worker]:
        """The function that creates a worker."""
        assert self._broker is not None
        if not self.plan.remote:
            return lambda *args, **options: self._here().worker(*args, **options)
        security = self.plan.security
        faults, random = self.plan.network, Random(self._random.random())
        self._network = Network(_PROXY, _SERVER, faults, random, opaque=security.tls)
        self._network.calm = True
        await self._network.start()
        tls = None if self._tls is None else self._tls.client
        groups = await stack.enter_async_context(Groups(f"{_PROXY[0]}:{_PROXY[1]}", tls=tls, sasl=security.sasl))
        self._network.calm = False
        return groups.worker

    def _here(self) -> GroupBroker:
        assert self._broker is not None
        return self._broker

    # programs

    def _hire(self, worker: Callable[..., Worker], name: str | None = None) -> None:
        self._made += 1
        options: dict[str, Any] = {
            "protocol": self.plan.protocol,
            "rebalance_timeout_ms": REBALANCE_MS,
            "request_timeout_ms": 1_000,
            "metadata_max_age_ms": 2_000,
        }
        if self.plan.protocol == "classic":
            options |= {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 500}
        if self.plan.static:
            options["instance_id"] = name or f"instance-{self._made}"
        hand = _Hand(self._made, str(options.get("instance_id", f"worker-{self._made}")), None)  # type: ignore[arg-type]
        for call in ("gained", "revoked", "lost"):
            if self._random.random() < 0.4:
                options[call] = self._callback(hand)
        hand.worker = worker(GROUP, ["t"], **options)
        hand.task = asyncio.create_task(self._program(hand), name="program")
        self._hands.append(hand)

    def _callback(self, hand: _Hand) -> Callable[[frozenset[TopicPartition]], Any]:
        async def told(partitions: frozenset[TopicPartition]) -> None:
            await asyncio.sleep(0)
            if self._calm:
                return
            roll = self._random.random()
            if roll < 0.1:
                self.seen["callback slow"] += 1
                await asyncio.sleep(self._random.choice((0.2, 1.0, 4.0)))
            elif roll < 0.13:
                self.seen["callback raised"] += 1
                raise ValueError("a callback fails")

        return told

    async def _program(self, hand: _Hand) -> None:
        try:
            async with hand.worker as worker:
                stopping = asyncio.create_task(self._stop_when(hand), name="stop")
                try:
                    async for share in worker:
                        await self._body(hand, share)
                finally:
                    stopping.cancel()
        except WorkerFailed:
            self.seen["worker failed"] += 1
        finally:
            hand.works_on, hand.share = frozenset(), None

    async def _stop_when(self, hand: _Hand) -> None:
        await hand.stops.wait()
        await hand.worker.leave()

    async def _body(self, hand: _Hand, share: Share) -> None:
        hand.turn += 1
        self._begin_work(hand, share)
        try:
            if hand.old is not None and hand.old.lost and len(hand.old):
                await self._commit_lost(hand.old)
            with suppress(ShareLost, CommitFailed, TimeoutError):
                while await share.rest(self._random.choice((0.05, 0.2, 0.7))):
                    await self._commit(hand, share)
            if not self._calm and self._random.random() < 0.2:
                self.seen["slow program"] += 1
                await asyncio.sleep(self._random.choice((0.1, 1.0, 5.0)))
        finally:
            hand.works_on, hand.share, hand.old = frozenset(), None, share

    def _begin_work(self, hand: _Hand, share: Share) -> None:
        self.seen["share"] += 1
        for other in self._hands:
            if other is hand or not other.works_on & share.partitions or other.share is None or other.share.lost:
                continue
            if self._is_member(other):
                if self.plan.static and self.plan.protocol == "classic" and self.plan.remote:
                    self.seen["overlap of a static member"] += 1
                    continue
                both = sorted(other.works_on & share.partitions)[0]
                raise Broken(f"{hand.name} begins with {both} while {other.name} works on it")
            self.seen["overlap after removal"] += 1
        hand.share, hand.works_on = share, share.partitions

    def _is_member(self, hand: _Hand) -> bool:
        """Whether the coordinator has it as a member of the group."""
        member_id, broker = hand.worker.member_id, self._here()
        with suppress(Exception):
            consumers = broker.consumer_view(GROUP)
            if consumers is not None and any(each.member_id == member_id for each in consumers.members):
                return True
            classic = broker.view(GROUP)
            return classic is not None and any(each.member_id == member_id for each in classic.members)
        return False

    async def _commit(self, hand: _Hand, share: Share) -> None:
        self._offset += 1
        offset = self._offset
        several = self._random.sample(list(share), self._random.randint(1, len(share)))
        try:
            await share.commit(dict.fromkeys(several, offset), metadata=f"{hand.number}/{hand.turn}")
        except ShareLost:
            self.seen["share lost"] += 1
            if not share.lost:
                raise Broken(f"a commit of {hand.name} raised ShareLost, and the share is not lost") from None
            raise
        self.seen["commit"] += 1
        for each in several:
            if (GROUP, each.topic, each.partition, offset) not in self._store.durable:
                raise Broken(f"{hand.name} committed {offset} of {each.topic}-{each.partition}: not in the store")

    async def _commit_lost(self, share: Share) -> None:
        self._offset += 1
        self.seen["commit of a lost share"] += 1
        try:
            await share.commit(dict.fromkeys(share, self._offset))
        except ShareLost:
            return
        raise Broken("a share that is lost has committed")

    # what goes wrong

    async def _disturb(self, worker: Callable[..., Worker]) -> None:
        random = self._random
        hand = random.choice(self._hands) if self._hands else None
        kinds = ["join", "move", "grow", "restart"]
        if hand is not None:
            kinds += ["leave", "crash", "cancel", "return"]
        if self._network is not None:
            kinds += ["cut", "cut"]
        if self.plan.security.tls:
            kinds += ["strange certificate"]
        kind = random.choice(kinds)
        if kind == "restart" and not (self.plan.restarts and self.plan.remote):
            kind = "join"
        self.seen[kind] += 1
        if kind == "join":
            self._hire(worker)
        elif kind == "move":
            await self._move()
        elif kind == "grow":
            self._grow()
        elif kind == "restart":
            await self._restart(random.choice((0.0, 1.0, 4.0)))
        elif kind == "strange certificate":
            self._strange = True
            await self._restart(0.0)
            await asyncio.sleep(random.choice((1.0, 4.0)))
            self._strange = False
            await self._restart(0.0)
        elif kind == "cut":
            assert self._network is not None
            self._network.cut()
        elif hand is not None:
            await self._dismiss(hand, kind, worker)

    async def _restart(self, pause_s: float) -> None:
        await self._end()
        await asyncio.sleep(pause_s)
        await self._begin()

    async def _dismiss(self, hand: _Hand, kind: str, worker: Callable[..., Worker]) -> None:
        self._hands.remove(hand)
        task = hand.task
        assert task is not None
        if kind == "cancel":
            hand.cancelled = True
            task.cancel()
        elif kind == "leave" or task.done():
            hand.stops.set()
        else:
            with suppress(RuntimeError):
                hand.worker.crash()
        self._hands.append(hand)
        await self._gone(hand)
        self._hands.remove(hand)
        if kind == "return" and self.plan.static:
            self._hire(worker, hand.name)

    async def _gone(self, hand: _Hand) -> None:
        assert hand.task is not None
        done, _ = await asyncio.wait({hand.task}, timeout=FAREWELL_S)
        if not done:
            raise Broken(f"{hand.name} has not ended {FAREWELL_S:g} s after its program was stopped")
        if not hand.task.cancelled() and (raised := hand.task.exception()) is not None:
            raise raised

    async def _move(self) -> None:
        broker = self._here()
        partition = self._random.randrange(PARTITIONS)
        try:
            await broker.move(partition, self._random.choice((0.0, 0.5)))
        except StoreError:
            self._store.calm = True
            await broker.move(partition)
            self._store.calm = self._calm

    def _grow(self) -> None:
        if self.plan.remote:
            return  # the server has the topics
        self._topics = [Topic("t", b"t" * 16, 6)]
        self._here().set_topics(self._topics)

    # the end

    async def _come_to_rest(self, worker: Callable[..., Worker]) -> None:
        self._calm = self._store.calm = True
        if self._network is not None:
            self._network.calm = True
        await asyncio.sleep(SETTLED_S)
        for hand in [*self._hands]:
            if hand.task is not None and hand.task.done():
                await self._gone(hand)
                self._hands.remove(hand)
        if not self._hands:
            self._hire(worker)
            await asyncio.sleep(SETTLED_S)
        self._check_network()
        if self._unowned and self.plan.static and self.plan.protocol == "classic":
            self.seen["partition left over by a static member"] += 1
            self._hire(worker)
            await asyncio.sleep(SETTLED_S)
        if self._unowned:
            raise Broken(f"at rest {_named(self._unowned)} are not worked on by exactly one worker")
        before = self.seen["commit"]
        await asyncio.sleep(3)
        if self.seen["commit"] == before:
            raise Broken("the workers have not committed for 3 s at rest")
        self._check_log()

    @property
    def _unowned(self) -> list[TopicPartition]:
        """The partitions that do not have exactly one worker."""
        counts = Counter(each for hand in self._hands for each in hand.works_on)
        partitions = (TopicPartition("t", number) for number in range(self._topics[0].partitions))
        return [each for each in partitions if counts[each] != 1]

    def _check_network(self) -> None:
        if self._network is not None and self._network.broken is not None:
            raise self._network.broken

    def _check_log(self) -> None:
        """Check that no commit of an earlier share follows one of a later share."""
        newest: dict[tuple[str, int], tuple[int, int]] = {}  #: worker and share of the last commit of each partition
        over: dict[tuple[str, int, int], int] = {}  #: by partition and worker, the newest share that ended
        for commit in (commit for log in self._store.log.values() for commit in log):
            number, _, share = self._store.metadata[commit].partition("/")
            label, place = (int(number), int(share)), commit[1:3]
            before = newest.get(place, label)
            if before[0] != label[0]:
                over[(*place, before[0])] = before[1]
            elif before[1] > label[1] and not self.plan.remote:
                raise Broken(f"share {label} commits {commit[1]}-{commit[2]} after {before} did")
            if label[1] <= over.get((*place, label[0]), 0):
                raise Broken(f"share {label} commits {commit[1]}-{commit[2]} again after worker {before[0]} did")
            newest[place] = label[0], max(label[1], before[1] if before[0] == label[0] else 0)

    async def _leave_all(self) -> None:
        hands = [*self._hands]
        for hand in hands:
            if self._random.random() < 0.3:
                assert hand.task is not None
                hand.task.cancel()
            else:
                hand.stops.set()
        for hand in hands:
            await self._gone(hand)
        self._check_network()
        self._check_log()


def _clock() -> int:
    return int(asyncio.get_running_loop().time() * 1_000) + 1_700_000_000_000


def _named(partitions: list[TopicPartition]) -> str:
    return ", ".join(f"{each.topic}-{each.partition}" for each in partitions) or "nothing"


@cache
def _users() -> Users:
    return Users({_USER: _PASSWORD})


def play(seed: int, way: Way) -> tuple[Ran, Schedule]:
    """Run one schedule."""
    schedule = Schedule(seed, way)
    return run(schedule.play(), Random(seed)), schedule
