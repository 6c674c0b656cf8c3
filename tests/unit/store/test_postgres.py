"""Two hosts and one database: the newest elected host writes, and takes over the acknowledged records of the other
one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.aio import GroupBroker
from fencepost.log import FencedEpoch
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost.store import DamagedStore, NewerFormat, OtherPartitions, PostgresStore, Put, StoreError

from .postgres import Postgres

TOPIC = Topic("t", bytes(15) + b"\1", 4)


def record(number: int) -> Record:
    return Record(OffsetCommitKey("g", "t", number), OffsetCommitValue(number, commit_timestamp=1))


def commit(group: str, offset: int) -> o.OffsetCommitRequest:
    rows = (o.OffsetCommitRequestPartition(0, committed_offset=offset),)
    return o.OffsetCommitRequest(group, topics=(o.OffsetCommitRequestTopic(name="t", partitions=rows),))


async def committed(groups: GroupBroker, group: str, offset: int) -> ErrorCode:
    answer = await groups.commit_offsets(commit(group, offset))
    return answer.topics[0].partitions[0].error_code


HOST = """
import asyncio, sys
from fencepost.aio import GroupBroker
from fencepost.store import PostgresStore
from tests.unit.store.test_postgres import TOPIC, committed

async def main():
    async with PostgresStore(sys.argv[1], 2, schema="hosts") as store, GroupBroker(store, topics=[TOPIC]) as groups:
        for number in range(100_000):
            code = await committed(groups, f"group {number % 7}", number)
            print(number, code.name, flush=True)

asyncio.run(main())
"""


def host(postgres: Postgres) -> subprocess.Popen[str]:
    root = Path(__file__).parents[3]
    words = [sys.executable, "-c", HOST, postgres.where]
    path = os.pathsep.join([str(root), *sys.path])  # the product that this process imports
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)


def test_one_host_is_killed_and_the_other_loads_and_continues(postgres: Postgres) -> None:
    with host(postgres) as first:
        assert first.stdout is not None
        lines = [first.stdout.readline() for _ in range(60)]
        first.send_signal(signal.SIGKILL)
        lines += first.stdout.readlines()
    acknowledged = [int(line.split()[0]) for line in lines if line.endswith(" NONE\n")]
    assert len(acknowledged) >= 60

    async def second() -> None:
        async with PostgresStore(postgres.where, schema="hosts") as store, GroupBroker(store, topics=[TOPIC]) as groups:
            for place in range(7):
                (row,) = groups.offsets_view(f"group {place}").committed
                last = max(number for number in acknowledged if number % 7 == place)
                assert row.offset in (last, acknowledged[-1] + 1)  # the pending one may be stored
            assert await committed(groups, "group 0", 1_000_000) is ErrorCode.NONE

    asyncio.run(second())


def test_an_old_leader_that_lives_writes_nothing_and_learns_it(postgres: Postgres) -> None:
    async def scene(mine: PostgresStore, old: GroupBroker) -> None:
        assert await committed(old, "g", 1) is ErrorCode.NONE
        await mine.write([Put("kind", "name", "old")])
        theirs = PostgresStore(postgres.where, schema="fenced")
        async with theirs, GroupBroker(theirs, topics=[TOPIC]) as new:
            assert [row.offset for row in new.offsets_view("g").committed] == [1]
            assert await committed(new, "g", 2) is ErrorCode.NONE
            assert not old.fenced.is_set()
            assert await committed(old, "g", 3) is ErrorCode.NOT_COORDINATOR
            assert old.fenced.is_set()
            with pytest.raises(FencedEpoch):
                await mine.write([Put("kind", "name", "older")])
            assert (await theirs.kept()).values == {"kind": {"name": "old"}}
            assert [row.offset for row in new.offsets_view("g").committed] == [2]

    async def main() -> None:
        mine = PostgresStore(postgres.where, 2, schema="fenced")
        async with mine, GroupBroker(mine, topics=[TOPIC]) as old:
            await scene(mine, old)

    asyncio.run(main())


def test_an_election_waits_for_a_write_that_is_under_way_and_loads_it(postgres: Postgres) -> None:
    """An unfinished append of the old leader is stored before the new one reads, or never."""

    async def main() -> None:
        async with PostgresStore(postgres.where, 1, schema="race") as old:
            epoch = await old.lead(0)
            for number in range(20):
                async with PostgresStore(postgres.where, schema="race") as new:
                    asked = [old.append(0, [record(number), record(-number)], leader_epoch=epoch) for _ in range(5)]
                    elected = await new.lead(0)
                    ended = await asyncio.gather(*asked, return_exceptions=True)
                    loaded = await new.load(0)
                    there = sum(each.key == record(number).key for each in loaded)
                    assert there == sum(each is None for each in ended) * (1 if number else 2)
                    epoch = elected

    asyncio.run(main())


def test_a_database_that_restarts_loses_nothing_and_is_found_again(postgres: Postgres) -> None:
    async def main() -> None:
        store = PostgresStore(postgres.where, 2, schema="crash")
        async with store, GroupBroker(store, topics=[TOPIC]) as groups:
            assert await committed(groups, "g", 1) is ErrorCode.NONE
            await asyncio.to_thread(postgres.crash)
            assert await committed(groups, "g", 2) is ErrorCode.NOT_COORDINATOR
            assert await committed(groups, "g", 3) is ErrorCode.NOT_COORDINATOR
            await asyncio.to_thread(postgres.start)
            while await committed(groups, "g", 4) is not ErrorCode.NONE:
                await asyncio.sleep(0.05)
            values = [each.value for place in range(2) for each in await store.load(place)]
            assert [each.offset for each in values if isinstance(each, OffsetCommitValue)] == [1, 4]

    asyncio.run(main())


async def opened(store: PostgresStore) -> None:
    async with store:
        pass


def test_an_unusable_schema_is_named(postgres: Postgres) -> None:
    import psycopg  # noqa: PLC0415  # may be missing

    asyncio.run(opened(PostgresStore(postgres.where, 2, schema="named")))
    with pytest.raises(OtherPartitions, match="partitions must be 2, as when the store was created"):
        asyncio.run(opened(PostgresStore(postgres.where, 3, schema="named")))
    with pytest.raises(StoreError, match="PostgreSQL: connection is bad"):
        asyncio.run(opened(PostgresStore("host=/nowhere dbname=none")))
    with psycopg.connect(postgres.where, autocommit=True) as session:
        session.execute("CREATE SCHEMA cats")
        session.execute("CREATE TABLE cats.cats (name TEXT)")
        session.execute("UPDATE named.format SET version = 3")
    with pytest.raises(NewerFormat, match="schema named has format 3, but this release reads formats up to 2"):
        asyncio.run(opened(PostgresStore(postgres.where, schema="named")))
    with pytest.raises(StoreError, match="schema cats is not a store; nothing in it was changed"):
        asyncio.run(opened(PostgresStore(postgres.where, schema="cats")))


def test_a_record_that_was_changed_is_found(postgres: Postgres) -> None:
    import psycopg  # noqa: PLC0415  # may be missing

    async def main() -> None:
        async with PostgresStore(postgres.where, 1, schema="damage") as store:
            await store.append(0, [record(1), record(2)], leader_epoch=await store.lead(0))
            with psycopg.connect(postgres.where, autocommit=True) as session:
                session.execute("UPDATE damage.records SET producer_id = 3, producer_epoch = 0 WHERE place = 0")
            with pytest.raises(DamagedStore, match="partition 0, offset 0: wrong checksum"):
                await store.load(0)

    asyncio.run(main())
