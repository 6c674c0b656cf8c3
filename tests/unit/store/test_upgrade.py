"""A store of format 1, with a row for each record, becomes one of format 2 when it is opened, with the same content."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.records import Record
from fencepost.store import DamagedStore, PostgresStore, SQLiteStore, Store

from .postgres import Postgres

#: The tables as the release of format 1 created them.
TABLES = (
    """CREATE TABLE partitions (
        number INTEGER PRIMARY KEY, leader_epoch INTEGER NOT NULL, next_offset BIGINT NOT NULL,
        row_count BIGINT NOT NULL, compacted BIGINT NOT NULL)""",
    """CREATE TABLE records (
        number INTEGER NOT NULL, place BIGINT NOT NULL, leader_epoch INTEGER NOT NULL, producer_id BIGINT,
        producer_epoch INTEGER, control INTEGER NOT NULL, record_key {blob} NOT NULL, record_value {blob},
        checksum BIGINT NOT NULL, PRIMARY KEY (number, place)){end}""",
    """CREATE TABLE kept_values (
        kind TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, checksum BIGINT NOT NULL,
        PRIMARY KEY (kind, name)){end}""",
    """CREATE TABLE kept_batches (
        topic_id {blob} NOT NULL, number INTEGER NOT NULL, base BIGINT NOT NULL, data {blob} NOT NULL,
        checksum BIGINT NOT NULL, PRIMARY KEY (topic_id, number, base)){end}""",
)
#: Its records: commits, a transaction and its end, the rest of a compaction, and records of another leader.
PARTITIONS = [(0, 2, 9, 6, 6), (1, 1, 1, 1, 0)]
_KEY, _VALUE = "0001000167000174000000", "0004000000000000000"
RECORDS = [
    (0, 2, 1, None, None, 0, f"{_KEY}00", f"{_VALUE}3ffffffff01000000000000000300", 4129450056),
    (0, 3, 1, 7, 2, 0, f"{_KEY}02", f"{_VALUE}4ffffffff0278000000000000000400", 3805545820),
    (0, 4, 1, 7, 2, 0, f"{_KEY}03", f"{_VALUE}5ffffffff037878000000000000000500", 3008903871),
    (0, 5, 1, 7, 2, 1, "00000001", "000000000000", 932456664),
    (0, 7, 1, None, None, 0, f"{_KEY}05", f"{_VALUE}9ffffffff01000000000000000900", 1799311397),
    (0, 8, 2, None, None, 0, f"{_KEY}06", f"{_VALUE}1ffffffff0278000000000000000100", 2076888636),
    (1, 0, 1, None, None, 0, f"{_KEY}07", f"{_VALUE}1ffffffff0278000000000000000100", 669107563),
]
Open = Callable[[Sequence[tuple[Any, ...]]], Store]


def offset(partition: int, value: int, producer: Producer | None = None) -> Record:
    stored = OffsetCommitValue(value, commit_timestamp=value, metadata="x" * (value % 3))
    return Record(OffsetCommitKey("g", "t", partition), stored, producer)


ONE = Producer(7, 2)
LOGS = (
    [
        offset(0, 3),
        offset(2, 4, ONE),
        offset(3, 5, ONE),
        Record(ControlKey(True), ControlValue(0), ONE),
        offset(5, 9),
        offset(6, 1),
    ],
    [offset(7, 1)],
)


def rows(records: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(*row[:6], *map(bytes.fromhex, row[6:8]), row[8]) for row in records]


@pytest.fixture(params=["sqlite", "postgres"])
def of_format_1(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    def in_file(records: Sequence[tuple[Any, ...]]) -> Store:
        path = tmp_path / "old.db"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as file:
            for table in TABLES:
                file.execute(table.format(blob="BLOB", end=" WITHOUT ROWID"))
            file.executemany(f"INSERT INTO partitions VALUES ({', '.join('?' * 5)})", PARTITIONS)
            file.executemany(f"INSERT INTO records VALUES ({', '.join('?' * 9)})", rows(records))
            file.execute(f"PRAGMA application_id = {0x66707374}")
            file.execute("PRAGMA user_version = 1")
        file.close()
        return SQLiteStore(path)

    def in_database(records: Sequence[tuple[Any, ...]]) -> Store:
        import psycopg  # noqa: PLC0415  # may be missing

        with psycopg.connect(postgres.where, autocommit=True) as session:
            session.execute("DROP SCHEMA IF EXISTS old CASCADE")
            session.execute("CREATE SCHEMA old")
            session.execute("SET search_path = old")
            session.execute("CREATE TABLE format (version INTEGER NOT NULL)")
            session.execute("INSERT INTO format VALUES (1)")
            for table in TABLES:
                session.execute(table.format(blob="BYTEA", end="").encode())
            with session.cursor() as cursor:
                cursor.executemany(f"INSERT INTO partitions VALUES ({', '.join(['%s'] * 5)})".encode(), PARTITIONS)
                cursor.executemany(f"INSERT INTO records VALUES ({', '.join(['%s'] * 9)})".encode(), rows(records))
        return PostgresStore(postgres.where, schema="old")

    if request.param == "sqlite":
        return in_file
    postgres: Postgres = request.getfixturevalue("postgres")
    return in_database


@pytest.mark.parametrize("at_once", [1, 2, 1_000])
def test_an_upgraded_store_keeps_its_records(of_format_1: Open, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("fencepost.store.upgrade._CHUNK", at_once)

    async def main() -> None:
        store = of_format_1(RECORDS)
        async with store:
            assert [list(await store.load(place)) for place in range(2)] == [*LOGS]
            await store.append(0, [offset(0, 8)], leader_epoch=await store.lead(0))
        async with store:
            assert list(await store.load(0)) == [*LOGS[0], offset(0, 8)]
            assert await store.compact(0) == 1
            assert list(await store.load(0)) == [*LOGS[0][1:], offset(0, 8)]

    asyncio.run(main())


def test_a_record_that_was_changed_is_found(of_format_1: Open) -> None:
    for place in range(len(RECORDS)):
        changed = [*RECORDS]
        changed[place] = (*changed[place][:8], changed[place][8] ^ 1)

        async def main(store: Store) -> None:
            await store.open()

        number, offset = RECORDS[place][:2]
        with pytest.raises(DamagedStore, match=f"partition {number}, offset {offset}: wrong checksum, the record was"):
            asyncio.run(main(of_format_1(changed)))
