"""The engine of a ``GroupBroker``: it makes the steps of its coordinators and handles timers, tasks and appends.

The engine handles events as they arrive, one after the other. A step is a plain function, so nothing runs in between.
The engine passes the records of a step to the store and continues with the next step; the store makes several appends
durable together. In the core, answers that must not be ahead of the log wait until their records are durable. If an
append fails and its coordinator has handled no event since, the core undoes the step (F-RT-08). Otherwise later steps
depend on records that were not written, so the partition is loaded again (F-RT-12, F-RT-18). After a failure, the
partition has only one append under way at a time, until one succeeds.
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
    TimerCommand,
    TimerFired,
    TimerKey,
    TimerKind,
    Unload,
)
from fencepost.protocol.logged import for_load
from fencepost.protocol.messages import ResponseBody
from fencepost.store import AppendError, Store, StoreError

from .led import Alarm, Deadline, Flight, Led

_log = logging.getLogger(__name__)

#: Time between two attempts to load a partition.
RETRY_S: Final = 1.0
#: Time without compaction after one has failed.
REST_S: Final = 60.0
#: A timer that is due within this time, in seconds, fires now.
_RESOLUTION: Final = 1e-6
Watcher: TypeAlias = Callable[[HostEvent, host.Served], None]


@dataclass(slots=True)
class Counts:
    """Counts since the broker's start: ``events`` handled; ``records`` passed to the store in ``appends``, of which
    ``failed`` did not succeed; partitions ``loaded`` again; records removed by compaction (``compacted``)."""

    events: int = 0
    records: int = 0
    appends: int = 0
    failed: int = 0
    loaded: int = 0
    compacted: int = 0


class Engine:
    """Runs the coordinators of ``broker`` in the current event loop. The broker must not lead a partition yet."""

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
        self._careful: set[int] = set()  #: partitions whose last append failed: one append at a time
        self._holding = False  #: draining: events are held until all appends have finished
        self._busy = False  #: an event is being handled
        self._compacting: asyncio.Task[None] | None = None
        self._rest = 0.0  #: no compaction before this time of the loop's clock

    # calls of the broker

    async def lead(self, partition: int) -> None:
        """Become leader of a partition and load it. Raises what the store raises, and ``StoreError`` if the records
        cannot be loaded."""
        led = Led(partition, await self._store.lead(partition))
        records = for_load(await self._store.load(partition))
        self.led[partition] = led
        self._at_once(lambda: self._own(led, Load(self.tick(), leader_epoch=led.epoch, records=records)))
        if self.state(partition).status is not Status.ACTIVE:
            del self.led[partition]
            raise StoreError(f"partition {partition} cannot be loaded: it contains records that no coordinator writes")

    def give_up(self, partition: int) -> None:
        """Stop leading a partition. Does nothing if the broker does not lead it."""
        led = self.led.get(partition)
        if led is not None:
            self._at_once(lambda: self._give_up(led))

    def ask(self, event: Callable[[int], HostEvent]) -> asyncio.Future[ResponseBody]:
        """Handle a request, immediately unless events are held; ``event`` builds it from its id. Returns the answer."""
        answer: asyncio.Future[ResponseBody] = self._loop.create_future()
        if self._busy or self._held or self._flying:  # ``_holding`` is not checked: it matters only while appends fly
            self._now_or_later(lambda: self._request(event, answer))
            return answer
        self._busy = True  # the fast path: no event is held, and no append is under way
        try:
            self._request(event, answer)
        finally:
            self._busy = False
        if self._held:
            self._release()
        return answer

    def handle(self, event: Callable[[], HostEvent]) -> None:
        """Handle an event that has no answer."""

        def act() -> None:
            try:
                self._feed(event())
            except Exception:  # the state is unchanged
                _log.exception("the broker could not handle an event")

        self._now_or_later(act)

    async def drain(self) -> None:
        """Wait until all appends have finished, then give up every partition."""
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
        """Fail all requests that are still waiting with ``reason``."""
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(reason)
        self._open.clear()

    def state(self, partition: int) -> CoordinatorState:
        """Return the coordinator of a partition, whether or not this broker leads it."""
        return self.broker.coordinators[partition]

    def tick(self) -> int:
        """Return the time in ms; it never goes back."""
        self._now = max(self._now, self._clock())
        return self._now

    # the order of events

    def _now_or_later(self, act: Callable[[], None]) -> None:
        self._held.append(act)
        if not self._busy:
            self._release()

    def _at_once(self, act: Callable[[], None]) -> None:
        """Call ``act`` ahead of the held events, which may wait for it."""
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
        """Handle the held events, until one must wait for an append."""
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
        except Exception as failure:  # the state is unchanged; only the requester gets the error
            self._open.pop(number, None)
            if not answer.done():
                answer.set_exception(failure)

    def _own(self, led: Led, event: Event) -> None:
        """Handle an event of one partition."""
        try:
            self._feed(host.OnPartition(led.partition, event))
        except Exception:  # the state is unchanged
            _log.exception("partition %s could not handle %s", led.partition, event)

    def _feed(self, event: HostEvent) -> None:
        """Make one step and carry out its outcome."""
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
            if not led.append_failed:  # the store may have finished the append already
                self._settle(led)

    def _take_up(self, led: Led, outcome: Outcome, at_ms: int) -> None:
        """Set and cancel timers, and start tasks."""
        for command in outcome.timers:
            if command.key.kind is TimerKind.OPERATION:
                self._watch_operation(led, command, at_ms)
                continue
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

    def _watch_operation(self, led: Led, command: TimerCommand, at_ms: int) -> None:
        """Set or cancel the timer of a write. Each write sets one, and cancels it when it is durable. So only the next
        one that is due has a handle in the loop."""
        key = command.key
        if isinstance(command, SetTimer):
            at = self._loop.time() + command.delay_ms / 1_000
            led.operations[key.operation] = Deadline(key, at_ms + command.delay_ms, at)
            if led.watch is None or at < led.watch.when():
                self._watch(led, at)
        else:
            led.operations.pop(key.operation, None)

    def _watch(self, led: Led, at: float) -> None:
        """Look at the timers of writes at that time, instead of at the time that was set before."""
        if led.watch is not None:
            led.watch.cancel()
        led.watch = self._loop.call_at(at, self._fire_operations, led)

    def _fire_operations(self, led: Led) -> None:
        """Fire the timers of writes that are due, in the order in which they are due."""
        now, led.watch = self._loop.time() + _RESOLUTION, None
        due = sorted((each for each in led.operations.values() if each.at <= now), key=lambda each: each.at)
        for each in due:
            each.rung = True

            def fire(each: Deadline = each) -> None:
                if led.operations.get(each.key.operation) is each:
                    del led.operations[each.key.operation]
                    self._now = max(self._now, each.due)
                    self._own(led, TimerFired(self.tick(), each.key))

            self._now_or_later(fire)
        later = [each.at for each in led.operations.values() if not each.rung]
        if later:
            self._watch(led, min(later))

    def _ring(self, led: Led, key: TimerKey) -> None:
        """Fire a timer, unless it was set again for later. It may also be set again or cancelled before its turn comes
        (F-RT-17)."""
        alarm = led.alarms[key]
        if alarm.at > alarm.wakes:
            alarm.wakes = alarm.at
            alarm.handle = self._loop.call_at(alarm.at, self._ring, led, key)
            return
        alarm.rung = True

        def fire() -> None:
            if led.alarms.get(alarm.key) is alarm:
                del led.alarms[alarm.key]
                self._now = max(self._now, alarm.due)  # due by the loop's clock; self._clock may have been set back
                self._own(led, TimerFired(self.tick(), alarm.key))

        self._now_or_later(fire)

    def _have_done(self, led: Led, key: TaskKey) -> None:
        def done() -> None:
            if led.tasks.pop(key, None) is not None:  # else the partition was unloaded while the event was held
                self._own(led, TaskDone(self.tick(), key))

        self._now_or_later(done)

    # the log

    def _append(self, led: Led, outcome: Outcome) -> None:
        if led.append_failed:  # the partition is about to be loaded again; no append may follow the failed one
            return
        state = self.state(led.partition)
        done = self._store.append(led.partition, outcome.written, leader_epoch=led.epoch)
        led.flights.append(Flight(state.end, state.handled, done))
        self._flying.add(led.partition)
        self.counts.appends += 1
        self.counts.records += len(outcome.written)
        if len(led.flights) == 1:
            self._await_first(led)

    def _await_first(self, led: Led) -> None:
        """Wait for the first append under way. Those that finish in the same turn are settled with it."""
        led.flights[0].done.add_done_callback(lambda _: self._landed(led))

    def _landed(self, led: Led) -> None:
        """An append has finished: settle it together with those that finish in the same turn of the loop."""
        if not led.landing:
            led.landing = True
            self._loop.call_soon(self._at_once, lambda: self._settle_soon(led))

    def _settle_soon(self, led: Led) -> None:
        led.landing = False
        self._settle(led)

    def _settle_landed(self) -> None:
        """Settle finished appends before another event is handled. Once an append has failed, the store accepts others
        again, and none of those queued here may follow the failed one."""
        for place in list(self._flying):
            led = self.led.get(place)
            if led is None or not led.flights:
                self._flying.discard(place)
            elif led.flights[0].done.done():
                self._settle(led)

    def _settle(self, led: Led) -> None:
        """Report finished appends to the core, in their order."""
        end = None
        while led.flights and led.flights[0].done.done() and led.flights[0].done.exception() is None:
            end = led.flights.popleft().end
        if end is not None:
            self._careful.discard(led.partition)
            if led.flights:
                self._await_first(led)
        failed = led.flights[0] if led.flights and led.flights[0].done.done() else None
        failure = None if failed is None else failed.done.exception()
        if isinstance(failure, AppendError) and self._newest(led, led.flights[0]):
            self._refused(led, failure)
            failure = None
        led.append_failed = failure is not None
        if end is not None:
            self._own(led, Appended(self.tick(), offset=end))
            self._compact(led)
        if failure is not None:
            self._failed(led, failure)

    def _newest(self, led: Led, flight: Flight) -> bool:
        """Return whether the coordinator has handled no event since this append; then it is also the last append."""
        return self.state(led.partition).handled == flight.handled

    def _refused(self, led: Led, failure: AppendError) -> None:
        """Have the core undo the step of the newest append, of which the store has written nothing (F-RT-08)."""
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
        """Stop leading the partition; its waiting requests are answered NOT_COORDINATOR (F-UNLOAD-01)."""
        _look_at(led.forget())
        if led.loading is not None:
            led.loading.cancel()
        self._own(led, Unload(self.tick(), leader_epoch=None))
        self.led.pop(led.partition, None)

    def _load_again(self, led: Led) -> None:
        """Load the partition again: the records in the store decide (F-RT-12, F-RT-18)."""
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
            _log.exception("partition %s could not be compacted; no data is lost", partition)
            self._rest = self._loop.time() + REST_S
        finally:
            self._compacting = None


def _look_at(appends: list[asyncio.Future[None]]) -> None:
    """Retrieve the exceptions of appends that are no longer awaited, so that asyncio does not warn about them."""
    for done in appends:
        done.add_done_callback(lambda each: each.exception())
