"""An event loop in virtual time; a seed decides the order of ready tasks.

The loop is that of async-solipsism: it has no real sockets and no real clock, and its time jumps to the next timer when
no callback is ready. A run of minutes takes milliseconds, and two runs with the same seed are equal.

asyncio guarantees the order of callbacks, but not which of several ready tasks runs first. Programs that rely on the
latter work until something else in the loop changes. So before each round this loop shuffles the ready tasks in the
queue, and leaves every other callback at its place.
"""

from __future__ import annotations

import asyncio
import asyncio.selector_events
import gc
import logging
import os
import random as library_random
import warnings
from collections.abc import Coroutine
from dataclasses import dataclass
from random import Random
from selectors import EVENT_READ, EVENT_WRITE, SelectorKey
from typing import Any

import async_solipsism
from async_solipsism.selector import Selector
from async_solipsism.socket import Socket

#: after this time (seconds of virtual time) a schedule waits for something that never happens
LIMIT_S = 1_800.0
_FOREVER_S = 24 * 3_600  # the longest time that asyncio waits in one round
_LOGGERS = ("fencepost", "fencepost_server")


class _Selector(Selector):  # type: ignore[misc]  # the package has no types
    """The selector of async-solipsism, but quicker: that one hashes every socket in every round."""

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        ready = []
        for key in self._fd_to_key.values():
            events, socket = 0, key.fd.socket
            if type(socket) is Socket:
                queue = socket._read_queue
                if queue is None or queue._buffer or queue._eof:
                    events = EVENT_READ
                if key.events & EVENT_WRITE and socket.write_ready():
                    events |= EVENT_WRITE
            elif socket.read_ready():  # one that listens
                events = EVENT_READ
            if events & key.events:
                ready.append((key, events & key.events))
        if ready or timeout == 0:
            return ready
        if timeout is None or timeout >= _FOREVER_S:
            raise async_solipsism.SleepForeverError("no socket is ready, and no timer is set")
        self.clock.advance(timeout)
        return []


class VirtualLoop(async_solipsism.EventLoop):  # type: ignore[misc]  # the package has no types
    """An event loop in virtual time; ``random`` decides which of the ready tasks runs next. async-solipsism has no TLS;
    this loop puts asyncio's TLS over its sockets."""

    _selector: Any

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._selector = _Selector(self._selector.clock)
        self._random = random

    def advance(self, seconds: float) -> None:
        """Let time pass while a callback runs, as a callback does that takes long."""
        self._selector.clock.advance(seconds)

    async def create_connection(
        self, factory: Any, host: Any = None, port: Any = None, *, ssl: Any = None, sock: Any = None, **more: Any
    ) -> Any:
        if ssl is None or sock is not None:
            return await super().create_connection(factory, host, port, sock=sock, **more)
        where = (None, None, None, None, (host, port, 0, 0))
        sock = await self.aiohappyeyeballs_start_connection([where])
        more.setdefault("server_hostname", host)
        return await asyncio.selector_events.BaseSelectorEventLoop.create_connection(
            self, factory, ssl=ssl, sock=sock, **more
        )

    async def create_server(
        self, factory: Any, host: Any = None, port: Any = None, *, ssl: Any = None, **more: Any
    ) -> Any:
        server = await super().create_server(factory, host, port, start_serving=False, **more)
        server._ssl_context = ssl
        await server.start_serving()
        return server

    def _run_once(self) -> None:
        ready = self._ready
        if len(ready) > 1:
            places = [at for at, handle in enumerate(ready) if _is_step(handle)]
            if len(places) > 1:
                steps = [ready[at] for at in places]
                self._random.shuffle(steps)
                for at, step in zip(places, steps, strict=True):
                    ready[at] = step
        super()._run_once()


def _is_step(handle: asyncio.Handle) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Ran:
    """The end of a run.

    ``failure``: the exception that it raised, None if it returned. ``leaked``: the tasks that had not ended.
    ``unhandled``: exceptions in callbacks, and in tasks that were never awaited. ``log``: the lines of the program's
    loggers.
    """

    failure: BaseException | None
    leaked: tuple[str, ...]
    unhandled: tuple[str, ...]
    log: tuple[str, ...]


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def run(main: Coroutine[Any, Any, None], random: Random) -> Ran:
    """Run ``main`` to its end, at most ``LIMIT_S`` of virtual time."""
    loop = VirtualLoop(random)
    unhandled: list[str] = []
    loop.set_exception_handler(lambda _, context: unhandled.append(_describe(context)))
    lines, loggers = _Lines(), [logging.getLogger(each) for each in _LOGGERS]
    propagated = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(lines)
        logger.propagate = False
    chance, entropy = library_random.getstate(), os.urandom
    library_random.seed(random.random())  # jitter of members
    os.urandom = random.randbytes  # member ids, whose order decides the assignment
    failure: BaseException | None = None
    leaked: tuple[str, ...] = ()
    try:
        task = loop.create_task(_limited(main), name="schedule")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", async_solipsism.ResolutionWarning)  # two timers a fraction of a µs apart
            try:
                loop.run_until_complete(task)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as raised:
                failure = raised
        left = [each for each in asyncio.all_tasks(loop) if each is not task]
        leaked = tuple(sorted(_name_of(each) for each in left))
        for each in [*left, task]:
            each.cancel()
        if left or not task.done():
            loop.run_until_complete(asyncio.wait([*left, task], timeout=LIMIT_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        del task, left
        gc.collect(0)
    finally:
        library_random.setstate(chance)
        os.urandom = entropy
        for logger, propagates in zip(loggers, propagated, strict=True):
            logger.removeHandler(lines)
            logger.propagate = propagates
        loop.close()
    return Ran(failure, leaked, tuple(unhandled), tuple(lines.lines))


async def _limited(main: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(LIMIT_S):
        await main


def _name_of(task: asyncio.Task[Any]) -> str:
    coroutine: Any = task.get_coro()
    return str(getattr(coroutine, "__qualname__", coroutine))


def _describe(context: dict[str, Any]) -> str:
    raised = context.get("exception")
    return str(context["message"]) + (f": {type(raised).__name__}: {raised}" if raised is not None else "")
