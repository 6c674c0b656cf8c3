"""The log of one partition compared with a model of Kafka's, after every step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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

from fencepost_server.data import index, partition, search, tail
from fencepost_server.data.batches import Batch, batches, leader_epoch_of, marker
from fencepost_server.data.partition import PartitionLog
from fencepost_server.data.producers import Refused
from fencepost_server.data.tail import Budget
from fencepost_server.restore import committed

from .partition_model import LAST_SEQUENCE, Entry, Model, produced
from .waitless import now

#: Small, so that a short run has several blocks, reads from the store and evicts from memory.
SMALL = ((index, "_BLOCK", 300), (partition, "_PIECE", 250), (tail, "_SLACK", 2), (tail, "_EACH", 10))
PRODUCERS = (-1, 7, 8)


class PartitionMachine(RuleBasedStateMachine):
    """Write, lose, delete and restart; compare every answer to a client."""

    def __init__(self) -> None:
        super().__init__()
        self.before = [(module, name, getattr(module, name)) for module, name, _ in SMALL]
        for module, name, value in SMALL:
            setattr(module, name, value)

    def teardown(self) -> None:
        for module, name, value in self.before:
            setattr(module, name, value)

    @initialize(
        stored=st.sampled_from((True, True, True, False)),
        cached=st.sampled_from((0, 300, 1_000, 100_000)),
        first=st.sampled_from((0, 0, 5, LAST_SEQUENCE - 3)),
        written=st.lists(st.tuples(st.sampled_from(PRODUCERS), st.integers(1, 3)), max_size=12),
    )
    def begin(self, stored: bool, cached: int, first: int, written: list[tuple[int, int]]) -> None:
        self.stored, self.cached = stored, cached
        self.rows: dict[int, bytes] = {}
        self.state: dict[str, Any] | None = None  #: stored when batches are deleted
        self.model = Model()
        self.log = self._new()
        for producer, count in written:
            self._continue(producer, [1_000 + count] * count, first=first, transactional=producer == 8)
        self.become_durable(0)

    def _new(self) -> PartitionLog:
        if not self.stored:
            return PartitionLog(0, leader_epoch=self.model.leader_epoch)
        return PartitionLog(0, self._source, Budget(self.cached), self.model.leader_epoch)

    async def _source(self, offset: int, most: int) -> Sequence[bytes]:
        bases = sorted(self.rows)
        begin = max([base for base in bases if base <= offset], default=offset)
        found: list[bytes] = []
        for base in bases:
            if base >= begin and (not found or sum(map(len, found)) + len(self.rows[base]) <= most):
                found.append(self.rows[base])
            elif base >= begin:
                break
        return found

    # writes

    @rule(
        producer=st.sampled_from(PRODUCERS),
        counts=st.lists(st.integers(1, 3), min_size=1, max_size=6),
        durable=st.booleans(),
        transactional=st.booleans(),
    )
    def produce_in_sequence(self, producer: int, counts: list[int], durable: bool, transactional: bool) -> None:
        for at, count in enumerate(counts):
            self._continue(producer, [1_003 + at] * count, transactional=transactional)
        if durable:
            self.become_durable(0)

    def _continue(self, producer: int, times: Sequence[int], *, transactional: bool, first: int = 0) -> None:
        """A batch that no broker rejects, unless it must be verified first."""
        epoch = sequence = -1
        state = self.model.known.producers.get(producer)
        if producer < 0:
            transactional = False
        elif state is None:
            epoch, sequence = 0, first
        else:
            epoch = state.epoch
            transactional = transactional or state.began is not None
            last = state.batches[-1][1] if state.batches else -1
            sequence = 0 if last == LAST_SEQUENCE else last + 1
        self._send(times, producer, epoch, sequence, transactional=transactional, zipped=False, padding=0)

    @rule(data=st.data(), transactional=st.booleans(), zipped=st.booleans(), padding=st.sampled_from((0, 5, 200)))
    def produce(self, data: Any, transactional: bool, zipped: bool, padding: int) -> None:
        times = data.draw(st.lists(st.integers(1_000, 1_012), min_size=1, max_size=3))
        producer = data.draw(st.sampled_from(PRODUCERS))
        epoch = sequence = -1
        state = self.model.known.producers.get(producer)
        if producer >= 0:
            epoch = max((state.epoch if state else 0) + data.draw(st.sampled_from((0, 0, 0, 0, 0, 1, -1))), 0)
            followed = state.batches[-1][1] if state and state.batches and epoch == state.epoch else -1
            follows = 0 if followed == LAST_SEQUENCE else followed + 1
            again = [first for first, _, _ in state.batches] if state else []
            if state is None:
                sequence = data.draw(st.sampled_from((0, 0, LAST_SEQUENCE - 2, LAST_SEQUENCE)))
            else:
                sequence = data.draw(st.sampled_from((follows,) * 6 + (0, follows + 1 & LAST_SEQUENCE, 1)))
            if again and data.draw(st.integers(0, 3)) == 0:
                first, last, _ = data.draw(st.sampled_from(list(state.batches) if state else []))
                sequence = first
                times = times[:1] * ((last - first & LAST_SEQUENCE) + 1 + data.draw(st.sampled_from((0, 0, 0, 1))))
        else:
            transactional = False
        self._send(times, producer, epoch, sequence, transactional=transactional, zipped=zipped, padding=padding)

    @precondition(lambda self: self.model.history)
    @rule(back=st.integers(1, 10), older=st.sampled_from((False, False, True)))
    def send_again(self, back: int, older: bool) -> None:
        """The producer has lost the answer, or an older producer writes."""
        mine = [each for each in self.model.history if each.producer >= 0 and each.committed is None]
        if mine:
            each = mine[-min(back, len(mine))]
            transactional = each.transactional
            epoch = max(each.epoch - older, 0)
            self._send(
                each.times, each.producer, epoch, each.sequence, transactional=transactional, zipped=False, padding=0
            )

    def _send(self, times: Sequence[int], producer: int, epoch: int, sequence: int, **more: Any) -> None:
        (sent,) = batches(produced(times, producer, epoch, sequence, **more))
        entry = self._entry(sent, None, tuple(times))
        expected = self.model.answer(entry)
        if expected.error:
            with pytest.raises(Refused) as refused:
                self.log.add(sent)
            assert refused.value.code.name == expected.error
            return
        put, new = self.log.add(sent)
        assert (put.base, new) == (expected.base, expected.new)
        if new:
            self.model.append(replace(entry, data=put.data))

    @rule(
        data=st.data(),
        producer=st.sampled_from(PRODUCERS[1:]),
        sequence=st.sampled_from((0, 0, 1, 2, 5)),
        later=st.sampled_from((0, 0, 1, -1)),
        bumps=st.booleans(),
    )
    def verify(self, data: Any, producer: int, sequence: int, later: int, bumps: bool) -> None:
        """The transaction coordinator is asked about a batch, which is written later or never."""
        state = self.model.known.producers.get(producer)
        epoch = max((state.epoch if state else 0) + later, 0)
        times = [1_001] * data.draw(st.integers(1, 2))
        made = produced(times, producer, epoch, sequence, transactional=True, zipped=False, padding=0)
        (sent,) = batches(made)
        expected = self.model.verify(self._entry(sent, None, tuple(times)), bumps=bumps)
        if expected.error:
            with pytest.raises(Refused) as refused:
                self.log.verify(sent, bumps=bumps)
            assert refused.value.code.name == expected.error
        else:
            self.log.verify(sent, bumps=bumps)

    @staticmethod
    def _entry(batch: Batch, ends: bool | None, times: tuple[int, ...]) -> Entry:
        return Entry(
            batch.data, 0, len(times) - 1, batch.producer_id, batch.producer_epoch, batch.base_sequence,
            batch.transactional, ends, times, -1,
        )  # fmt: skip

    @precondition(lambda self: self.model.known.producers)
    @rule(data=st.data(), commits=st.booleans(), bump=st.booleans())
    def end_transaction(self, data: Any, commits: bool, bump: bool) -> None:
        """The partition may have no batch of the transaction."""
        states = self.model.known.producers
        began = [each for each in states if states[each].began is not None]
        producer = data.draw(st.sampled_from(sorted(began or states)))
        self._end(producer, commits=commits, bump=bump)

    def _end(self, producer: int, *, commits: bool, bump: bool) -> None:
        states = self.model.known.producers
        made = marker(producer, states[producer].epoch + bump, committed=commits, coordinator_epoch=0, at_ms=1_020)
        put = self.log.end_transaction(made, committed=commits)
        assert put.base == self.model.end
        self.model.append(replace(self._entry(made, commits, (1_020,)), data=put.data))

    @rule(producer=st.sampled_from(PRODUCERS[1:]), counts=st.lists(st.integers(1, 2), min_size=1, max_size=3))
    def abort(self, producer: int, counts: list[int]) -> None:
        """A whole transaction, with batches of others in between."""
        for count in counts:
            self._continue(producer, [1_005] * count, transactional=True)
            self._continue(-1, [1_004], transactional=False)
        state = self.model.known.producers.get(producer)
        if state is not None and state.began is not None:
            self._end(producer, commits=False, bump=False)
        self.become_durable(0)

    @precondition(lambda self: self.model.durable < len(self.model.entries))
    @rule(back=st.integers(0, 2))
    def become_durable(self, back: int) -> None:
        to = max(len(self.model.entries) - back, self.model.durable)
        for entry in self.model.entries[self.model.durable : to]:
            self.rows[entry.base] = entry.data
        self.model.durable = to
        self.log.durable(self.model.high)

    @rule()
    def fail_to_write(self) -> None:
        self.model.retract()
        self.log.retract()

    @rule(data=st.data())
    def delete_records(self, data: Any) -> None:
        low = max(self.model.start - 2, 0)
        offset = data.draw(st.one_of(st.integers(low, min(self.model.high, low + 8)), st.just(self.model.high)))
        self.model.delete_before(offset)
        first = now(self.log.delete_before(offset))
        assert first == (self.model.entries[0].base if self.model.durable else self.model.high)
        kept = {base: data for base, data in self.rows.items() if base >= first}
        if kept != self.rows:
            self.state = json.loads(json.dumps(self.log.state))
        self.rows = kept

    @precondition(lambda self: self.stored)
    @rule(elected=st.booleans())
    def restart(self, elected: bool) -> None:
        start, end = self.model.start, self.model.high
        self.model.restart()
        self.model.leader_epoch += elected
        self.log = self._new()
        if self.state is not None:
            self.log.begin(self.state)
        while found := [self.rows[base] for base in sorted(self.rows) if base >= self.log.end][:2]:
            for data in found:
                (batch,) = batches(data)
                self.log.restore(batch, committed=committed(batch) if batch.control else None)
        self.log.restored(*((start, end) if start else (0, 0)))
        if self.log.start == self.log.end:
            self.state = None  # as the server does at its start

    @rule()
    def be_elected(self) -> None:
        self.model.leader_epoch += 1
        self.log.leader_epoch += 1

    # reads

    @invariant()
    def ends_agree(self) -> None:
        model, log = self.model, self.log
        assert (log.start, log.end, log.high, log.stable) == (model.start, model.end, model.high, model.stable)
        assert log.size == sum(len(each.data) for each in model.entries)
        open_now = {name for name, each in model.known.producers.items() if each.began is not None}
        assert set(log.open_producers) == open_now
        for epoch in range(-1, model.leader_epoch + 2):
            if epoch >= 0:
                found, end = log.end_of(epoch)
                assert end == model.end_of_epoch(epoch)
                assert found <= epoch
            code = "none" if epoch in (-1, model.leader_epoch) else "fenced_leader_epoch"
            assert log.check_epoch(epoch).name == ("unknown_leader_epoch" if epoch > model.leader_epoch else code)

    @rule(data=st.data(), isolated=st.booleans(), most=st.sampled_from((0, 100, 400, 10_000)), least=st.booleans())
    def fetch(self, data: Any, isolated: bool, most: int, least: bool) -> None:
        offset = data.draw(st.integers(self.model.start, self.model.high))
        self._fetch(offset, most, isolated, least)

    def _fetch(self, offset: int, most: int, isolated: bool, least: bool) -> None:
        model, log = self.model, self.log
        assert log.check(offset).name == "none"
        limit = model.stable if isolated else model.high
        expected = model.fetch(offset, most, limit, one_at_least=least)
        got = now(log.read(offset, most, committed=isolated, one_at_least=least))
        assert got.records == b"".join(each.data for each in expected)
        rows = [(each.producer_id, each.first, each.last) for each in got.aborted]
        assert rows == (model.aborted(offset, expected) if isolated else [])
        ready = log.ready(offset, committed=isolated)
        left = [len(each.data) for each in model.entries if each.last >= offset and each.base < limit]
        if not self.stored or offset >= limit:
            assert ready == (sum(left) if offset < limit else 0)
        else:
            assert ready > 0
        for batch in batches(got.records):
            assert leader_epoch_of(batch) == log.epoch_of(max(batch.base, model.start))

    @invariant()
    def everything_is_read(self) -> None:
        for isolated in (False, True):
            self._fetch(self.model.start, 1 << 20, isolated, True)
        for offset in (self.model.start - 1, self.model.high + 1):
            assert self.log.check(offset).name == "offset_out_of_range"

    @rule(time=st.integers(999, 1_021), isolated=st.booleans())
    def look_up_a_time(self, time: int, isolated: bool) -> None:
        limit = self.model.stable if isolated else self.model.high
        times = self.model.times(limit)
        first = next((each for each in times if each[0] >= time), None)
        assert now(search.first_since(self.log, time, limit)) == first
        everything = self.model.times(self.model.high)
        newest = max((each[0] for each in everything), default=None)
        found = next((each for each in times if each[0] == newest), None)
        assert now(search.newest(self.log, limit)) == found

    @invariant()
    def duplicates_are_known(self) -> None:
        for producer, state in self.model.known.producers.items():
            for first, last, _ in state.batches:
                times = [1_000] * ((last - first & LAST_SEQUENCE) + 1)
                open_now = state.began is not None
                self._send(times, producer, state.epoch, first, transactional=open_now, zipped=False, padding=0)


def chosen(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )


def test_a_partition_behaves_like_kafkas() -> None:
    run_state_machine_as_test(PartitionMachine, settings=chosen(60, 30))


@pytest.mark.all
def test_a_partition_behaves_like_kafkas_in_long_runs() -> None:
    run_state_machine_as_test(PartitionMachine, settings=chosen(1_500, 60))
