"""Batches are read from the store: memory is bounded, and no client sees a difference."""

from __future__ import annotations

import asyncio
import struct
import tracemalloc
from pathlib import Path
from random import Random
from typing import Any

import crc32c
import pytest

from fencepost.store import DropBatches, MemoryStore, PutBatch
from fencepost_server.data.batches import Batch, batches, marker, read_header
from fencepost_server.data.partition import PartitionLog
from fencepost_server.data.search import first_since, newest
from fencepost_server.data.tail import Budget
from fencepost_server.options import Limits

from .served import Client, play, running
from .test_partition import batch

TOPIC = bytes(15) + b"\1"


def timed(made: Batch, at_ms: int) -> Batch:
    """Return the batch with another maximum timestamp."""
    data = bytearray(made.data)
    struct.pack_into(">q", data, 35, at_ms)
    struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    (again,) = batches(bytes(data))
    return again


class Pair:
    """Two logs with the same content, one completely in memory and one almost completely on disk."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.whole = PartitionLog(0)
        self.budget = Budget(2_500)
        self.kept = PartitionLog(0, lambda offset, most: store.batches(TOPIC, 0, offset, most), self.budget)
        self.waiting: list[Batch] = []

    async def write(self, random: Random, open_ones: dict[int, int]) -> None:
        producer = random.choice([-1, -1, 1, 2, 3])
        if producer in open_ones and random.random() < 0.4:
            del open_ones[producer]
            committed = random.random() < 0.5
            ended = marker(producer, 0, committed=committed, coordinator_epoch=0, at_ms=random.randrange(99))
            put = [log.end_transaction(ended, committed=committed) for log in (self.whole, self.kept)]
        else:
            made = batch(random.randrange(1, 40), producer, 0 if producer > 0 else -1, -1, 0x12 if producer > 0 else 2)
            made = timed(made, random.randrange(99))
            if producer > 0:
                open_ones[producer] = 1
            put = [log.end_transaction(made, committed=False) if producer > 0 else log.add(made)[0] for log in self]
        assert put[0] == put[1]
        self.waiting.append(put[1])

    def __iter__(self) -> Any:
        return iter((self.whole, self.kept))

    async def land(self) -> None:
        await self.store.write([PutBatch(TOPIC, 0, each.base, each.data) for each in self.waiting])
        self.waiting.clear()
        for log in self:
            log.durable(log.end)

    async def compare(self, random: Random) -> int:
        """Compare all answers; return how many bytes were read."""
        for name in ("start", "end", "high", "size", "stable", "open_producers"):
            assert getattr(self.whole, name) == getattr(self.kept, name), name
        there = [read_header(data) for data in await self.store.batches(TOPIC, 0, 0, 1 << 30)]
        assert self.kept.size == sum(len(each.data) for each in [*there, *self.waiting])
        offset = random.randrange(self.whole.start, self.whole.high + 1)
        most, committed, least = random.choice([0, 70, 300, 5_000]), random.random() < 0.5, random.random() < 0.5
        found = [await log.read(offset, most, committed=committed, one_at_least=least) for log in self]
        assert found[0] == found[1]
        exact, about = (log.ready(offset, committed=committed) for log in self)
        assert (exact > 0) is (about > 0)
        newest_of_all = max((each.max_timestamp for each in there), default=None)
        for limit in (self.whole.high, self.whole.stable):
            since = random.randrange(100)
            batches = [(each.max_timestamp, each.base) for each in there if each.base < limit]
            late = [row for row in batches if row[0] >= since and row[1] >= self.whole.start]
            latest = [row for row in batches if row[0] == newest_of_all and row[1] >= self.whole.start]
            for log in self:
                assert await first_since(log, since, limit) == next(iter(late), None)
                assert await newest(log, limit) == next(iter(latest), None)
        return len(found[0].records)


@pytest.mark.parametrize("seed", range(2))
def test_a_log_mostly_on_disk_is_read_like_one_in_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost_server.data.index._BLOCK", 500)
    monkeypatch.setattr("fencepost_server.data.tail._EACH", 0)
    random = Random(f"kept batches {seed}")
    read = largest = 0

    async def session() -> None:
        nonlocal read, largest
        async with MemoryStore(1) as store:
            pair = Pair(store)
            open_ones: dict[int, int] = {}
            for _ in range(160):
                before = dict(open_ones)
                for _ in range(random.randrange(1, 4)):
                    await pair.write(random, open_ones)
                if random.random() < 0.1:
                    for log in pair:
                        log.retract()
                    pair.waiting.clear()
                    open_ones = before
                elif random.random() < 0.9:
                    await pair.land()
                else:
                    read += await pair.compare(random)  # among batches that are not durable
                    await pair.land()
                read += await pair.compare(random)
                if random.random() < 0.02:
                    at = random.randrange(pair.whole.start, pair.whole.high + 1)
                    for each in (at, min(at + random.randrange(30), pair.whole.high)):
                        first, again = [await log.delete_before(each) for log in pair]
                        assert first == again
                        await store.write([DropBatches(TOPIC, 0, first)])
                        read += await pair.compare(random)
                largest = max(largest, pair.kept.size)
                assert pair.budget.used <= 2_500
            assert largest > 10_000

    asyncio.run(session())
    assert read > 15_000


async def produced(client: Client, topic: str, records: bytes) -> None:
    rows = [{"index": 0, "records": records}]
    answer = await client.ask(
        "produce", 9, acks=-1, timeout=9_000, topic_data=[{"name": topic, "partition_data": rows}]
    )
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_memory_does_not_grow_with_the_data_on_disk(tmp_path: Path) -> None:
    """8 MiB are written in batches of 32 KiB; the cache has 256 KiB."""
    data = batch(32_000).data

    async def session() -> None:
        async with running(topics={"t": 1}, data=tmp_path, limits=Limits(cached_bytes=256 * 1024)) as ready:
            client = await Client.to(ready.listen)
            for _ in range(16):  # everything is loaded, and the cache is full
                await produced(client, "t", data)
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(240):
                await produced(client, "t", data)
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            assert ready.node.data_bytes == 256 * len(data) > 8_000_000
            assert grown < 500_000
            part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 30}
            rows = [{"topic": "t", "partitions": [part]}]
            answer = await client.ask("fetch", 12, max_bytes=1 << 30, max_wait=0, min_bytes=1, topics=rows)
            found = answer.responses[0].partitions[0].records
            assert len(found) == 256 * len(data)
            assert found[-100:] == data[-100:]

    play(session())
