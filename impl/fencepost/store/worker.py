"""A thread that writes: what has queued up goes into one transaction, and is told once that is durable."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Protocol, TypeVar

from fencepost.log import FencedEpoch
from fencepost.protocol.errors import ErrorCode

from .base import AppendError
from .shared import ClosedStore, StoreError

#: As many jobs go into one transaction at most.
TOGETHER: Final = 1_000
_Value = TypeVar("_Value")


class Database(Protocol):
    """What transactions are made in; used by the thread alone."""

    def begin(self) -> None:
        """Begin one; connect if there is no connection."""

    def commit(self) -> None:
        """All of it is durable when this returns."""

    def rollback(self) -> None:
        """Nothing of it is there when this returns."""

    def none_there(self, failure: Exception) -> bool:
        """Whether a commit that failed so has left nothing that may be found later, once it is rolled back."""

    def abandon(self) -> None:
        """Give the connection up, of which nobody knows what it has done."""

    def told(self, failure: Exception) -> Exception:
        """The same in words that help; a ``StoreError``, or what it is if the database has nothing to do with it."""


class Together(Protocol):
    """What the jobs of one transaction have put together, and not yet written."""

    def flush(self) -> None:
        """Write it."""

    def forget(self) -> None:
        """The transaction is taken back."""


class InDoubt(StoreError):
    """The disk or the connection failed while a write was made durable: it may be there or not. Loading tells."""


@dataclass(slots=True, eq=False)
class _Job:
    act: Callable[[], Any]
    done: asyncio.Future[Any]
    line: Hashable
    term: int
    alone: bool


@dataclass(slots=True, eq=False)
class _Told:
    job: _Job
    value: Any = None
    failure: Exception | None = None


class Worker:
    """Runs jobs in order. Make it within the loop that asks. Jobs of one ``line`` fail together: when one has failed,
    those fail too that were asked for before its failure was told."""

    def __init__(self, database: Database, together: Together, name: str) -> None:
        self._database = database
        self._put_together = together
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._terms: dict[Hashable, int] = {}
        self._dead: dict[Hashable, int] = {}  #: the thread's own
        self._closed = False
        self._writer = threading.Thread(target=self._work, name=name, daemon=True)
        self._writer.start()

    def within(self, act: Callable[[], _Value], line: Hashable) -> asyncio.Future[_Value]:
        """Run it in a transaction, with others. It may decline with ``FencedEpoch`` or ``AppendError`` before it has
        changed anything; any other exception takes the transaction back."""
        return self._submit(act, line, alone=False)

    def alone(self, act: Callable[[], _Value]) -> asyncio.Future[_Value]:
        """Run it outside of transactions, as what only reads."""
        return self._submit(act, None, alone=True)

    async def close(self) -> None:
        """Do what was asked for, then end."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._writer.join)

    def _submit(self, act: Callable[[], _Value], line: Hashable, *, alone: bool) -> asyncio.Future[_Value]:
        if self._closed:
            raise ClosedStore
        done: asyncio.Future[_Value] = self._loop.create_future()
        self._queue.put(_Job(act, done, line, self._terms.get(line, 0), alone))
        return done

    def _told(self, told: Sequence[_Told]) -> None:
        """In the loop: from now on the line goes on."""
        for each in told:
            job = each.job
            if each.failure is not None and not job.alone:
                self._terms[job.line] = job.term + 1
            if job.done.done():
                continue
            if each.failure is None:
                job.done.set_result(each.value)
            else:
                job.done.set_exception(each.failure)

    # in the thread

    def _work(self) -> None:
        while True:
            first = self._queue.get()
            jobs = [first]
            while jobs[-1] is not None and len(jobs) < TOGETHER and not self._queue.empty():
                jobs.append(self._queue.get())
            some = [job for job in jobs if job is not None]
            for alone, group in groupby(some, key=lambda job: job.alone):
                row = list(group)
                self._tell([self._alone(job) for job in row] if alone else self._together(row))
            if len(some) < len(jobs):
                return

    def _tell(self, told: Sequence[_Told]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._told, told)
        except RuntimeError:  # the loop has ended, and nobody listens
            return

    def _together(self, jobs: Sequence[_Job]) -> list[_Told]:
        """One transaction; if it comes to nothing, one for each job."""
        told: list[_Told] = []
        try:
            self._database.begin()
            for job in jobs:
                told.append(self._run(job))
            self._put_together.flush()
        except Exception as failure:
            return self._none(jobs, failure)
        try:
            self._database.commit()
        except Exception as failure:
            if self._database.none_there(failure):
                return self._none(jobs, failure)
            self._database.abandon()
            return [self._dies(job, InDoubt(str(self._database.told(failure)))) for job in jobs]
        return told

    def _run(self, job: _Job) -> _Told:
        if self._dead.get(job.line, -1) >= job.term:
            return _Told(job, failure=_behind())
        try:
            return _Told(job, job.act())
        except (FencedEpoch, AppendError) as declined:
            return self._dies(job, declined)

    def _none(self, jobs: Sequence[_Job], failure: Exception) -> list[_Told]:
        """Nothing of the transaction is there."""
        self._put_together.forget()
        try:
            self._database.rollback()
        except Exception:
            self._database.abandon()  # without its end in the log, a transaction is not there
        if len(jobs) > 1:
            return [told for job in jobs for told in self._together([job])]
        if self._dead.get(jobs[0].line, -1) >= jobs[0].term:
            return [_Told(jobs[0], failure=_behind())]
        return [self._dies(jobs[0], AppendError(ErrorCode.KAFKA_STORAGE_ERROR, str(self._database.told(failure))))]

    def _alone(self, job: _Job) -> _Told:
        try:
            return _Told(job, job.act())
        except Exception as failure:
            return _Told(job, failure=self._database.told(failure))

    def _dies(self, job: _Job, failure: Exception) -> _Told:
        self._dead[job.line] = max(job.term, self._dead.get(job.line, -1))
        return _Told(job, failure=failure)


def _behind() -> AppendError:
    return AppendError(ErrorCode.KAFKA_STORAGE_ERROR, "a write before this one has failed, so this one is not made")
