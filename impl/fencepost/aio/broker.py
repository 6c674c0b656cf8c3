"""The asyncio driver of the core: a host of coordinators over one store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from fencepost import host
from fencepost.coordinator import (
    committed_offset,
    consumer_view,
    consumer_views,
    group_view,
    initial_state,
    offsets_view,
    view,
    views,
)
from fencepost.host.broker import HostEvent
from fencepost.protocol import messages as m
from fencepost.protocol.choices import Choices, Functions
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import IllegalEvent, MisuseError
from fencepost.protocol.events import Event, GroupConfig, GroupConfigChanged, Request, Topic, TopicsChanged
from fencepost.protocol.misuse import expect_methods
from fencepost.protocol.offset_messages import WriteTxnMarkerRequest
from fencepost.protocol.offset_view import OffsetsView, OffsetView
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.server_assignor import Assignor
from fencepost.protocol.settings import Settings
from fencepost.protocol.shapes import fault
from fencepost.protocol.view import GroupView
from fencepost.sharding import partition_for
from fencepost.store import Store

from .calls import Calls
from .choices import RandomChoices
from .engine import Counts, Engine, Watcher

#: The newest version of WriteTxnMarkers.
_MARKERS: Final = m.VERSIONS[WriteTxnMarkerRequest][1]


class Stopped(MisuseError):
    """The broker was stopped, or never started."""

    def __init__(self) -> None:
        super().__init__(
            "the broker is not running: it was stopped, or never started; send requests within "
            "'async with GroupBroker(store) as groups', or between start() and stop()"
        )


class Started(MisuseError, RuntimeError):
    """The broker is running already."""

    def __init__(self) -> None:
        super().__init__("the broker is running already: 'async with' starts it; call start() again only after stop()")


def wall_clock_ms() -> int:
    """Return milliseconds since 1970, as Kafka stamps its records."""
    return time.time_ns() // 1_000_000


class GroupBroker(Calls):
    """Hosts groups in the running event loop, over a store that keeps them. Use it as ``async with
    GroupBroker(MemoryStore()) as groups``. It opens the store, becomes leader of all its partitions (the epoch of each
    grows by one), loads them and serves. The owner of the store closes it.

    The store decides the number of partitions, one by default. Each has a separate coordinator, so a failed append
    delays only the groups of its partition.

    ``topics``: the topics at the start; ``set_topics`` changes them. ``clock`` gives milliseconds, which are written to
    records. It may jump: timers use the clock of the event loop. ``functions``: those of the standard library by
    default. ``assignors``: server assignors beside Kafka's, by name; ``Settings.group_consumer_assignors`` says which
    a group may use, the default first.
    """

    gone = Stopped

    def __init__(
        self,
        store: Store,
        settings: Settings | None = None,
        profile: Profile = INTENDED,
        *,
        topics: Iterable[Topic] = (),
        choices: Choices | None = None,
        functions: Functions | None = None,
        assignors: Mapping[str, Assignor] | None = None,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        expect_methods(Store, store, "store", "MemoryStore() is one that lasts as long as the process")
        self._settings = Settings() if settings is None else settings
        initial_state(self._settings, profile, functions=functions, assignors=assignors)  # raises for a wrong argument
        self._store = store
        self._profile = profile
        self._functions = functions
        self._assignors = assignors
        self._choices = RandomChoices() if choices is None else choices
        self._clock = clock
        self._topics = tuple(topics)
        self._images = 0
        self._watchers: list[Watcher] = []
        self._engine: Engine | None = None
        #: set when another broker has become leader of a partition that this one led
        self.fenced = asyncio.Event()

    async def __aenter__(self) -> GroupBroker:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # starting and stopping

    async def start(self) -> None:
        """Open the store, become leader of all partitions, load them, and begin to serve. Raises what the store raises,
        and ``Started`` if the broker runs already."""
        if self._engine is not None:
            raise Started
        count = await self._store.open()
        broker = host.initial_broker(
            count, self._settings, self._profile, functions=self._functions, assignors=self._assignors
        )
        engine = Engine(self._store, broker, self._choices, self._clock, self.fenced)
        engine.watchers = self._watchers
        published_topics = self._topics
        engine.handle(lambda: self._image(engine))
        try:
            await asyncio.gather(*[engine.lead(partition) for partition in range(count)])
        except BaseException:
            await engine.drain()
            raise
        self._engine = engine
        if self._topics is not published_topics:  # ``set_topics`` was called meanwhile
            engine.handle(lambda: self._image(engine))

    async def drain(self) -> None:
        """Wait until all writes are durable and their requests are answered, then give up the partitions: requests that
        still wait, and all later ones, are answered NOT_COORDINATOR."""
        await self._running().drain()

    async def stop(self) -> None:
        """Drain and stop. The store stays open."""
        engine = self._engine
        if engine is not None:
            await engine.drain()
            self._engine = None
            engine.end(Stopped())

    async def move(self, partition: int, away_s: float = 0.0) -> None:
        """Act as if another broker led a partition for ``away_s`` seconds: its waiting requests are answered
        NOT_COORDINATOR, and it is loaded again (F-UNLOAD-01, F-LOAD-01). For tests of clients. Raises what the store
        raises."""
        engine = self._running()
        engine.give_up(partition)
        await asyncio.sleep(away_s)
        if self._engine is engine:
            await engine.lead(partition)

    # requests

    def submit(
        self,
        body: m.RequestBody,
        *,
        version: int | None = None,
        client_id: str = "",
        client_host: str = "",
        denied: frozenset[str] = frozenset(),
        denied_topics: frozenset[str] = frozenset(),
        denied_transactional_ids: frozenset[str] = frozenset(),
    ) -> asyncio.Future[m.ResponseBody]:
        """Like ``request``, but requests are handled in the order of the calls, normally before the call returns; the
        future may be done already."""
        if type(body) not in m.VERSIONS:
            names = ", ".join(kind.__name__ for kind in m.VERSIONS)
            raise IllegalEvent(f"body must be a request (got {type(body).__name__}); the requests are: {names}")
        newest = m.VERSIONS[type(body)][1]

        engine = self._running()

        def event(number: int) -> HostEvent:
            return Request(
                engine.tick(),
                id=number,
                version=newest if version is None else version,
                client_id=client_id,
                client_host=client_host,
                body=body,
                denied=denied,
                denied_topics=denied_topics,
                denied_transactional_ids=denied_transactional_ids,
            )

        return engine.ask(event)

    async def request(
        self,
        body: m.RequestBody,
        *,
        version: int | None = None,
        client_id: str = "",
        client_host: str = "",
        denied: frozenset[str] = frozenset(),
        denied_topics: frozenset[str] = frozenset(),
        denied_transactional_ids: frozenset[str] = frozenset(),
    ) -> m.ResponseBody:
        return await self.submit(
            body,
            version=version,
            client_id=client_id,
            client_host=client_host,
            denied=denied,
            denied_topics=denied_topics,
            denied_transactional_ids=denied_transactional_ids,
        )

    async def mark(self, partition: int, body: WriteTxnMarkerRequest, *, version: int | None = None) -> m.ResponseBody:
        """End a transaction in one partition of the offsets topic (O-TXN-08)."""

        engine = self._running()

        def event(number: int) -> HostEvent:
            request = Request(
                engine.tick(),
                id=number,
                version=_MARKERS if version is None else version,
                client_id="",
                client_host="",
                body=body,
            )
            return host.OnPartition(partition, request)

        return await engine.ask(event)

    async def write_markers(self, body: WriteTxnMarkerRequest, groups: Iterable[str]) -> Mapping[int, m.ResponseBody]:
        """End a transaction in the partitions of these groups. Returns the answer of each partition."""
        places = sorted({self.partition_of(group_id) for group_id in groups})
        answers = await asyncio.gather(*[self.mark(place, body) for place in places])
        return dict(zip(places, answers, strict=True))

    def set_topics(self, topics: Iterable[Topic]) -> None:
        """Replace the topics that exist; consumer groups assign their partitions (M-META-03). A call before the start
        sets the topics to start with. After a call during the start, the coordinators get the topics when they have
        loaded.

        Raises ``IllegalEvent`` for an invalid topic."""
        rows = tuple(topics)
        self._check(TopicsChanged(0, rows))
        self._topics = rows
        engine = self._engine
        if engine is not None:
            engine.handle(lambda: self._image(engine))

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics of the last ``set_topics``, or those given at construction."""
        return self._topics

    def configure(self, group_id: str, config: GroupConfig | None) -> None:
        """Set the settings of a group; None restores the defaults (M-CFG-01). Raises ``Stopped`` if the broker is not
        running."""
        engine = self._running()
        self._check(GroupConfigChanged(0, group_id, config))
        engine.handle(lambda: GroupConfigChanged(engine.tick(), group_id, config))

    # the current state

    @property
    def partitions(self) -> int:
        """The number of partitions of the offsets topic."""
        return len(self._running().broker.coordinators)

    @property
    def led(self) -> frozenset[int]:
        """The partitions that this broker leads, loaded or not."""
        return frozenset(self._running().led)

    @property
    def counts(self) -> Counts:
        """Counts since the start."""
        return self._running().counts

    def partition_of(self, group_id: str) -> int:
        """The partition that hosts a group (F-LOC-01)."""
        return partition_for(group_id, self.partitions)

    def view(self, group_id: str) -> GroupView | None:
        """The current state of a classic group; None if there is none of this name."""
        return view(self._running().state(self.partition_of(group_id)), group_id)

    def consumer_view(self, group_id: str) -> ConsumerGroupView | None:
        """The current state of a consumer group; None if there is none of this name."""
        return consumer_view(self._running().state(self.partition_of(group_id)), group_id)

    def group_view(self, group_id: str) -> GroupView | ConsumerGroupView | None:
        """The group at this moment, whatever its kind; None if it does not exist."""
        return group_view(self._running().state(self.partition_of(group_id)), group_id)

    def committed_offset(self, group_id: str, partition: TopicPartition) -> OffsetView | None:
        """The committed offset of one partition at this moment; None if there is none."""
        return committed_offset(self._running().state(self.partition_of(group_id)), group_id, partition)

    def views(self) -> dict[str, GroupView]:
        """Every classic group by its id."""
        return {name: each for state in self._running().broker.coordinators for name, each in views(state).items()}

    def consumer_views(self) -> dict[str, ConsumerGroupView]:
        """Every consumer group by its id."""
        states = self._running().broker.coordinators
        return {name: each for state in states for name, each in consumer_views(state).items()}

    def offsets_view(self, group_id: str) -> OffsetsView:
        """The committed offsets of a group, and those pending in transactions."""
        return offsets_view(self._running().state(self.partition_of(group_id)), group_id)

    def log_end(self, partition: int) -> int:
        """Return the offset of the next record of a partition, appends under way included."""
        return self._running().state(partition).end

    def watch(self, watcher: Watcher) -> None:
        """Call ``watcher`` after each step with the event and its outcome, for example for metrics. It must be quick.
        Requests that it submits are handled after the step. A watcher that is added before the start sees the loads
        too."""
        self._watchers.append(watcher)

    def _running(self) -> Engine:
        if self._engine is None:
            raise Stopped
        return self._engine

    def _image(self, engine: Engine) -> TopicsChanged:
        self._images += 1
        return TopicsChanged(engine.tick(), self._topics, version=self._images)

    def _check(self, event: Event) -> None:
        wrong = fault(event)
        if wrong is not None:
            raise IllegalEvent(wrong)
