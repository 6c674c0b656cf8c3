"""A worker: a member of a group whose program works on what it is given, and commits.

```python
async with groups.worker("orders", topics=["orders"]) as worker:
    async for share in worker:
        while share.held:
            ...  # work on share.partitions, then share.commit(...)
```

The loop over a worker is its rebalance listener. A share ends when any of its partitions must be given up. The worker
gives them up only when the program is back at the top of the loop, and only then does another worker get them. So no
two workers work on a partition at the same time, as long as programs return within the rebalance timeout. A worker that
does not is fenced, and its commits are rejected.

There are two protocols: ``consumer`` is KIP-848; ``classic`` is the older one, with cooperative rebalancing. The member
is that of ``fencepost.member``, whose step functions are compared with Kafka's own client.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import TracebackType
from typing import Final, Literal, TypeAlias, TypedDict
from weakref import WeakSet

from fencepost.member.consumer import ConsumerMember, ConsumerState
from fencepost.member.events import Call, CloseOption, Failure
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.partitions import TopicPartition

from . import offsets as asking
from .driver import Driver
from .link import Link
from .problems import ShareLost, WorkerFailed
from .settings import WorkerSettings
from .share import Share
from .waiting import Noted, Watch, log

#: Called with partitions; may be a coroutine function.
PartitionsCallback: TypeAlias = Callable[[frozenset[TopicPartition]], Awaitable[None] | None]
_OUT: Final = (ConsumerState.FENCED, ConsumerState.STALE, ConsumerState.FATAL)
#: How long a worker tries to join while another member has its instance id, in seconds: twice the longest session
#: timeout that a broker allows by default (G-CFG-10). By then the session of a killed worker has ended.
RELEASE_S: Final = 120.0
_AGAIN_S: Final = 0.2
_AGAIN_MAX_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Optional functions that are called when partitions come and go. ``revoked``: called when the loop is back, before
    another worker gets the partitions; ``lost``: called when they are gone already."""

    gained: PartitionsCallback | None = None
    revoked: PartitionsCallback | None = None
    lost: PartitionsCallback | None = None


class Worker:
    """Use it as ``async with``: it joins its group, and leaves it at the end. Iterate over it to get shares, or pass
    callbacks and wait for ``ended``."""

    def __init__(self, link: Link, settings: WorkerSettings, callbacks: Callbacks = Callbacks()) -> None:
        self.settings = settings
        self._link = Noted(link)
        self._callbacks = callbacks
        self._driver: Driver | None = None
        self._share: Share | None = None  #: the newest
        self._shares: WeakSet[Share] = WeakSet()  #: all that the program may still work on
        self._fresh: Share | None = None  #: the newest, if the program has not got it yet
        self._working = False  #: the body of the loop runs
        self._closing = False
        self._leaving: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None  #: creates the next member, while the instance id is in use
        self._unreleased: tuple[float, float] | None = None  #: since when it is in use, and the pause before the retry
        self._program: asyncio.Task[object] | None = None  #: the task that iterates
        self._back = asyncio.Event()  #: the body of the loop has ended
        self._turned = asyncio.Event()  #: something has changed, for waiting tasks

    async def __aenter__(self) -> Worker:
        self._join()
        watch = Watch(self.settings.group_id, self.settings.topics, self._link, lambda: self._owned)
        self._watching = asyncio.create_task(watch.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.leave()
        finally:  # a cancelled leave leaves no task behind
            if self._leaving is not None:
                self._leaving.cancel()
            self._stop_waiting()
            if self._driver is not None:
                self._driver.end()

    def __aiter__(self) -> Worker:
        return self

    async def __anext__(self) -> Share:
        """Give up partitions that must be given up, and wait for the next share. Raises ``WorkerFailed``."""
        self._working, self._program = False, asyncio.current_task()
        self._turn()
        while True:
            self._check()
            if self._closing:
                raise StopAsyncIteration
            fresh = self._fresh
            if fresh is not None and fresh.held and len(fresh):
                self._fresh, self._working = None, True
                return fresh
            await self._turned.wait()
            self._turned.clear()

    @property
    def share(self) -> Share | None:
        """The current share; None before it has one, and after it has lost everything."""
        return self._share if self._share is not None and not self._share.lost else None

    @property
    def member_id(self) -> str:
        """Its member id in the group; empty before it has one."""
        member = self._running().member
        return member.member_id if isinstance(member, ConsumerMember) else member.generation.member_id

    async def ended(self) -> None:
        """Wait until the worker fails; for a program that uses callbacks. Raises ``WorkerFailed`` then."""
        while not self._closing:
            self._check()
            await self._turned.wait()
            self._turned.clear()

    async def leave(self, option: CloseOption = CloseOption.DEFAULT) -> None:
        """Give up all partitions and leave the group; if another task iterates, wait until it is back at the top of its
        loop. A static member announces its return (unless ``option`` says otherwise), and keeps its share until its
        session ends. A second call waits for the first. Cancelling a call does not stop the leave, which ends at the
        latest with the ``async with``."""
        if self._driver is None:
            return
        self._closing = True
        self._stop_waiting()
        if asyncio.current_task() is self._program or self._program is None or self._program.done():
            self._working = False  # the program itself leaves the loop
        self._over(lost=False)
        self._turn()
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._driver.close(option))
        await asyncio.shield(self._leaving)
        self._over(lost=False)

    def crash(self) -> None:
        """Stop without leaving the group, for tests: the coordinator notices when the session ends."""
        self._closing = True
        self._stop_waiting()
        self._running().end()
        self._over(lost=True)
        self._turn()

    # --- offsets, for shares ---

    async def commit(self, share: Share, offsets: Mapping[TopicPartition, int], metadata: str) -> None:
        """Commit for ``Share.commit``."""
        driver = self._running()

        def who() -> tuple[str, int]:
            if share.lost or not offsets.keys() <= self._owned:
                raise ShareLost("the share is lost: the worker no longer owns its partitions")
            member = driver.member
            if isinstance(member, ConsumerMember):
                return member.commits_as
            return member.generation.member_id, member.generation.generation_id

        try:
            await asking.commit(self._link, self.settings, who, offsets, metadata)
        except asking.Fenced as fenced:
            driver.deliver(asking.refused(driver.clock(), fenced.error))
            self._over(lost=True)
            raise ShareLost(str(fenced)) from None

    async def committed(self, share: Share) -> dict[TopicPartition, int]:
        """Fetch for ``Share.committed``."""
        return await asking.committed(self._link, self.settings, share.partitions)

    # --- the listener ---

    @property
    def _owned(self) -> frozenset[TopicPartition]:
        return self._running().member.assignment

    def _running(self) -> Driver:
        if self._driver is None:
            raise RuntimeError("use the worker as an async context manager: async with groups.worker(...) as worker")
        return self._driver

    def _turn(self) -> None:
        self._turned.set()
        if not self._working:
            self._back.set()

    def _stepped(self) -> None:
        """After each step: a member outside its group has lost its share, even before a listener call says so."""
        if self._driver is None:
            return
        member = self._driver.member
        out = member.state in _OUT if isinstance(member, ConsumerMember) else member.generation.reset
        if out and not self._closing:
            self._over(lost=True)
        if isinstance(member, ConsumerMember) and member.epoch > 0 and self._unreleased is not None:
            self._unreleased = None
            log.info("the worker with instance_id %r has joined group %r", *self._named)
        failure = self._driver.failure
        if failure is not None and not self._joins_again(failure):
            self._turn()

    # --- an instance id that another member still uses ---

    @property
    def _named(self) -> tuple[str | None, str]:
        return self.settings.instance_id, self.settings.group_id

    def _join(self) -> None:
        """Create a member, and a driver that runs it."""
        self._driver = Driver(self._link, self.settings.member(), self._listens, self._stepped)
        self._driver.start(self.settings.topics, self.settings.metadata_max_age_ms)

    def _joins_again(self, failure: Failure) -> bool:
        """Return whether the worker waits until its instance id is free. A killed worker has left its member behind,
        and until that member's session ends, the coordinator rejects any other with the same instance id (M-STATIC-02).
        Kafka's consumer fails then (N-ERR-04), and so does the member here; but the worker creates another member."""
        if self._retry is not None:
            return True
        if failure.error is not ErrorCode.UNRELEASED_INSTANCE_ID or self._closing:
            return False
        loop = asyncio.get_running_loop()
        if self._unreleased is None:
            self._unreleased = loop.time(), _AGAIN_S
            log.warning(
                "another member of group %r still uses instance_id %r: the worker waits until its session ends, at "
                "most %d s",
                self.settings.group_id,
                self.settings.instance_id,
                RELEASE_S,
            )
        since, pause = self._unreleased
        if loop.time() - since >= RELEASE_S:
            return False
        self._unreleased = since, min(pause * 2, _AGAIN_MAX_S)
        self._retry = loop.call_later(pause, self._join_again)
        return True

    def _join_again(self) -> None:
        self._retry = None
        self._running().end()
        self._join()

    def _stop_waiting(self) -> None:
        for each in (self._watching, self._retry):
            if each is not None:
                each.cancel()
        self._retry = None

    def _check(self) -> None:
        failure = self._running().failure
        if failure is not None and not self._closing and self._retry is None:
            self._over(lost=True)
            raise WorkerFailed(failure)

    def _over(self, *, lost: bool) -> None:
        """End the newest share; the others have ended. ``lost``: the worker has lost everything, also the partitions of
        earlier shares that its program still works on."""
        if self._share is not None:
            self._share.end(lost=lost)
        if lost:
            for earlier in self._shares:
                earlier.end(lost=True)

    async def _listens(self, call: Call, partitions: tuple[TopicPartition, ...]) -> None:
        named = frozenset(partitions)
        if call is Call.ASSIGNED:
            await _call(self._callbacks.gained, named)
            self._renew(named)
        elif call is Call.REVOKED:
            if named:
                self._over(lost=False)
                await self._given_up()
            await _call(self._callbacks.revoked, named)
        else:
            self._over(lost=True)
            await _call(self._callbacks.lost, named)
        self._turn()

    async def _given_up(self) -> None:
        """Wait until the program no longer works on partitions that it must give up."""
        while self._working:
            self._back.clear()
            await self._back.wait()

    def _renew(self, gained: frozenset[TopicPartition]) -> None:
        owned = self._owned | gained
        before = self._share
        if before is not None and before.held and not gained and before.partitions == owned:
            return
        self._over(lost=False)
        self._share = self._fresh = Share(self, owned, gained)
        self._shares.add(self._share)


async def _call(callback: PartitionsCallback | None, partitions: frozenset[TopicPartition]) -> None:
    if callback is not None and partitions:
        answer = callback(partitions)
        if inspect.isawaitable(answer):
            await answer


class Options(TypedDict, total=False):
    """Options of a worker besides its group and topics: the fields of ``WorkerSettings``, and callbacks."""

    protocol: Literal["consumer", "classic"]
    instance_id: str | None
    assignor: str | None
    rebalance_timeout_ms: int
    request_timeout_ms: int
    session_timeout_ms: int | None
    heartbeat_interval_ms: int | None
    metadata_max_age_ms: int
    gained: PartitionsCallback
    revoked: PartitionsCallback
    lost: PartitionsCallback


#: Topic names, or an expression that matches whole names.
Topics: TypeAlias = Iterable[str] | re.Pattern[str]


def worker_of(link: Link, group_id: str, topics: Topics, options: Options) -> Worker:
    """Create a worker over this link.

    Raises ``BadSettings`` for an invalid value; ``ValueError`` for a single string, whose letters are not topics, and
    for an expression with flags outside of its text; ``TypeError`` for an unknown option, for topics that are not a
    collection, and for a callback that cannot be called."""
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(_unknown(name))
    if isinstance(topics, str):
        raise ValueError(f"topics must be a list or an expression: [{topics!r}] or re.compile({topics!r})")
    if isinstance(topics, re.Pattern) and topics.flags != re.compile(topics.pattern).flags:
        raise ValueError("write flags inside the expression, since a coordinator may match it: (?i)orders-.*")
    if not isinstance(topics, re.Pattern) and not isinstance(topics, Iterable):
        raise TypeError(f"topics must be a list of names or a compiled expression (got {topics!r})")
    callbacks = Callbacks(_callback("gained", options), _callback("revoked", options), _callback("lost", options))
    settings = {name: value for name, value in options.items() if name not in ("gained", "revoked", "lost")}
    subscribed = topics if isinstance(topics, re.Pattern) else _named(topics)
    worker = WorkerSettings(group_id, subscribed, **settings)  # type: ignore[arg-type]  # the fields of Options
    worker.member()  # raises for values that a member rejects
    return Worker(link, worker, callbacks)


def _named(topics: Iterable[str]) -> frozenset[str]:
    names = tuple(topics)
    for name in names:  # before frozenset, which accepts only hashable items
        if not isinstance(name, str):
            raise TypeError(f"each topic must be the name of a topic, such as 'orders' (got {name!r})")
    return frozenset(names)


def _callback(name: Literal["gained", "revoked", "lost"], options: Options) -> PartitionsCallback | None:
    callback = options.get(name)
    if callback is not None and not callable(callback):
        raise TypeError(f"{name} must be a function that takes a set of partitions (got {callback!r})")
    return callback


def _unknown(name: str) -> str:
    """Return the message for an option that does not exist."""
    like = get_close_matches(name, Options.__annotations__, 1)
    guess = f"did you mean {like[0]}? " if like else ""
    return f"a worker has no option {name!r}; {guess}the options are {', '.join(Options.__annotations__)}"
