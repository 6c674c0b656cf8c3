"""A member's step function in an event loop: real timers, requests as tasks, and a listener that may take long.

The Java consumer's threads are one loop here. The driver polls, not the program, as long as no listener runs. A program
that keeps partitions which it must give up keeps its listener running. Then there are no polls, and the member leaves
the group after ``max_poll_interval_ms``, like a consumer whose program has stopped polling (K-HB-03, N-TR-09).

A classic member gets the response to a request only when a client would read it: between polls its heartbeat thread
reads, and a JoinGroup response waits for a poll. The background of a KIP-848 member always reads.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from random import uniform
from typing import Final, TypeAlias

from fencepost.member import Member
from fencepost.member import step as classic_step
from fencepost.member.consumer import ConsumerMember, consumer_step
from fencepost.member.events import (
    Answered,
    Call,
    CancelMemberTimer,
    Close,
    CloseOption,
    Command,
    Commit,
    CommitFinished,
    CommitResult,
    CoordinatorFound,
    Disconnect,
    Failure,
    FindCoordinator,
    Listener,
    ListenerDone,
    LookupFailed,
    MemberEvent,
    MemberTimer,
    MemberTimerFired,
    MetadataChanged,
    Poll,
    RequestLost,
    RequestMetadata,
    Returned,
    Send,
    SetMemberTimer,
    Subscribe,
    SubscribePattern,
    SubscribeRegex,
)
from fencepost.protocol.partitions import TopicPartition

from .link import Link, NoCoordinator

AnyMember: TypeAlias = Member | ConsumerMember
#: Called with the call and its partitions; the member resumes when it returns. Its exception is thrown (K-CB-09).
Listens: TypeAlias = Callable[[Call, tuple[TopicPartition, ...]], Awaitable[None]]

POLL_S: Final = 0.1
#: How long a close waits for outstanding responses, in seconds.
FAREWELL_S: Final = 2.0
_LANE: Final = "group"
_SOON_S: Final = 0.005


class Driver:
    """Runs one member. ``failure``: what its last poll threw; ``changed``: called after every step."""

    def __init__(self, link: Link, member: AnyMember, listens: Listens, changed: Callable[[], None]) -> None:
        self.member = member
        self.failure: Failure | None = None
        self._link = link
        self._listens = listens
        self._changed = changed
        self._group_id = member.settings.group_id
        self._loop = asyncio.get_running_loop()
        self._now = 0
        self._timers: dict[MemberTimer, asyncio.TimerHandle] = {}
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: set[asyncio.Task[None]] = set()
        self._inbox: list[MemberEvent] = []
        self._poller: asyncio.TimerHandle | None = None
        self._running = False
        self._closing = False

    # --- the program's calls ---

    def start(self, topics: frozenset[str] | re.Pattern[str], metadata_max_age_ms: int) -> None:
        """Subscribe and start to poll. Raises ``ValueError`` for a subscription that Kafka rejects (K-SUB-01)."""
        self._running = True
        self._feed(self._subscribes(topics))
        self._spawn(self._look_again(metadata_max_age_ms / 1000))
        self._poll_again()

    def _subscribes(self, topics: frozenset[str] | re.Pattern[str]) -> MemberEvent:
        if not isinstance(topics, re.Pattern):
            return Subscribe(self._clock(), topics)
        if isinstance(self.member, Member):
            return SubscribePattern(self._clock(), topics.pattern)
        return SubscribeRegex(self._clock(), topics.pattern)

    async def close(self, option: CloseOption) -> None:
        """Leave and end. Waits for the listener without limit, and a short time for the response to the leave. There
        are no more polls: each could call the listener again, and a slow listener would delay the leave for ever."""
        if not self._running:
            return
        self._closing = True
        if self._poller is not None:
            self._poller.cancel()
        await self._listened()
        if not self.member.closed:
            self._feed(Close(self._clock(), option))
        await self._listened()
        late = self._loop.time() + FAREWELL_S
        while (self.member.waiting is not None or self._asked) and self._loop.time() < late:
            await asyncio.sleep(_SOON_S)
        self.end()

    async def _listened(self) -> None:
        """Wait until no listener runs."""
        while self._listening:
            await asyncio.wait({*self._listening})

    def end(self) -> None:
        """Stop without leaving, as a crash would."""
        self._running = False
        for timer in (*self._timers.values(), *([self._poller] if self._poller else [])):
            timer.cancel()
        for task in (*self._tasks, *self._asked.values()):
            task.cancel()
        self._timers.clear()

    def deliver(self, event: MemberEvent) -> None:
        """Pass an event from outside to the member."""
        if not self._running:
            return
        if isinstance(event, Answered) and not self._reads:
            self._inbox.append(event)
        else:
            self._feed(event)
        self._poll()

    def clock(self) -> int:
        """Return the time for an event that is delivered now: milliseconds that never decrease."""
        return self._clock()

    # --- the loop ---

    @property
    def _idle(self) -> bool:
        return self.member.waiting is None and not self.member.closed

    @property
    def _reads(self) -> bool:
        member = self.member
        return isinstance(member, ConsumerMember) or member.state.in_generation or member.closed

    def _clock(self) -> int:
        self._now = max(self._now, int(self._loop.time() * 1000))
        return self._now

    def _poll_again(self) -> None:
        self._poll()
        if self._running and self.failure is None:
            self._poller = self._loop.call_later(POLL_S, self._poll_again)

    def _poll(self) -> None:
        while self._inbox and self._idle:
            self._feed(self._inbox.pop(0))
        if self._running and not self._closing and self._idle and self.failure is None:
            self._feed(Poll(self._clock()))

    def _feed(self, event: MemberEvent) -> None:
        jitter = uniform(0.8, 1.2)
        commands: Iterable[Command]
        if isinstance(self.member, Member):
            self.member, commands = classic_step(self.member, event, jitter)
        else:
            self.member, commands = consumer_step(self.member, event, jitter)
        for command in commands:
            self._carry_out(command)
        self._changed()

    def _carry_out(self, command: Command) -> None:
        match command:
            case Send():
                task = self._loop.create_task(self._ask(command))
                self._asked[command.request_id] = task
                task.add_done_callback(lambda _: self._asked.pop(command.request_id, None))
            case FindCoordinator():
                self._spawn(self._find())
            case RequestMetadata(topics=names, topic_ids=ids):
                self._spawn(self._look_at(names, ids))
            case Listener(call=call, partitions=partitions):
                listening = self._spawn(self._listen(call, partitions))
                self._listening.add(listening)
                listening.add_done_callback(self._listening.discard)
            case SetMemberTimer(timer=timer, delay_ms=delay):
                self._cancel(timer)
                due = self._now + delay
                self._timers[timer] = self._loop.call_later(delay / 1000, self._fire, timer, due)
            case CancelMemberTimer(timer=timer):
                self._cancel(timer)
            case Disconnect():
                self._link.forget(self._group_id)
                for task in self._asked.values():
                    task.cancel()
            case Returned(failure=failure):
                if failure is not None:
                    self.failure = failure
            case Commit(commit_id=number):
                # Workers commit through their shares, so the member has nothing to commit.
                self._loop.call_soon(
                    lambda: self.deliver(CommitFinished(self._clock(), commit_id=number, result=CommitResult.DONE))
                )

    def _spawn(self, what: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _cancel(self, timer: MemberTimer) -> None:
        handle = self._timers.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, timer: MemberTimer, due: int) -> None:
        self._timers.pop(timer, None)
        self._now = max(self._now, due)  # the loop's clock is finer, and may fire slightly early
        self.deliver(MemberTimerFired(self._clock(), timer))

    # --- tasks ---

    async def _ask(self, command: Send) -> None:
        try:
            async with asyncio.timeout(command.timeout_ms / 1000):
                body = await self._link.ask(self._group_id, command.body, _LANE)
        except (OSError, TimeoutError):
            self.deliver(RequestLost(self._clock(), request_id=command.request_id))
        else:
            self.deliver(Answered(self._clock(), request_id=command.request_id, body=body))

    async def _find(self) -> None:
        try:
            node = await self._link.find(self._group_id)
        except NoCoordinator as none:
            self.deliver(LookupFailed(self._clock(), none.error))
        except OSError:
            self.deliver(LookupFailed(self._clock(), None))
        else:
            self.deliver(CoordinatorFound(self._clock(), node=node))

    async def _look_at(self, names: frozenset[str], ids: frozenset[bytes]) -> None:
        while True:
            try:
                topics = await self._link.topics(names, ids)
            except OSError:
                await asyncio.sleep(self.member.settings.retry_backoff_ms / 1000)
            else:
                self.deliver(MetadataChanged(self._clock(), topics))
                return

    async def _look_again(self, every_s: float) -> None:
        """Refresh the topics for members with an expression, and for leaders (K-JOIN-15, K-JOIN-18)."""
        while True:
            await asyncio.sleep(every_s)
            await self._look_at(frozenset(), frozenset())

    async def _listen(self, call: Call, partitions: tuple[TopicPartition, ...]) -> None:
        error: str | None = None
        try:
            await self._listens(call, partitions)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        self.deliver(ListenerDone(self._clock(), error))
