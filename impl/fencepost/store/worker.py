"""A thread that writes queued jobs in one transaction, and reports them when the transaction is durable."""

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

from .base import AppendError, ClosedStore, StoreError

#: Largest number of jobs in one transaction.
TOGETHER: Final = 1_000
_Value = TypeVar("_Value")


class Database(Protocol):
    """The database of the transactions; only the thread uses it."""

    def begin(self) -> None:
        """Begin a transaction; connect if there is no connection."""

    def commit(self) -> None:
        """Commit the transaction; it is durable when this returns."""

    def rollback(self) -> None:
        """Roll the transaction back; nothing of it is there when this returns."""

    def none_there(self, failure: Exception) -> bool:
        """Return whether a commit that failed with this error leaves no effect once it is rolled back."""

    def abandon(self) -> None:
        """Close the connection, because its state is unknown."""

    def translate_error(self, failure: Exception) -> Exception:
        """Return the error with a helpful message as a ``StoreError``; unchanged if it is not the database's."""


class Together(Protocol):
    """Data that the jobs of one transaction have collected and not written yet."""

    def flush(self) -> None:
        """Write the data."""

    def forget(self) -> None:
        """Forget the data, because the transaction was rolled back."""


class InDoubt(StoreError):
    """Disk or connection failed during a commit, so the write may be there or not. Load again to find out."""


@dataclass(slots=True, eq=False)
class _Job:
    act: Callable[[], Any]
    done: asyncio.Future[Any]
    line: Hashable
    term: int
    alone: bool


@dataclass(slots=True, eq=False)
class _Result:
    job: _Job
    value: Any = None
    failure: Exception | None = None


class JobRunner:
    """Runs jobs in order. Create it in the event loop that uses it. Jobs of the same ``line`` fail together: after one
    has failed, those that were queued before the failure was reported fail too."""

    def __init__(self, database: Database, together: Together, name: str) -> None:
        self._database = database
        self._put_together = together
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._terms: dict[Hashable, int] = {}
        self._dead: dict[Hashable, int] = {}  #: used only by the thread
        self._closed = False
        self._writer = threading.Thread(target=self._work, name=name, daemon=True)
        self._writer.start()

    def within(self, act: Callable[[], _Value], line: Hashable) -> asyncio.Future[_Value]:
        """Run ``act`` in a transaction, together with others. It may reject with ``FencedEpoch`` or ``AppendError``
        before it changes anything; any other exception rolls the transaction back."""
        return self._submit(act, line, alone=False)

    def alone(self, act: Callable[[], _Value]) -> asyncio.Future[_Value]:
        """Run ``act`` outside of transactions, such as a read."""
        return self._submit(act, None, alone=True)

    async def close(self) -> None:
        """Run the queued jobs, then end."""
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

    def _complete(self, results: Sequence[_Result]) -> None:
        """Report results in the event loop; from now on, new jobs of a failed line run again."""
        for each in results:
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
                self._report([self._alone(job) for job in row] if alone else self._together(row))
            if len(some) < len(jobs):
                return

    def _report(self, results: Sequence[_Result]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._complete, results)
        except RuntimeError:  # the loop has ended, so no caller waits
            return

    def _together(self, jobs: Sequence[_Job]) -> list[_Result]:
        """Run the jobs in one transaction; if it fails, each in a separate one."""
        results: list[_Result] = []
        try:
            self._database.begin()
            for job in jobs:
                results.append(self._run(job))
            self._put_together.flush()
        except Exception as failure:
            return self._none(jobs, failure)
        try:
            self._database.commit()
        except Exception as failure:
            if self._database.none_there(failure):
                return self._none(jobs, failure)
            self._database.abandon()
            return [self._dies(job, InDoubt(str(self._database.translate_error(failure)))) for job in jobs]
        return results

    def _run(self, job: _Job) -> _Result:
        if self._dead.get(job.line, -1) >= job.term:
            return _Result(job, failure=_behind())
        try:
            return _Result(job, job.act())
        except (FencedEpoch, AppendError) as declined:
            return self._dies(job, declined)

    def _none(self, jobs: Sequence[_Job], failure: Exception) -> list[_Result]:
        """Handle a transaction that left no effect."""
        self._put_together.forget()
        try:
            self._database.rollback()
        except Exception:
            self._database.abandon()  # a transaction without its commit record is not applied
        if len(jobs) > 1:
            return [result for job in jobs for result in self._together([job])]
        if self._dead.get(jobs[0].line, -1) >= jobs[0].term:
            return [_Result(jobs[0], failure=_behind())]
        return [
            self._dies(
                jobs[0], AppendError(ErrorCode.KAFKA_STORAGE_ERROR, str(self._database.translate_error(failure)))
            )
        ]

    def _alone(self, job: _Job) -> _Result:
        try:
            return _Result(job, job.act())
        except Exception as failure:
            return _Result(job, failure=self._database.translate_error(failure))

    def _dies(self, job: _Job, failure: Exception) -> _Result:
        self._dead[job.line] = max(job.term, self._dead.get(job.line, -1))
        return _Result(job, failure=failure)


def _behind() -> AppendError:
    return AppendError(ErrorCode.KAFKA_STORAGE_ERROR, "rejected: an earlier write has failed")
