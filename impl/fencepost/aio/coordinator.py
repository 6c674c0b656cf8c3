"""The driver around the core: one task that takes events from a queue, one at a time.

It keeps the order that the core asks for (``fencepost.protocol.events``): records are handed to the store directly
after the step that made them, and nothing else is handled until the store has answered; then the core learns that they
are durable, or that there are none. A timer that fires goes to the end of the queue, and is dropped there if it was
cancelled or set again in the meantime (C-TMR-11). A task that the core starts (M-RX-03) goes the same way: the core
does the work itself when its turn has come, behind what waits already.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost.coordinator import CoordinatorState, consumer_view, initial_state, offsets_view, step, view
from fencepost.protocol import messages as m
from fencepost.protocol.choices import Choices, Functions
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import IllegalEvent, MisuseError, WrongType
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    GroupConfig,
    GroupConfigChanged,
    Load,
    Outcome,
    Request,
    SetTimer,
    TaskDone,
    TaskKey,
    TimerFired,
    TimerKey,
    Topic,
    TopicsChanged,
    Unload,
)
from fencepost.protocol.logged import for_load
from fencepost.protocol.misuse import expect_methods
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.protocol.shapes import fault
from fencepost.protocol.view import GroupView
from fencepost.store import AppendError, Store

from .calls import Calls
from .choices import RandomChoices

_log = logging.getLogger(__name__)


class Stopped(MisuseError):
    """The coordinator was stopped, or never started."""

    def __init__(self) -> None:
        super().__init__(
            "nobody serves: the coordinator was stopped, has failed, or was never started; ask within "
            "'async with GroupCoordinator(store) as groups', or between start() and stop()"
        )


class Started(MisuseError, RuntimeError):
    """The coordinator was started already."""

    def __init__(self) -> None:
        super().__init__("the coordinator serves already: 'async with' starts it; start() again only after stop()")


@dataclass(slots=True, eq=False)
class _Ask:
    body: m.RequestBody
    version: int
    client_id: str
    client_host: str
    denied: frozenset[str]
    denied_topics: frozenset[str]
    denied_transactional_ids: frozenset[str]
    answer: asyncio.Future[m.ResponseBody]


@dataclass(slots=True, eq=False)
class _Alarm:
    key: TimerKey
    due: int
    handle: asyncio.TimerHandle = field(init=False)


@dataclass(slots=True, eq=False)
class _Task:
    key: TaskKey


@dataclass(slots=True, eq=False)
class _News:
    """Something that the host tells; ``event`` makes it of the time."""

    event: Callable[[int], Event]


class _Stop:
    """Ends the task."""


_Item: TypeAlias = _Ask | _Alarm | _Task | _News | _Stop


def wall_clock_ms() -> int:
    """Milliseconds since 1970, as Kafka stamps its records."""
    return time.time_ns() // 1_000_000


class GroupCoordinator(Calls):
    """Hosts groups in the running event loop. Use as ``async with GroupCoordinator(MemoryStore()) as groups``.

    ``clock`` gives milliseconds and ends up in records; it need not be steady, timers run by the loop's own clock.
    ``functions`` are those of the standard library if not given (``fencepost.functions``).
    """

    gone = Stopped

    def __init__(
        self,
        store: Store,
        settings: Settings | None = None,
        profile: Profile = INTENDED,
        *,
        choices: Choices | None = None,
        functions: Functions | None = None,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        expect_methods(Store, store, "store", "MemoryStore() is one that lasts as long as the process")
        if callable(getattr(store, "lead", None)):  # a SharedStore: its load and append take a partition
            raise WrongType(
                f"store is a {type(store).__name__}, which holds many partitions: write "
                "GroupCoordinator(fencepost.store.OnePartition(store)), or GroupBroker(store) for all of them"
            )
        self._store = store
        self._choices = RandomChoices() if choices is None else choices
        self._clock = clock
        self._state: CoordinatorState = initial_state(
            Settings() if settings is None else settings, profile, functions=functions
        )
        self._epoch = 0
        self._log_end = 0
        self._now = 0
        self._ids = 0
        self._inbox: asyncio.Queue[_Item] = asyncio.Queue()
        self._asked: dict[int, asyncio.Future[m.ResponseBody]] = {}
        self._alarms: dict[TimerKey, _Alarm] = {}
        self._tasks: dict[TaskKey, _Task] = {}
        self._images = 0
        self._topics: tuple[Topic, ...] = ()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> GroupCoordinator:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Load the log and begin to serve. Raises what the store raises, and ``Started`` if it serves already."""
        if self._task is not None:
            raise Started
        await self._load()
        self._task = asyncio.create_task(self._run(), name="fencepost coordinator")

    async def stop(self) -> None:
        """Answer what is parked with NOT_COORDINATOR and end. The store is left to its owner.

        Raises what the store raised if it could not be loaded again; nobody has been served since.
        """
        task, self._task = self._task, None
        if task is not None:
            self._inbox.put_nowait(_Stop())
            await task

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
        """Submit a request and await its answer; JoinGroup and SyncGroup may take as long as a rebalance.

        ``version`` is the newest if not given. Raises ``IllegalEvent`` for what is no request and for a version that
        does not exist, ``Stopped`` if nobody serves. Cancelling the wait does not take the request back.
        """
        if type(body) not in m.VERSIONS:
            names = ", ".join(kind.__name__ for kind in m.VERSIONS)
            raise IllegalEvent(f"{type(body).__name__} is no request; those that are: {names}")
        if self._task is None or self._task.done():
            raise Stopped
        newest = m.VERSIONS[type(body)][1]
        answer: asyncio.Future[m.ResponseBody] = asyncio.get_running_loop().create_future()
        self._inbox.put_nowait(
            _Ask(
                body,
                newest if version is None else version,
                client_id,
                client_host,
                denied,
                denied_topics,
                denied_transactional_ids,
                answer,
            )
        )
        return await answer

    def set_topics(self, topics: Iterable[Topic]) -> None:
        """These are all topics from now on; consumer groups assign their partitions (M-META-03).

        Raises ``Stopped`` if nobody serves, ``IllegalEvent`` for what is no topic."""
        self._images += 1
        rows, version = tuple(topics), self._images
        self._tell(lambda at_ms: TopicsChanged(at_ms, rows, version=version))
        self._topics = rows

    @property
    def topics(self) -> tuple[Topic, ...]:
        """Those that ``set_topics`` told last."""
        return self._topics

    def configure(self, group_id: str, config: GroupConfig | None) -> None:
        """The settings of this group from now on; None: all default (M-CFG-01). Raises ``Stopped`` if nobody serves."""
        self._tell(lambda at_ms: GroupConfigChanged(at_ms, group_id, config))

    def _tell(self, event: Callable[[int], Event]) -> None:
        if self._task is None or self._task.done():
            raise Stopped
        wrong = fault(event(0))
        if wrong is not None:
            raise IllegalEvent(wrong)
        self._inbox.put_nowait(_News(event))

    def view(self, group_id: str) -> GroupView | None:
        """What the coordinator holds of a classic group at this moment."""
        return view(self._state, group_id)

    def consumer_view(self, group_id: str) -> ConsumerGroupView | None:
        """What the coordinator holds of a consumer group at this moment."""
        return consumer_view(self._state, group_id)

    def offsets_view(self) -> OffsetsView:
        """What the coordinator holds of offsets at this moment."""
        return offsets_view(self._state)

    async def _run(self) -> None:
        try:
            while not isinstance(item := await self._inbox.get(), _Stop):
                await self._handle(item)
        finally:
            self._feed(Unload(self._tick(), leader_epoch=None))
            while not self._inbox.empty():
                left = self._inbox.get_nowait()
                if isinstance(left, _Ask) and not left.answer.done():
                    left.answer.set_exception(Stopped())

    async def _handle(self, item: _Ask | _Alarm | _Task | _News) -> None:
        event = self._event(item)
        if event is None:
            return
        try:
            outcome = self._feed(event)
        except Exception as failure:  # the state is as before; only the one who asked is told
            if not isinstance(event, Request):
                _log.exception("the coordinator could not handle %s", event)
                return
            answer = self._asked.pop(event.id)
            if not answer.done():
                answer.set_exception(failure)
            return
        if outcome.records:
            await self._append(outcome)

    def _event(self, item: _Ask | _Alarm | _Task | _News) -> Event | None:
        if isinstance(item, _Alarm):
            if self._alarms.get(item.key) is not item:
                return None  # F-RT-17
            del self._alarms[item.key]
            self._now = max(self._now, item.due)  # the loop's clock says so; the other one may have been set back
            return TimerFired(self._tick(), item.key)
        if isinstance(item, _Task):
            if self._tasks.get(item.key) is not item:
                return None  # the partition was lost in between (F-UNLOAD-01)
            del self._tasks[item.key]
            return TaskDone(self._tick(), item.key)
        if isinstance(item, _News):
            return item.event(self._tick())
        self._ids += 1
        self._asked[self._ids] = item.answer
        return Request(
            self._tick(),
            id=self._ids,
            version=item.version,
            client_id=item.client_id,
            client_host=item.client_host,
            body=item.body,
            denied=item.denied,
            denied_topics=item.denied_topics,
            denied_transactional_ids=item.denied_transactional_ids,
        )

    async def _append(self, outcome: Outcome) -> None:
        """Hand the records to the store; an append may lead to further ones (C-ADM-09)."""
        records = outcome.records
        while records:
            try:
                await self._store.append(records)
            except AppendError as failure:
                records = self._feed(AppendFailed(self._tick(), failure.error)).records
            except Exception:
                _log.exception("the store failed; loading again to see what it holds")
                self._feed(Unload(self._tick(), leader_epoch=None))
                await self._load()  # F-RT-12, F-RT-18
                return
            else:
                self._log_end += len(records)
                records = self._feed(Appended(self._tick(), offset=self._log_end)).records

    async def _load(self) -> None:
        records = for_load(await self._store.load())
        self._log_end = len(records)
        self._epoch += 1
        self._tasks.clear()
        self._feed(Load(self._tick(), leader_epoch=self._epoch, records=records))

    def _feed(self, event: Event) -> Outcome:
        self._state, outcome = step(self._state, event, self._choices)
        for command in outcome.timers:
            old = self._alarms.pop(command.key, None)
            if old is not None:
                old.handle.cancel()
            if isinstance(command, SetTimer):
                alarm = _Alarm(command.key, event.at_ms + command.delay_ms)
                loop = asyncio.get_running_loop()
                alarm.handle = loop.call_later(command.delay_ms / 1_000, self._inbox.put_nowait, alarm)
                self._alarms[command.key] = alarm
        for key in outcome.tasks:
            task = self._tasks[key] = _Task(key)
            self._inbox.put_nowait(task)
        for reply in outcome.replies:
            answer = self._asked.pop(reply.request_id)
            if not answer.done():
                answer.set_result(reply.body)
        return outcome

    def _tick(self) -> int:
        """The time, never going back."""
        self._now = max(self._now, self._clock())
        return self._now
