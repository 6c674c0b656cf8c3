"""The coordinator of transactions compared with a model of Kafka's, with failures of the store and of markers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import async_solipsism
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fencepost.protocol.errors import ErrorCode
from fencepost.store import AppendError, MemoryStore, Put
from fencepost_server.data.producers import Refused
from fencepost_server.transactions.coordinator import IDS_KIND, KIND, Transactions
from fencepost_server.transactions.state import State, Transaction

from .transaction_model import LAST, LONGEST_MS, NONE, Coordinator, Error

_Value = TypeVar("_Value")
NAMES: Final = ("a", "b")
PARTITIONS: Final = (("t", 0), ("t", 1), ("u", 0))
CHECK_MS: Final = 10_000


class TransactionMachine(RuleBasedStateMachine):
    """One request at a time; ``stuck``: markers cannot be written."""

    @initialize(epoch=st.sampled_from((None, 5, LAST - 2, LAST - 1, LAST)), ids=st.sampled_from((None, 1_000)))
    def begin(self, epoch: int | None, ids: int | None) -> None:
        self.loop = async_solipsism.EventLoop()
        self.loop.set_exception_handler(lambda _, context: self.wrong.append(context))
        self.wrong: list[Any] = []
        self.store = MemoryStore(1)
        self.loop.run_until_complete(self.store.open())
        self.model = Coordinator()
        self.stuck = False
        self.last_end: tuple[str, tuple[int, int], bool, int] | None = None
        self.given: set[int] = set()
        self.pairs: dict[str, list[tuple[int, int]]] = {name: [] for name in NAMES}
        self.marks: list[tuple[Any, ...]] = []
        self.waiting: list[tuple[asyncio.Task[Any], tuple[int, int]]] = []
        changes = [] if ids is None else [Put(IDS_KIND, "", str(ids))]
        if epoch is not None:
            self.model.initialized("a", "new id", 60_000, None, 3)
            self.model.known["a"].epoch, self.model.known["a"].previous_id = epoch, NONE
            self.pairs["a"].append((3, epoch))
            self.given.add(3)
            changes += [Put(KIND, "a", Transaction("a", 3, epoch, 60_000).as_text())]
            changes += [Put(IDS_KIND, "", str(ids or 1_000))]
        self.loop.run_until_complete(self.store.write(changes))
        self._start()

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self._stop()
            self.loop.close()

    def _start(self) -> None:
        kept = self.loop.run_until_complete(self.store.kept()).values
        self.it = Transactions(self.store, self._mark, self._now)
        self.it.restore(kept.get(KIND, {}), kept.get(IDS_KIND, {}).get(""))
        self.loop.run_until_complete(self.it.finish_endings())
        self.check = self.loop.create_task(self.it.abort_late())
        self.began_ms = self._now()
        self._pass(0.0)

    def _stop(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self._pass(0.0)

    def _now(self) -> int:
        return round(float(self.loop.time()) * 1_000)

    def _pass(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    async def _mark(self, known: Transaction, committed: bool) -> None:
        if self.stuck:
            raise ConnectionError("no partition answers")
        pair = known.producer_id, known.producer_epoch
        self.marks.append(
            (known.transactional_id, pair, committed, set(known.partitions), set(known.offsets))
        )  # fmt: skip

    def _ask(self, asked: Coroutine[Any, Any, _Value]) -> asyncio.Task[_Value]:
        async def until_it_waits() -> asyncio.Task[_Value]:
            task = asyncio.ensure_future(asked)
            await asyncio.wait({task}, timeout=0.01)
            return task

        task: asyncio.Task[_Value] = self.loop.run_until_complete(until_it_waits())
        return task

    def _refused(self, asked: Coroutine[Any, Any, Any], error: str, fencing: bool) -> None:
        if error == "fenced":
            error = "producer_fenced" if fencing else "invalid_producer_epoch"
        with pytest.raises(Refused) as refused:
            self._ask(asked).result()
        assert refused.value.code.name == error

    def _ended(self, name: str) -> None:
        """The markers of a decided transaction are written, unless they are stuck."""
        if not self.stuck:
            it = self.model.known[name]
            committed = it.state == "PrepareCommit"
            assert self.marks.pop() == (name, it.marker, committed, it.partitions, it.offsets)
            self.model.complete(name)

    def _drawn(self, data: Any, name: str) -> tuple[int, int]:
        """Draw a producer id and an epoch, mostly the right ones."""
        it = self.model.known.get(name)
        right = [] if it is None else [(it.producer_id, it.epoch)] * 5
        near = [] if it is None else [(it.producer_id, it.epoch + 1), (it.producer_id, max(it.epoch - 1, 0)), (77, 0)]
        near += [] if it is None else [(it.producer_id, NONE)]
        return data.draw(st.sampled_from([*right, *near, *self.pairs[name][-3:], (99, 0)]))  # type: ignore[no-any-return]

    # requests

    @rule(
        data=st.data(),
        name=st.sampled_from((*NAMES, *NAMES, *NAMES, "")),
        timeout_ms=st.sampled_from((1, 1_000, 60_000, LONGEST_MS, LONGEST_MS, LONGEST_MS + 1, 0)),
        knows=st.booleans(),
        fencing=st.booleans(),
    )
    def init(self, data: Any, name: str, timeout_ms: int, knows: bool, fencing: bool) -> None:
        expected = self._drawn(data, name) if knows and name else None
        asked = self.it.init_producer(name, timeout_ms, *(expected or (NONE, NONE)), fencing=fencing)
        try:
            what = self.model.init(name, timeout_ms, expected)
        except Error as error:
            self._refused(asked, str(error), fencing)
            return
        failing = self.store.failing is not None
        if what == "abort" and not failing:
            task = self._ask(asked)
            self.model.fence(name, self._next_id(name))
            if self.stuck:
                assert not task.done()
                self.loop.run_until_complete(self._cancelled(task))
                return
            self._ended(name)
            try:
                what = self.model.init(name, timeout_ms, expected)
            except Error:
                with pytest.raises(Refused):
                    task.result()
                return
        else:
            task = self._ask(asked)
        if failing:
            with pytest.raises(AppendError):
                task.result()
            return
        producer_id, epoch = task.result()
        if what in ("new id", "rotate"):
            self._give(producer_id)
        self.model.initialized(name, what, timeout_ms, expected, producer_id)
        it = self.model.known[name]
        assert (producer_id, epoch) == (it.producer_id, it.epoch)
        self.pairs[name].append((producer_id, epoch))

    @staticmethod
    async def _cancelled(task: asyncio.Task[Any]) -> None:
        """Its client has disconnected."""
        task.cancel()
        await asyncio.wait({task})

    def _give(self, producer_id: int) -> None:
        assert producer_id not in self.given
        self.given.add(producer_id)

    def _next_id(self, name: str) -> int:
        """The id that the coordinator has drawn for the next transaction, if the model needs one for this end."""
        if self.model.known[name].epoch < LAST:
            return NONE
        it = self.it.known[name]
        fresh = it.next_id if it.state.ending else it.producer_id
        self._give(fresh)
        return fresh

    @precondition(lambda self: self.store.failing is None)
    @rule()
    def init_without_a_name(self) -> None:
        producer_id, epoch = self._ask(self.it.init_producer(None, 0, NONE, NONE, fencing=True)).result()
        assert epoch == 0
        self._give(producer_id)

    @rule(
        data=st.data(),
        name=st.sampled_from((*NAMES, *NAMES, *NAMES, "")),
        partitions=st.sets(st.sampled_from(PARTITIONS), max_size=2),
        offsets=st.sets(st.integers(0, 2), max_size=1),
        fencing=st.booleans(),
    )
    def add(self, data: Any, name: str, partitions: set[tuple[str, int]], offsets: set[int], fencing: bool) -> None:
        pair = self._drawn(data, name) if name else (0, 0)

        async def asked() -> None:
            known = self.it.check(name, *pair, fencing=fencing)
            await self.it.add(known, partitions, offsets)

        try:
            it = self.model.check(name, *pair)
            new = it.state != "Ongoing" or not (partitions <= it.partitions and offsets <= it.offsets)
            if self.store.failing is not None and new and not it.ending:
                with pytest.raises(AppendError):
                    self._ask(asked()).result()
                return
            self.model.add(it, partitions, offsets, self._now())
        except Error as error:
            self._refused(asked(), str(error), fencing)
            return
        self._ask(asked()).result()

    @rule(
        data=st.data(),
        name=st.sampled_from((*NAMES, *NAMES, *NAMES, "")),
        committed=st.booleans(),
        version=st.sampled_from((1, 2)),
        fencing=st.booleans(),
    )
    def end(self, data: Any, name: str, committed: bool, version: int, fencing: bool) -> None:
        self._end(name, self._drawn(data, name) if name else (0, 0), committed, version, fencing)

    def _end(self, name: str, pair: tuple[int, int], committed: bool, version: int, fencing: bool) -> None:
        self.last_end = name, pair, committed, version
        asked = self.it.end(name, *pair, committed=committed, version=version, fencing=fencing)
        try:
            what = self.model.end(name, *pair, committed=committed, version=version)
        except Error as error:
            self._refused(asked, str(error), fencing)
            return
        if what == "answer":
            it = self.model.known[name]
            assert self._ask(asked).result() == (it.producer_id, it.epoch)
            return
        task = self._ask(asked)
        if self.store.failing is not None:
            with pytest.raises(AppendError):
                task.result()
            return
        fresh = self._next_id(name) if version >= 2 else NONE
        self.model.prepare(name, committed=committed, version=version, fresh=fresh)
        answer = self.model.known[name].after
        self.pairs[name].append(answer)
        if self.stuck:
            assert not task.done()
            self.waiting.append((task, answer))
        else:
            assert task.result() == answer
        self._ended(name)

    @precondition(lambda self: self.last_end is not None)
    @rule(other=st.sampled_from((False, False, True)))
    def end_again(self, other: bool) -> None:
        """The answer was lost."""
        assert self.last_end is not None
        name, pair, committed, version = self.last_end
        self._end(name, pair, committed != other, version, True)

    @precondition(lambda self: self.store.failing is None and not self.stuck and self.model.known)
    @rule(
        partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1),
        committed=st.booleans(),
        version=st.sampled_from((1, 2, 2)),
        crash=st.booleans(),
    )
    def have_a_transaction(self, partitions: set[tuple[str, int]], committed: bool, version: int, crash: bool) -> None:
        """A transaction of one known producer, or of several whose markers are not written before the server is
        killed."""
        self.stuck = crash
        for name in list(self.model.known):
            it = self.model.known[name]
            if crash or name == max(self.model.known):
                self.model.add(it, partitions, {1}, self._now())
                known = self.it.known[name]
                self._ask(self.it.add(known, partitions, {1}, version=version)).result()
                self._end(name, (it.producer_id, it.epoch), committed, version, True)
        if crash:
            self.restart()

    # the environment

    @rule()
    def get_stuck(self) -> None:
        self.stuck = True

    @precondition(lambda self: self.stuck and self.store.failing is None)
    @rule()
    def get_free(self) -> None:
        self.stuck = False
        self._pass(6.0)
        self._time_out(6.0)
        ended = {row[0]: row for row in self.marks}
        for name, it in self.model.known.items():
            if it.ending:
                row = (name, it.marker, it.state == "PrepareCommit", it.partitions, it.offsets)
                assert ended.pop(name) == row
                self.model.complete(name)
        assert not ended
        self.marks.clear()
        for task, answer in self.waiting:
            assert task.result() == answer
        self.waiting.clear()

    @rule(failing=st.booleans())
    def fail(self, failing: bool) -> None:
        self.store.failing = ErrorCode.KAFKA_STORAGE_ERROR if failing else None

    @precondition(lambda self: self.store.failing is None)
    @rule(seconds=st.sampled_from((0.5, 1.0, 9.0, 15.0, 65.0)))
    def wait(self, seconds: float) -> None:
        self._pass(seconds)
        self._time_out(seconds)
        assert not self.check.done()

    def _time_out(self, seconds: float) -> None:
        """The model aborts the transactions that were late when the coordinator checked, every ten seconds."""
        until = self._now()
        ticks = [
            at for at in range(self.began_ms + CHECK_MS, until + 1, CHECK_MS) if at > until - round(seconds * 1_000)
        ]
        for at in ticks:
            for name, it in self.model.known.items():
                if it.state == "Ongoing" and at - it.started_ms > it.timeout_ms:
                    self.model.fence(name, self._next_id(name))
                    if not self.stuck and self.marks:
                        row = (name, it.marker, False, it.partitions, it.offsets)
                        assert row in self.marks
                        self.marks.remove(row)
                        self.model.complete(name)

    @precondition(lambda self: self.store.failing is None)
    @rule()
    def restart(self) -> None:
        self._stop()
        self.waiting.clear()
        self.marks.clear()
        self.stuck = False
        self._start()
        ended = {row[0]: row for row in self.marks}
        for name, it in self.model.known.items():
            if it.ending:
                row = (name, it.marker, it.state == "PrepareCommit", it.partitions, it.offsets)
                assert ended.pop(name) == row
                self.model.complete(name)
        assert not ended
        self.marks.clear()

    @invariant()
    def states_agree(self) -> None:
        assert not self.wrong
        assert not self.marks
        assert set(self.it.known) == set(self.model.known)
        for name, it in self.model.known.items():
            found = self.it.known[name]
            assert found.state is State(it.state)
            assert (found.producer_id, found.producer_epoch, found.timeout_ms) == (
                it.producer_id,
                it.epoch,
                it.timeout_ms,
            )
            assert (found.partitions, found.offsets, found.started_ms) == (it.partitions, it.offsets, it.started_ms)
            ids = found.previous_id, found.last_epoch, found.next_id
            assert ids == (it.previous_id, it.last_epoch, it.next_id)


def chosen(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )


def test_the_coordinator_behaves_like_kafkas() -> None:
    run_state_machine_as_test(TransactionMachine, settings=chosen(60, 30))


@pytest.mark.all
def test_the_coordinator_behaves_like_kafkas_in_long_runs() -> None:
    run_state_machine_as_test(TransactionMachine, settings=chosen(1_500, 60))
