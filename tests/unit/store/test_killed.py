"""Killed at random moments under load, a store has every acknowledged record and no rejected one.

A child process serves (``traffic``), prints its actions, and is killed. The test then compares the store with two
accounts of the output. The first is about records: the store must equal some state of the log that is not before the
last acknowledgement, in the terms of the model and of the core. The second is about answers, and does not know records.

A kill leaves written data to the operating system, so it does not test ``synchronous``; that would need a machine that
crashes. ``test_sqlite`` checks the setting.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fencepost.codec import Codec
from fencepost.coordinator import consumer_views, initial_state, offsets_view, replay, views
from fencepost.coordinator.kernel.errors import InternalError
from fencepost.protocol.offset_records import OffsetCommitKey, Producer
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.store import SQLiteStore
from fencepost_model.offsets.promises import pending, worth
from fencepost_model.offsets.state import Place

from .traffic import FAULTS, PARTITIONS, SETTINGS

CODEC = Codec()
_MEMORY = Path("/dev/shm")
#: A child that has printed no line for this long hangs, and is killed.
HANGS_S = 20.0
#: A child that has not compacted a partition within so many lines is killed.
MOST_LINES = 20_000


class Lost(AssertionError):
    """The store does not hold the reported records."""


@dataclass
class Asked:
    """An append: its records, and the reports about it."""

    records: list[Record]
    landed: bool | None = None


@dataclass
class Account:
    """An account.

    - ``logs``: the records that are certainly stored, by partition.
    - ``asked``: the appends of the running child, in order, by partition.
    - ``values``: for each offset, the values that may be read, the first of them acknowledged, and the rejected values.
    """

    logs: list[list[Record]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    asked: list[dict[int, Asked]] = field(default_factory=lambda: [{} for _ in range(PARTITIONS)])
    values: dict[tuple[str, int], list[int | None]] = field(default_factory=dict)
    refused: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    members: dict[str, dict[str, bool | None]] = field(default_factory=dict)
    acknowledged: int = 0
    refusals: int = 0
    records: int = 0
    compacted: int = 0
    kills: int = 0

    def add_figures(self, record: Callable[[str, object], None]) -> None:
        """Write the figures into the report of the tests; a certificate has them."""
        record("kills", self.kills)
        record("acknowledged", self.acknowledged)

    def hear(self, words: Sequence[Any]) -> None:
        match words:
            case ["append", number, partition, rows]:
                self.asked[partition][number] = Asked([_record(*row) for row in rows])
            case ["landed", number, well]:
                (asked,) = (each[number] for each in self.asked if number in each)
                asked.landed = well
                self.acknowledged += well
                self.records += len(asked.records) * well
                self.refusals += not well
            case ["compacted", gone]:
                self.compacted += gone
            case ["commit", group, partition, value]:
                self.values.setdefault((group, partition), [None]).append(value)
            case ["committed", group, partition, value]:
                may = self.values[group, partition]
                del may[: may.index(value)]
            case ["refused", group, partition, value]:
                may = self.values.setdefault((group, partition), [None])
                if value in may:
                    may.remove(value)
                self.refused.setdefault((group, partition), set()).add(value)
            case ["generation", group, generation]:
                self.generations[group] = generation
            case ["leaves", group, name]:
                self.members[group][name] = None
            case ["member", group, name, there]:
                self.members.setdefault(group, {})[name] = there

    def check(self, loaded: Sequence[Sequence[Record]]) -> None:
        """Compare; raise ``Lost`` for a difference. Otherwise the account continues from the content of the store."""
        for partition, records in enumerate(loaded):
            self._records(partition, records)
        state = replay(initial_state(SETTINGS, INTENDED), [record for records in loaded for record in records])
        self._answers(state)
        self.logs = [list(records) for records in loaded]
        self.asked = [{} for _ in range(PARTITIONS)]

    def _records(self, partition: int, loaded: Sequence[Record]) -> None:
        asked = [each for each in self.asked[partition].values() if each.landed is not False]
        sure = max((place + 1 for place, each in enumerate(asked) if each.landed), default=0)
        log = [*self.logs[partition], *(record for each in asked[:sure] for record in each.records)]
        try:
            found = outcome(loaded)
        except InternalError:
            raise Lost(f"partition {partition} holds what no coordinator has written") from None
        for each in [*asked[sure:], None]:
            if outcome(log) == found:
                self._model(log, loaded)
                return
            if each is not None:
                log += each.records
        raise Lost(f"partition {partition} holds what no moment of it did since the last acknowledgement")

    def _model(self, log: Sequence[Record], loaded: Sequence[Record]) -> None:
        places = {
            Place(each.key.group, each.key.topic, each.key.partition)
            for each in log
            if isinstance(each.key, OffsetCommitKey)
        }
        for place in places:
            by_model, found = _value(log, worth(log, place)), _value(loaded, worth(loaded, place))
            if found != by_model:
                raise Lost(f"{place} is {found}, and {by_model} by the model")
        if pending(log) != pending(loaded):
            raise Lost("other offsets are pending than by the model")

    def _answers(self, state: Any) -> None:
        committed = {
            (row.group_id + ("/x" if row.topic == "x" else ""), row.partition): row.offset
            for row in offsets_view(state).committed
        }
        for key, may in self.values.items():
            value = committed.get(key)
            if value in self.refused.get(key, ()):
                raise Lost(f"{key} is {value}, which was refused")
            if value not in may:
                raise Lost(f"{key} is {value}, and may be {may}")
            self.values[key] = [value]
        there = views(state)
        for group, generation in self.generations.items():
            if group not in there or there[group].generation_id < generation:
                raise Lost(f"{group} was in generation {generation}")
        consumers = consumer_views(state)
        for group, members in self.members.items():
            names = {each.member_id for each in consumers[group].members} if group in consumers else set()
            for name, is_there in members.items():
                if is_there is not None and is_there != (name in names):
                    raise Lost(f"{name} of {group} is {'gone' if is_there else 'there again'}")
            self.members[group] = dict.fromkeys(names, True)


def _value(log: Sequence[Record], at: int | None) -> object:
    return None if at is None else log[at].value


def _record(producer_id: int | None, epoch: int, control: int, key: str, value: str | None) -> Record:
    producer = None if producer_id is None else Producer(producer_id, epoch)
    record = CODEC.loaded(
        bytes.fromhex(key), None if value is None else bytes.fromhex(value), producer, control=bool(control)
    )
    assert record is not None
    return record


def outcome(log: Sequence[Record]) -> object:
    """Return the state of a coordinator that has read a log."""
    state = replay(initial_state(SETTINGS, INTENDED), log)
    seen = offsets_view(state)
    offsets = [(each.group_id, each.topic, each.partition, each.offset) for each in seen.committed]
    waits = [(each.group_id, each.topic, each.partition, each.offset, each.producer_id) for each in seen.pending]
    return offsets, waits, seen.open_transactions, views(state), consumer_views(state)


async def load(path: Path) -> list[Sequence[Record]]:
    async with SQLiteStore(path, PARTITIONS) as store:
        return [await store.load(partition) for partition in range(PARTITIONS)]


def _kill(child: int) -> None:
    with suppress(ProcessLookupError):  # a broken transaction may have ended
        os.kill(child, signal.SIGKILL)


class Nursery:
    """Run children that serve, one after the other, and read their output."""

    def __init__(self) -> None:
        here = Path(__file__)
        words = [sys.executable, "-m", "tests.unit.store.traffic"]
        pipe = subprocess.PIPE
        path = os.pathsep.join([str(here.parents[3]), *sys.path])  # the product that this process imports
        environment = {**os.environ, "PYTHONPATH": path}
        self.process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=here.parents[3], env=environment
        )

    def kill_one(
        self, path: Path, seed: int, random: Random, account: Account, fault: str | None, *, compacts: bool = False
    ) -> None:
        """Let a child serve, and kill it a moment after it has printed some lines; add all its output to the
        account. ``compacts``: kill it after it has compacted a partition, however many lines that takes."""
        assert self.process.stdin is not None
        asks = {"path": str(path), "seed": seed, "fault": fault}
        self.process.stdin.write(json.dumps(asks).encode() + b"\n")
        self.process.stdin.flush()
        lines = self._lines()
        word, child = next(lines)
        assert word == "child"
        kills = partial(_kill, child)
        hangs = threading.Timer(HANGS_S, kills)
        hangs.start()
        after, moment = random.choice([0, 20, 200, 400]) * random.random(), random.random() * 0.005
        read: list[list[Any]] = []
        killed = False
        for words in lines:
            if words[0] == "gone":
                assert fault or words[1] == -signal.SIGKILL, words
                break
            read.append(words)
            hangs.cancel()
            due = (words[0] == "compacted" and words[1] > 0) or len(read) == MOST_LINES
            if not killed and (due if compacts else len(read) == int(after) + 1):
                time.sleep(moment)
                kills()
                killed = True
            elif not killed:
                hangs = threading.Timer(HANGS_S, kills)
                hangs.start()
        hangs.cancel()
        for words in read:
            account.hear(words)

    def _lines(self) -> Iterator[list[Any]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                yield json.loads(line)
            except ValueError:  # it was killed within a line, or at its end
                continue

    def close(self) -> None:
        for end in (self.process.stdin, self.process.stdout):
            assert end is not None
            end.close()
        self.process.wait()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[Path]:
    """Return the path of a store, in a file system in memory if there is one. On a busy disk so little happens between
    two kills that no compaction ends."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else tmp_path) as folder:
        yield Path(folder, "groups.db")


def kills(
    nursery: Nursery,
    path: Path,
    seeds: Iterable[int],
    account: Account,
    fault: str | None = None,
    *,
    compacts: bool = False,
) -> None:
    logging.disable(logging.ERROR)
    try:
        for seed in seeds:
            account.kills += 1
            random = Random(f"kill {seed}")
            nursery.kill_one(path, seed, random, account, fault, compacts=compacts)
            account.check(asyncio.run(load(path)))
    finally:
        logging.disable(logging.NOTSET)


def test_nothing_acknowledged_is_gone_and_nothing_refused_is_there(
    nursery: Nursery, groups: Path, record_property: Callable[[str, object], None]
) -> None:
    """25 kills, and more until a compaction and a full disk were among them. Threads do these beside the traffic, so
    how many happen between two kills depends on the machine's load; the further children live until they compact."""
    account = Account()

    def happened() -> bool:
        return account.acknowledged > 100 and account.refusals > 0 and account.compacted > 0

    kills(nursery, groups, range(100, 125), account)
    kills(nursery, groups, takewhile(lambda _: not happened(), range(125, 325)), account, compacts=True)
    assert happened(), account
    account.add_figures(record_property)


@pytest.mark.all
@pytest.mark.parametrize("first", range(1_000, 2_000, 100))
def test_a_thousand_kills(
    nursery: Nursery, groups: Path, first: int, record_property: Callable[[str, object], None]
) -> None:
    account = Account()
    kills(nursery, groups, range(first, first + 100), account)
    assert account.acknowledged > 1_000
    assert account.refusals > 10
    account.add_figures(record_property)
    print(account.acknowledged, "appends acknowledged,", account.refusals, "refused,", account.compacted, "compacted")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_store_is_found(nursery: Nursery, groups: Path, fault: str) -> None:
    """Ends at the first loss. How much is compacted between two kills depends on the machine's load, so the children
    after the first 40 live until they compact."""
    account = Account()

    def damaged() -> None:
        kills(nursery, groups, range(5_000, 5_040), account, fault)
        kills(nursery, groups, range(5_040, 5_080), account, fault, compacts=True)

    with pytest.raises(Lost):
        damaged()
