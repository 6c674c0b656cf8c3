"""A store compared with plain lists and dictionaries, while statements fail and the machine crashes."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

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

from fencepost.log import FencedEpoch
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.records import Record
from fencepost.store import (
    AppendError,
    Change,
    DamagedStore,
    DropBatches,
    InDoubt,
    MemoryStore,
    Put,
    PutBatch,
    SQLiteStore,
    Store,
)
from fencepost.store.checking import check_file
from fencepost_model.offsets.promises import pending, worth
from fencepost_model.offsets.state import Place

_Value = TypeVar("_Value")
PLACES: Final = [Place("g", "t", key) for key in range(4)]
PARTITIONS: Final = 2
TOPICS: Final = (bytes(16), b"\1" * 16)
#: in memory if there is such a folder: no test here is about the disk itself
FOLDERS: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
#: no record has room for it
UNFIT: Final = Record(OffsetCommitKey("g", "t", 1 << 31), OffsetCommitValue(1, commit_timestamp=1))


def _plain(key: int, value: int | None, producer: int | None = None) -> Record:
    stored = None if value is None else OffsetCommitValue(value, commit_timestamp=1, metadata="ö" * (value % 3))
    return Record(OffsetCommitKey("g", "t", key), stored, None if producer is None else Producer(producer, 0))


RECORDS: Final = st.one_of(
    st.builds(_plain, st.integers(0, 3), st.one_of(st.integers(0, 9), st.none())),
    st.builds(_plain, st.integers(0, 3), st.integers(0, 9), st.sampled_from((7, 8))),
    st.builds(
        lambda producer, committed: Record(ControlKey(committed), ControlValue(0), Producer(producer, 0)),
        st.sampled_from((7, 8)),
        st.booleans(),
    ),
)
CHANGES: Final = st.one_of(
    st.builds(Put, st.sampled_from("xy"), st.sampled_from(("", "a", "ö")), st.none() | st.text("añ", max_size=3)),
    st.builds(
        PutBatch, st.sampled_from(TOPICS), st.integers(0, 1), st.integers(0, 9), st.binary(min_size=1, max_size=20)
    ),
    st.builds(DropBatches, st.sampled_from(TOPICS), st.one_of(st.none(), st.integers(0, 1)), st.integers(0, 10)),
)  # fmt: skip


def known(log: Sequence[Record]) -> tuple[list[Any], set[tuple[Place, int]]]:
    """Return the committed values and the offsets of open transactions that a coordinator has after these records."""
    found = [worth(log, place) for place in PLACES]
    return [None if at is None else log[at].value for at in found], pending(log)


@dataclass(slots=True)
class Model:
    """The acknowledged data. ``compacted``: the partitions that may have lost superseded records."""

    logs: list[list[Record]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    epochs: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    batches: dict[tuple[bytes, int], dict[int, bytes]] = field(default_factory=dict)

    def copy(self) -> Model:
        return Model(
            [list(each) for each in self.logs],
            list(self.epochs),
            {kind: dict(row) for kind, row in self.values.items()},
            {place: dict(row) for place, row in self.batches.items()},
        )

    def change(self, changes: Sequence[Change]) -> None:
        for each in changes:
            match each:
                case Put(kind=kind, name=name, value=value):
                    row = self.values.setdefault(kind, {})
                    row.pop(name, None)
                    if value is not None:
                        row[name] = value
                case PutBatch():
                    self.batches.setdefault((each.topic_id, each.partition), {})[each.base] = each.data
                case DropBatches():
                    for (topic, number), rows in self.batches.items():
                        if topic == each.topic_id and each.partition in (None, number):
                            for base in list(rows):
                                if each.partition is None or base < each.below:
                                    del rows[base]

    def kept(self) -> dict[str, dict[str, str]]:
        return {kind: row for kind, row in self.values.items() if row}


class Faults:
    """Break one statement of a connection, or copy the file before it."""

    def __init__(self, connection: Any) -> None:
        self.left: int | None = None
        self.act: Callable[[str], None] = lambda _: None
        self._run = connection.run
        self._insert = connection.insert
        connection.run, connection.insert = self.run, self.insert

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        self._count(statement)
        return int(self._run(statement, values))

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        self._count("INSERT")
        self._insert(table, rows)

    def _count(self, statement: str) -> None:
        if self.left is not None and statement != "ROLLBACK":
            self.left -= 1
            if self.left < 0:
                self.left = None
                self.act(statement)


class StoreMachine(RuleBasedStateMachine):
    """A store in memory; ``SqliteMachine`` has one in a file."""

    def new(self) -> Store:
        return MemoryStore(PARTITIONS)

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="fencepost-store-", dir=FOLDERS))
        self.model = Model()
        #: other possible states of the store after a write with unknown result
        self.others: list[Model] = []
        self.exact = [True] * PARTITIONS
        self.store = self.new()
        assert self._do(self.store.open()) == PARTITIONS

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self._do(self.store.close())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            shutil.rmtree(self.folder)

    def _do(self, asked: Awaitable[_Value]) -> _Value:
        async def main() -> _Value:
            return await asked

        return self.loop.run_until_complete(main())

    # writes

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def lead(self, partition: int) -> None:
        self.model.epochs[partition] += 1
        assert self._do(self.store.lead(partition)) == self.model.epochs[partition]

    @rule(
        asked=st.lists(
            st.tuples(
                st.integers(0, PARTITIONS - 1),
                st.lists(RECORDS, max_size=5),
                st.sampled_from((0,) * 6 + (1, -1)),
                st.sampled_from((False,) * 8 + (True,)),
            ),
            min_size=1,
            max_size=4,
        )
    )
    def append(self, asked: list[tuple[int, list[Record], int, bool]]) -> None:
        self._append(asked, faulty=False)

    def _append(self, asked: list[tuple[int, list[Record], int, bool]], *, faulty: bool) -> None:
        async def ask() -> list[BaseException | None]:
            outcomes = [
                self.store.append(
                    partition, [*records, UNFIT] if unfit else records, leader_epoch=self.model.epochs[partition] + off
                )
                for partition, records, off, unfit in asked
            ]
            return await asyncio.gather(*outcomes, return_exceptions=True)

        outcomes = self._do(ask())
        failed: set[int] = set()
        for (partition, records, off, unfit), failure in zip(asked, outcomes, strict=True):
            if failure is None:
                assert not off
                assert not unfit
                assert not self.together or partition not in failed
                for each in (self.model, *self.others):
                    each.logs[partition] += records
                continue
            if not faulty:
                behind = self.together and partition in failed
                assert behind or off or unfit
                if off and not unfit and not behind:
                    assert isinstance(failure, FencedEpoch)
            if isinstance(failure, InDoubt):
                self.others += [each.copy() for each in (self.model, *self.others)]
                for each in self.others[len(self.others) // 2 :]:
                    each.logs[partition] += records
            else:
                assert isinstance(failure, AppendError | FencedEpoch)
            failed.add(partition)

    #: whether appends that are requested together share a transaction
    together = False

    @rule(changes=st.lists(CHANGES, min_size=1, max_size=4))
    def write(self, changes: list[Change]) -> None:
        self._do(self.store.write(changes))
        for each in (self.model, *self.others):
            each.change(changes)

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def compact(self, partition: int) -> None:
        before = len(self._do(self.store.load(partition)))
        self.exact[partition] = False
        gone = self._do(self.store.compact(partition))
        assert len(self._do(self.store.load(partition))) == before - gone

    @rule(partition=st.integers(0, PARTITIONS - 1), first=st.lists(RECORDS), records=st.lists(RECORDS, min_size=1))
    def compact_while_appending(self, partition: int, first: list[Record], records: list[Record]) -> None:
        epoch = self.model.epochs[partition]

        async def at_once() -> None:
            await self.store.append(partition, first, leader_epoch=epoch)
            compaction = asyncio.ensure_future(self.store.compact(partition))
            await asyncio.sleep(0)
            await self.store.append(partition, records, leader_epoch=epoch)
            await compaction

        self._do(at_once())
        self.exact[partition] = False
        self.model.logs[partition] += [*first, *records]

    @rule()
    def open_again(self) -> None:
        self._do(self.store.close())
        if not isinstance(self.store, MemoryStore):
            self.store = self.new()
        assert self._do(self.store.open()) == PARTITIONS

    # reads

    def _is(self, store: Store, model: Model) -> bool:
        for partition, log in enumerate(model.logs):
            loaded = list(self._do(store.load(partition)))
            if (self.exact[partition] and loaded != log) or known(loaded) != known(log):
                return False
        if self._do(store.kept()).values != model.kept():
            return False
        return all(
            list(self._do(store.batches(topic, number, 0, 1 << 20)))
            == [data for _, data in sorted(model.batches.get((topic, number), {}).items())]
            for topic in TOPICS
            for number in range(2)
        )

    @invariant()
    def everything_is_there(self) -> None:
        found = [each for each in (self.model, *self.others) if self._is(self.store, each)]
        assert found
        self.model, self.others = found[0], []

    @rule(
        topic=st.sampled_from(TOPICS), number=st.integers(0, 1), offset=st.integers(0, 11),
        most=st.sampled_from((0, 1, 20, 40, 1_000)), within=st.booleans(),
    )  # fmt: skip
    def read_batches(self, topic: bytes, number: int, offset: int, most: int, within: bool) -> None:
        rows = sorted(self.model.batches.get((topic, number), {}).items())
        begin = max([base for base, _ in rows if base <= offset], default=offset) if within else offset
        expected: list[bytes] = []
        for base, data in rows:
            if base >= begin:
                if expected and sum(map(len, expected)) + len(data) > most:
                    break
                expected.append(data)
        assert list(self._do(self.store.batches(topic, number, offset, most, within=within))) == expected


class SqliteMachine(StoreMachine):
    """Statements fail, and copies of the file are opened as after a crash."""

    together = True

    def new(self) -> Store:
        store = SQLiteStore(self.folder / "store", PARTITIONS, flush=False)
        self.faults = Faults(store._connection)
        return store

    @rule(
        at=st.integers(0, 8),
        code=st.sampled_from((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT)),
        after=st.booleans(),
        asked=st.lists(
            st.tuples(st.integers(0, PARTITIONS - 1), st.lists(RECORDS, max_size=5), st.just(0), st.just(False)),
            min_size=1,
            max_size=4,
        ),
        changes=st.lists(CHANGES, max_size=3),
    )
    def break_a_statement(
        self, at: int, code: int, after: bool,
        asked: list[tuple[int, list[Record], int, bool]], changes: list[Change],
    ) -> None:  # fmt: skip
        """``after``: the disk has made the write durable, and reports a failure."""

        def act(statement: str) -> None:
            if after and statement == "COMMIT" and code != sqlite3.SQLITE_FULL:
                self.faults._run(statement)
            failure = sqlite3.OperationalError("disk")
            failure.sqlite_errorcode = code
            raise failure

        self.faults.left, self.faults.act = at, act
        if changes:
            try:
                self.write(changes)
            except InDoubt:
                made = self.model.copy()
                made.change(changes)
                self.others = [made]
            except AppendError:
                assert self.faults.left is None
        else:
            self._append(asked, faulty=True)
        self.faults.left = None

    @rule(
        at=st.integers(0, 8),
        asked=st.lists(
            st.tuples(st.integers(0, PARTITIONS - 1), st.lists(RECORDS, max_size=5), st.just(0), st.just(False)),
            min_size=1,
            max_size=3,
        ),
        partition=st.integers(0, PARTITIONS - 1),
        what=st.sampled_from(("append", "append", "compact")),
    )
    def crash(self, at: int, asked: list[tuple[int, list[Record], int, bool]], partition: int, what: str) -> None:
        """Open a copy of the file from before a statement: it has everything acknowledged, and all or nothing of each
        unacknowledged write. Writes that are asked for together mostly share a transaction, but need not."""
        copy = self.folder / "copy"

        def act(_: str) -> None:
            for end in ("", "-wal"):
                if (self.folder / f"store{end}").exists():
                    shutil.copy(self.folder / f"store{end}", f"{copy}{end}")

        self.faults.left, self.faults.act = at, act
        before = self.model.copy()
        if what == "compact":
            self.compact(partition)
        else:
            self._append(asked, faulty=False)
        self.faults.left = None
        if copy.exists():
            store = SQLiteStore(copy, flush=False)
            assert self._do(store.open()) == PARTITIONS
            possible = [before.copy()]
            for to, records, _, _ in asked if what == "append" else ():
                possible.append(possible[-1].copy())
                possible[-1].logs[to] += records
            assert any(self._is(store, each) for each in possible)
            self._do(store.close())
            assert check_file(copy).faults == ()
            for each in self.folder.glob("copy*"):
                each.unlink()

    @rule(topic=st.sampled_from(TOPICS), base=st.sampled_from((0, 4, 8)))
    def damage_a_batch(self, topic: bytes, base: int) -> None:
        """A batch that was changed on the disk is not served, wherever it is in a read."""
        self.write([PutBatch(topic, 1, each, b"batch %d" % each) for each in (0, 4, 8)])
        place = topic, 1
        self._do(self.store.close())
        with closing(sqlite3.connect(self.folder / "store")) as file:
            where = "WHERE topic_id = ? AND number = ? AND base = ?"
            values = (*place, base)
            ((good,),) = file.execute(f"SELECT data FROM kept_batches {where}", values).fetchall()
            file.execute(f"UPDATE kept_batches SET data = ? {where}", (bytes([good[0] ^ 1]) + good[1:], *values))
            file.commit()
            store = self.new()
            file.close()
            self._do(store.open())
            with pytest.raises(DamagedStore):
                self._do(store.batches(topic, 1, 0, 1 << 20))
            self._do(store.close())
        assert check_file(self.folder / "store").faults
        with closing(sqlite3.connect(self.folder / "store")) as file:
            file.execute(f"UPDATE kept_batches SET data = ? {where}", (good, *values))
            file.commit()
        self.store = self.new()
        self._do(self.store.open())

    @precondition(lambda self: not self.others)
    @rule()
    def check(self) -> None:
        self._do(self.store.close())
        found = check_file(self.folder / "store")
        assert found.faults == ()
        assert found.partitions == PARTITIONS
        assert found.batches == sum(map(len, self.model.batches.values()))
        assert found.values == sum(map(len, self.model.values.values()))
        self.store = self.new()
        self._do(self.store.open())


def chosen(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )


@pytest.mark.parametrize(("machine", "examples"), [(StoreMachine, 40), (SqliteMachine, 20)])
def test_a_store_keeps_acknowledged_records(machine: type[StoreMachine], examples: int) -> None:
    run_state_machine_as_test(machine, settings=chosen(examples, 20))


@pytest.mark.all
@pytest.mark.parametrize("machine", [StoreMachine, SqliteMachine])
def test_a_store_keeps_acknowledged_records_in_long_runs(machine: type[StoreMachine]) -> None:
    run_state_machine_as_test(machine, settings=chosen(500, 50))
