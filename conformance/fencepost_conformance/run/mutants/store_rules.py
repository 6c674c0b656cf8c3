"""A store in a file compared with one in memory, with the same appends, compactions, batches and failures."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from random import Random
from typing import Any

from fencepost.coordinator import initial_state, offsets_view, replay
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.store import AppendError, DropBatches, MemoryStore, PutBatch, SQLiteStore, Store, sql

from ...generate.simulate.broken import demand

STEPS = 30
_TOPIC = bytes(15) + b"\1"
_SIZE = 10


def _records(rng: Random, at: int) -> list[Record]:
    return [
        Record(
            OffsetCommitKey("g", rng.choice("tu"), rng.randrange(3)),
            OffsetCommitValue(at, commit_timestamp=0) if rng.random() < 0.8 else None,
        )
        for _ in range(rng.randint(1, 3))
    ]


def _unwritable() -> Record:
    return Record(OffsetCommitKey("g" * 40_000, "t", 0), None)


async def _outcome(asked: Awaitable[Any]) -> Any:
    try:
        return await asked
    except AppendError as failure:
        return type(failure)


async def _play(rng: Random, one: Store, other: Store) -> None:
    stores = (one, other)
    for store in stores:
        await store.open()
        demand(await store.lead(0) == 1, "F-CONS-07", "the first leader has another epoch than 1")
    base = 0
    for step in range(STEPS):
        match rng.choice(("append", "append", "append", "fail", "compact", "put", "put", "drop", "batches", "batches")):
            case "append":
                records = _records(rng, step)
                for store in stores:
                    await store.append(0, records, leader_epoch=1)
            case "fail":
                behind = _records(rng, step)
                ended = await asyncio.gather(
                    *(other.append(0, records, leader_epoch=1) for records in ([_unwritable()], behind, behind)),
                    return_exceptions=True,
                )
                failed = [isinstance(each, AppendError) for each in ended]
                demand(failed == [True] * 3, "F-RT-05", f"an append passed one before it that failed: {failed}")
            case "compact":
                for store in stores:
                    await store.compact(0)
                lengths = [len(await store.load(0)) for store in stores]
                demand(lengths[0] == lengths[1], "F-REPLAY-18", f"compactions leave {lengths[0]} and {lengths[1]}")
            case "put":
                for store in stores:
                    await store.write([PutBatch(_TOPIC, 0, base, b"b" * _SIZE)])
                base += rng.randint(1, 2)
            case "drop":
                below = rng.randint(0, base)
                for store in stores:
                    await store.write([DropBatches(_TOPIC, 0, below)])
            case "batches":
                at, most, within = rng.randint(0, base), _SIZE * rng.randint(1, 3), rng.random() < 0.5
                found = [await store.batches(_TOPIC, 0, at, most, within=within) for store in stores]
                size = sum(map(len, found[0]))
                demand(found[0] == found[1], "F-RT-05", f"batches from {at} of {most} bytes: {found}")
                demand(size <= most or len(found[0]) == 1, "F-RT-05", f"{size} bytes were given, {most} wanted")
                everything = await one.batches(_TOPIC, 0, at, 1 << 30, within=within)
                wanted = min(len(everything), most // _SIZE)
                demand(len(found[0]) == wanted, "F-RT-05", f"{len(found[0])} batches were given, not {wanted}")
    logs = [[*await store.load(0)] for store in stores]
    views = [offsets_view(replay(initial_state(Settings(), INTENDED), log)).committed for log in logs]
    shown = [[(row.topic, row.partition, row.offset) for row in view] for view in views]
    demand(shown[0] == shown[1], "F-SURV-01", "the two stores differ")
    for store in stores:
        await store.close()


def check_stores(seed: int) -> int:
    """Run it. Returns the number of steps; raises ``Broken`` if the two stores differ, or one breaks a promise."""
    rng = Random(f"stores {seed}")
    pages, chunks = sql.BATCHES, sql.CHUNK
    with tempfile.TemporaryDirectory() as folder:
        sql.BATCHES, sql.CHUNK = 2, 2  # type: ignore[misc]  # so that a few records fill several pages
        try:
            asyncio.run(_play(rng, MemoryStore(1), SQLiteStore(Path(folder) / "groups.db", 1)))
        finally:
            sql.BATCHES, sql.CHUNK = pages, chunks  # type: ignore[misc]
    return STEPS
