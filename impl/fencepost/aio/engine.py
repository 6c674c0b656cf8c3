"""What drives the coordinators of a broker: steps, timers, tasks, and what has become of appends.

Events are handled where they come in, one after the other, and nothing waits in between: a step is a function. What it
writes is handed to the store, which makes many appends durable at once, and the steps go on meanwhile; answers that
must not be ahead of the log wait for it in the core. When an append has failed and nothing was handled since, the core
takes back what it did (F-RT-08). Else the partition is loaded again, for later steps stand on what is not there
(F-RT-12, F-RT-18); and from then on its appends go one at a time, until one succeeds.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from fencepost.coordinator import CoordinatorState
from fencepost.coordinator.kernel.state import Status
from fencepost.host import broker as host
from fencepost.host.broker import HostEvent
from fencepost.log import FencedEpoch
from fencepost.protocol.choices import Choices
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    Load,
    LoadFailed,
    LoadStarted,
    Outcome,
    SetTimer,
    TaskDone,
    TaskKey,
    TimerFired,
    TimerKey,
    Unload,
)
from fencepost.protocol.logged import for_load
from fencepost.protocol.messages import ResponseBody
from fencepost.store import AppendError, Store, StoreError

from .led import Alarm, Flight, Led

_log = logging.getLogger(__name__)

#: So long it waits before it loads a partition again that could not be loaded.
RETRY_S: Final = 1.0
#: So long it waits with the next compaction when one has failed.
REST_S: Final = 60.0
Watcher: TypeAlias = Callable[[HostEvent, host.Served], None]


@dataclass(slots=True)
class Counts:
    """What a broker has done since its start: ``events`` handled, ``records`` handed to the store in ``appends``, of
    which ``failed`` were refused; partitions ``loaded`` again; records ``compacted`` away."""

    events: int = 0
    records: int = 0
    appends: int = 0
    failed: int = 0
    loaded: int = 0
    compacted: int = 0


class Engine:
    """Drives the coordinators of ``broker``, which leads nothing yet, within the running event loop."""

    def __init__(
        self, store: Store, broker: host.Broker, choices: Choices, clock: Callable[[], int], fenced: asyncio.Event
    ) -> None:
        self.broker = broker
        self.led: dict[int, Led] = {}
        self.counts = Counts()
        self.watchers: list[Watcher] = []
        self._store = store
        self._choices = choices
        self._clock = clock
        self._fenced = fenced
        self._loop = asyncio.get_running_loop()
        self._now = 0
        self._ids = 0
        self._open: dict[int, asyncio.Future[ResponseBody]] = {}
        self._held: deque[Callable[[], None]] = deque()
        self._flying: set[int] = set()  #: partitions that may have appends under way
        self._careful: set[int] = set()  #: partitions whose last append has failed
        self._holding = False  #: until all that is under way has landed
        self._busy = False  #: a step is being made
        self._compacting: asyncio.Task[None] | None = None
        self._rest = 0.0  #: no compaction before that time

    # what comes from outside

    async def lead(self, partition: int) -> None:
        """Be elected, and load the partition. Raises what the store raises, and ``StoreError`` for records that make no
        sense."""
        led = Led(partition, await self._store.lead(partition))
        records = for_load(await self._store.load(partition))
        self.led[partition] = led
        self._at_once(lambda: self._own(led, Load(self.tick(), leader_epoch=led.epoch, records=records)))
        if self.state(partition).status is not Status.ACTIVE:
            del self.led[partition]
            raise StoreError(f"partition {partition} holds records that no coordinator writes; it is not served")

    def give_up(self, partition: int) -> None:
        """Lead it no more, if it is led."""
        led = self.led.get(partition)
        if led is not None:
            self._at_once(lambda: self._give_up(led))

    def ask(self, event: Callable[[int], HostEvent]) -> asyncio.Future[ResponseBody]:
        """Handle a request, now if nothing must land before; ``event`` makes it of its id. The answer."""
        answer: asyncio.Future[ResponseBody] = self._loop.create_future()
        if self._busy or self._held or self._flying:  # while all is to land, something is under way
            self._now_or_later(lambda: self._request(event, answer))
            return answer
        self._busy = True  # nobody waits, and nothing is under way that must land first
        try:
            self._request(event, answer)
        finally:
            self._busy = False
        if self._held:
            self._release()
        return answer

    def tell(self, event: Callable[[], HostEvent]) -> None:
        """Handle an event that nobody waits for."""

        def act() -> None:
            try:
                self._feed(event())
            except Exception:  # the state is as before
                _log.exception("the broker could not handle an event")

        self._now_or_later(act)

    async def drain(self) -> None:
        """Let all land that is under way, then give every partition up."""
        self._holding = True
        while flying := [flight.done for led in self.led.values() for flight in led.flights]:
            await asyncio.wait(flying)
            await asyncio.sleep(0)
        for led in list(self.led.values()):
            self._at_once(lambda led=led: self._give_up(led))  # type: ignore[misc]
        if self._compacting is not None:
            await asyncio.wait([self._compacting])
        self._holding = False
        self._release()

    def end(self, reason: Exception) -> None:
        """Nobody is answered any more."""
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(reason)
        self._open.clear()

    def state(self, partition: int) -> CoordinatorState:
        """The coordinator of a partition, led here or not."""
        return self.broker.coordinators[partition]

    def tick(self) -> int:
        """The time, never going back."""
        self._now = max(self._now, self._clock())
        return self._now

    # whose turn it is

    def _now_or_later(self, act: Callable[[], None]) -> None:
        self._held.append(act)
        if not self._busy:
            self._release()

    def _at_once(self, act: Callable[[], None]) -> None:
        """Even if others wait; it may be what they wait for."""
        if self._busy:
            act()
            return
        self._busy = True
        try:
            act()
        finally:
            self._busy = False
        self._release()

    def _release(self) -> None:
        """Handle what is held, unless something must land first."""
        self._busy = True
        try:
            while self._held:
                self._settle_landed()
                if self._waits():
                    return
                self._held.popleft()()
        finally:
            self._busy = False

    def _waits(self) -> bool:
        return self._holding or any(place in self.led and self.led[place].flights for place in self._careful)

    # a step

    def _request(self, event: Callable[[int], HostEvent], answer: asyncio.Future[ResponseBody]) -> None:
        self._ids += 1
        number = self._ids
        self._open[number] = answer
        try:
            self._feed(event(number))
        except Exception as failure:  # the state is as before; only the one who asked is told
            self._open.pop(number, None)
            if not answer.done():
                answer.set_exception(failure)

    def _own(self, led: Led, event: Event) -> None:
        """An event of one partition."""
        try:
            self._feed(host.OnPartition(led.partition, event))
        except Exception:  # the state is as before
            _log.exception("partition %s could not handle %s", led.partition, event)

    def _feed(self, event: HostEvent) -> None:
        """One step, and what it asks for."""
        self.broker, served = host.step(self.broker, event, self._choices)
        self.counts.events += 1
        at_ms = event.event.at_ms if isinstance(event, host.OnPartition) else event.at_ms
        wrote = []
        for place, outcome in served.parts:
            led = self.led.get(place)
            if led is not None:
                self._take_up(led, outcome, at_ms)
                if outcome.written:
                    self._append(led, outcome)
                    wrote.append(led)
        for reply in served.replies:
            answer = self._open.pop(reply.request_id, None)
            if answer is not None and not answer.done():
                answer.set_result(reply.body)
        for watcher in self.watchers:
            watcher(event, served)
        for led in wrote:
            if not led.sinking:  # the store may be quick enough
                self._settle(led)

    def _take_up(self, led: Led, outcome: Outcome, at_ms: int) -> None:
        """Timers and tasks."""
        for command in outcome.timers:
            old = led.alarms.get(command.key)
            if isinstance(command, SetTimer):
                at = self._loop.time() + command.delay_ms / 1_000
                if old is not None and old.wakes <= at and not old.rung:
                    old.due, old.at = at_ms + command.delay_ms, at
                    continue
                if old is not None:
                    old.handle.cancel()
                handle = self._loop.call_at(at, self._ring, led, command.key)
                led.alarms[command.key] = Alarm(command.key, at_ms + command.delay_ms, at, at, handle)
            elif old is not None:
                del led.alarms[command.key]
                old.handle.cancel()
        for key in outcome.tasks:
            led.tasks[key] = self._loop.call_soon(self._have_done, led, key)

    def _ring(self, led: Led, key: TimerKey) -> None:
        """A timer is due, or was; when its turn has come it may be set again, or gone (F-RT-17)."""
        alarm = led.alarms[key]
        if alarm.at > alarm.wakes:
            alarm.wakes = alarm.at
            alarm.handle = self._loop.call_at(alarm.at, self._ring, led, key)
            return
        alarm.rung = True

        def fire() -> None:
            if led.alarms.get(alarm.key) is alarm:
                del led.alarms[alarm.key]
                self._now = max(self._now, alarm.due)  # the loop's clock says so; the other may have been set back
                self._own(led, TimerFired(self.tick(), alarm.key))

        self._now_or_later(fire)

    def _have_done(self, led: Led, key: TaskKey) -> None:
        def done() -> None:
            if led.tasks.pop(key, None) is not None:  # else the partition was lost while this was held
                self._own(led, TaskDone(self.tick(), key))

        self._now_or_later(done)

    # the log

    def _append(self, led: Led, outcome: Outcome) -> None:
        if led.sinking:  # it is about to be loaded again, and nothing may go behind what has failed
            return
        state = self.state(led.partition)
        done = self._store.append(led.partition, outcome.written, leader_epoch=led.epoch)
        led.flights.append(Flight(state.end, state.handled, done))
        self._flying.add(led.partition)
        self.counts.appends += 1
        self.counts.records += len(outcome.written)
        # Others may be done with it: the first that is looked at tells the core of all, and finds none if it is late.
        done.add_done_callback(lambda _: self._loop.call_soon(self._at_once, lambda: self._settle(led)))

    def _settle_landed(self) -> None:
        """What has landed is told before anything else is handled: from the moment that an append has failed the store
        takes others, and none may go behind it."""
        for place in list(self._flying):
            led = self.led.get(place)
            if led is None or not led.flights:
                self._flying.discard(place)
            elif led.flights[0].done.done():
                self._settle(led)

    def _settle(self, led: Led) -> None:
        """Tell the core what has become of appends, in their order."""
        end = None
        while led.flights and led.flights[0].done.done() and led.flights[0].done.exception() is None:
            end = led.flights.popleft().end
        if end is not None:
            self._careful.discard(led.partition)
        failed = led.flights[0] if led.flights and led.flights[0].done.done() else None
        failure = None if failed is None else failed.done.exception()
        if isinstance(failure, AppendError) and self._newest(led, led.flights[0]):
            self._refused(led, failure)
            failure = None
        led.sinking = failure is not None
        if end is not None:
            self._own(led, Appended(self.tick(), offset=end))
            self._compact(led)
        if failure is not None:
            self._failed(led, failure)

    def _newest(self, led: Led, flight: Flight) -> bool:
        """Whether nothing was handled since it was asked for; so no other append was asked for either."""
        return self.state(led.partition).handled == flight.handled

    def _refused(self, led: Led, failure: AppendError) -> None:
        """Nothing of the newest append is there: the core takes it back (F-RT-08)."""
        _log.warning("partition %s could not be written: %s", led.partition, failure)
        self.counts.failed += 1
        self._careful.add(led.partition)
        led.flights.clear()
        self._own(led, AppendFailed(self.tick(), failure.error))

    def _failed(self, led: Led, failure: BaseException) -> None:
        self.counts.failed += 1
        if isinstance(failure, FencedEpoch):
            _log.warning("partition %s is led by another broker: %s", led.partition, failure)
            self._give_up(led)
            self._fenced.set()
        else:
            _log.error("partition %s could not be written; loading it again: %s", led.partition, failure)
            self._careful.add(led.partition)
            self._load_again(led)

    def _give_up(self, led: Led) -> None:
        """The partition is not led here any more; whoever waits in it is told so (F-UNLOAD-01)."""
        _look_at(led.forget())
        if led.loading is not None:
            led.loading.cancel()
        self._own(led, Unload(self.tick(), leader_epoch=None))
        self.led.pop(led.partition, None)

    def _load_again(self, led: Led) -> None:
        """What the store holds is what counts (F-RT-12, F-RT-18)."""
        left = led.forget()
        _look_at(left)
        self._begin(led)
        led.loading = self._loop.create_task(self._load(led, left))

    def _begin(self, led: Led) -> None:
        self._own(led, Unload(self.tick(), leader_epoch=None))
        self._own(led, LoadStarted(self.tick(), leader_epoch=led.epoch))

    async def _load(self, led: Led, left: list[asyncio.Future[None]]) -> None:
        if left:
            await asyncio.wait(left)
        while True:
            try:
                records = for_load(await self._store.load(led.partition))
            except Exception:
                _log.exception("partition %s cannot be loaded; trying again", led.partition)
                event: Event = LoadFailed(self.tick(), leader_epoch=led.epoch)
            else:
                event = Load(self.tick(), leader_epoch=led.epoch, records=records)
            self._at_once(lambda event=event: self._own(led, event))  # type: ignore[misc]
            if self.state(led.partition).status is Status.ACTIVE:
                break
            await asyncio.sleep(RETRY_S)
            self._at_once(lambda: self._begin(led))
        led.loading = None
        self.counts.loaded += 1

    def _compact(self, led: Led) -> None:
        if self._compacting is None and self._loop.time() >= self._rest and self._store.due(led.partition):
            self._compacting = self._loop.create_task(self._compaction(led.partition))

    async def _compaction(self, partition: int) -> None:
        try:
            gone = await self._store.compact(partition)
            self.counts.compacted += gone
        except Exception:
            _log.exception("partition %s could not be compacted; nothing that is needed is gone", partition)
            self._rest = self._loop.time() + REST_S
        finally:
            self._compacting = None


def _look_at(appends: list[asyncio.Future[None]]) -> None:
    """Nobody else looks at how they end."""
    for done in appends:
        done.add_done_callback(lambda each: each.exception())
