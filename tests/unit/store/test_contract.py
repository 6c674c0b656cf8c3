"""The contract of stores, tested with every store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from fencepost import log
from fencepost.coordinator import initial_state, offsets_view, replay, views
from fencepost.log import FencedEpoch
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.shapes import bounds
from fencepost.store import (
    AppendError,
    Change,
    ClosedStore,
    DropBatches,
    MemoryStore,
    NotInStore,
    PostgresStore,
    Put,
    PutBatch,
    SQLiteStore,
    Store,
)

#: Opens the same store repeatedly.
Stores: TypeAlias = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    if request.param == "memory":
        only = MemoryStore(3)
        return lambda: only
    if request.param == "sqlite":
        return lambda: SQLiteStore(tmp_path / "groups.db", 3)
    where = request.getfixturevalue("postgres").where
    return lambda: PostgresStore(where, 3, schema=f"of {tmp_path.name}")


def run(scene: Callable[[Store], Awaitable[None]], store: Store) -> None:
    async def main() -> None:
        assert await store.open() == 3
        try:
            await scene(store)
        finally:
            await store.close()

    asyncio.run(main())


def offset(partition: int, value: int | None, *, group: str = "g", producer: int | None = None) -> Record:
    key = OffsetCommitKey(group, "t", partition)
    stored = None if value is None else OffsetCommitValue(value, commit_timestamp=1_700_000_000_000, metadata="ö")
    return Record(key, stored, None if producer is None else Producer(producer, 3))


def marker(producer: int, *, committed: bool) -> Record:
    return Record(ControlKey(committed), ControlValue(9), Producer(producer, 3))


GROUP = Record(
    GroupMetadataKey("groups"),
    GroupMetadataValue(
        "work",
        generation=4,
        protocol="even",
        leader="m",
        current_state_timestamp=5,
        members=(
            GroupMetadataMember(
                "m",
                group_instance_id=None,
                client_id="c",
                client_host="/h",
                rebalance_timeout=1,
                session_timeout=2,
                subscription=b"\0\xff",
                assignment=b"",
            ),
        ),
    ),
)


def test_appended_records_are_loaded_by_partition_and_in_order(stores: Stores) -> None:
    written: dict[int, list[Record]] = {0: [], 1: [], 2: []}

    async def first(store: Store) -> None:
        epochs = [await store.lead(partition) for partition in range(3)]
        assert epochs == [1, 1, 1]
        asked = []
        for number in range(60):
            partition = number % 2
            records = [offset(number, number), GROUP, offset(0, None), offset(1, 2, producer=7)][: number % 4 + 1]
            written[partition] += records
            asked.append(store.append(partition, records, leader_epoch=1))
        ends = [marker(7, committed=True), marker(8, committed=False)]
        written[0] += ends
        await store.append(0, ends, leader_epoch=1)
        assert all(each.done() for each in asked)

    async def second(store: Store) -> None:
        for partition, records in written.items():
            assert list(await store.load(partition)) == records

    run(first, stores())
    run(second, stores())
    run(second, stores())


def test_an_old_leader_appends_nothing(stores: Stores) -> None:
    async def scene(store: Store) -> None:
        old = await store.lead(1)
        await store.append(1, [offset(1, 1)], leader_epoch=old)
        new = await store.lead(1)
        assert new == old + 1
        with pytest.raises(FencedEpoch, match=f"leader epoch {old} is no longer the newest .newest: {new}."):
            await store.append(1, [offset(1, 2)], leader_epoch=old)
        await store.append(1, [offset(1, 3)], leader_epoch=new)
        assert list(await store.load(1)) == [offset(1, 1), offset(1, 3)]
        await store.append(0, [offset(0, 4)], leader_epoch=await store.lead(0))

    run(scene, stores())


def _outcome(records: Sequence[Record]) -> object:
    """Return the state of a coordinator that loads these records, without places in the log."""
    state = replay(initial_state(Settings(), INTENDED), records)
    seen = offsets_view(state)
    committed = [(each.group_id, each.partition, each.offset) for each in seen.committed]
    pending = [(each.group_id, each.partition, each.offset, each.producer_id) for each in seen.pending]
    return committed, pending, seen.open_transactions, views(state)


def _traffic(random: Random) -> list[list[Record]]:
    """The records of coordinators: offsets, also in transactions, deletions, groups."""
    found = []
    opened: set[int] = set()
    for _ in range(random.randrange(700, 1_000)):
        producer = random.choice([None, None, None, 1, 2])
        records = [
            offset(random.randrange(8), random.randrange(99), group=random.choice("gh"), producer=producer)
            for _ in range(random.randrange(1, 4))
        ]
        if producer is not None:
            opened.add(producer)
        elif random.random() < 0.1:
            records = [offset(random.randrange(8), None, group=random.choice("gh"))]
        elif random.random() < 0.1:
            records = [GROUP]
        if opened and random.random() < 0.1:
            ended = opened.pop()
            records = [marker(ended, committed=random.random() < 0.5)]
        found.append(records)
    return found


def test_a_compaction_takes_from_the_same_batch_again_and_again(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remaining records keep their places."""
    monkeypatch.setattr("fencepost.store.sql.CHUNK", 3)
    random = Random(7)
    whole = [offset(random.randrange(9), random.choice([None, 1, 2])) for _ in range(60)]

    async def scene(store: Store) -> None:
        epoch = await store.lead(0)
        for more in range(3):
            await store.append(0, whole, leader_epoch=epoch)
            expected = log.left(whole * (more + 1), tombstones=False)
            assert await store.compact(0)
            assert list(await store.load(0)) == expected

    run(scene, stores())


@pytest.mark.parametrize("seed", range(2))
def test_a_compacted_log_loads_like_the_whole_one(stores: Stores, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it is read between two of its transactions."""
    monkeypatch.setattr("fencepost.store.sql.CHUNK", 250)
    monkeypatch.setattr("fencepost.store.sql.BATCHES", 3)
    monkeypatch.setattr("fencepost.store.packed.MOST", 40)
    random = Random(f"compaction {seed}")
    whole: list[Record] = []

    async def scene(store: Store) -> None:
        epoch = await store.lead(2)
        more = _traffic(random)
        assert not store.due(2)
        for records in more:
            whole.extend(records)
        await asyncio.gather(*[store.append(2, records, leader_epoch=epoch) for records in more])
        assert store.due(2)
        expected = _outcome(whole)
        compacting = asyncio.ensure_future(store.compact(2))
        while not compacting.done():
            await asyncio.sleep(0.01)
            assert _outcome(await store.load(2)) == expected
            if random.random() < 0.2:
                whole.append(offset(random.randrange(8), random.randrange(99)))
                await store.append(2, whole[-1:], leader_epoch=epoch)
                expected = _outcome(whole)
        gone = await compacting
        left = await store.load(2)
        assert gone == len(whole) - len(left) > 500
        assert _outcome(left) == expected
        assert not store.due(2)

    run(scene, stores())
    run(lambda store: _loads(store, whole), stores())


async def _loads(store: Store, whole: Sequence[Record]) -> None:
    assert _outcome(await store.load(2)) == _outcome(whole)


def test_additional_data_is_loaded_again(stores: Stores) -> None:
    topic, other = bytes(15) + b"\1", bytes(15) + b"\2"

    async def first(store: Store) -> None:
        assert (await store.kept()).values == {}
        assert list(await store.batches(topic, 0, 0, 99)) == []
        await store.write([Put("topic", "t", "ä"), Put("topic", "u", "2"), Put("id", "", "7")])
        await store.write([PutBatch(topic, 0, base, b"%d" % base) for base in (0, 5, 300)])
        await store.write([PutBatch(topic, 1, 0, b"x"), PutBatch(other, 0, 0, b"y"), PutBatch(other, 3, 9, b"z")])
        await asyncio.gather(
            store.write([Put("topic", "t", "b")]),
            store.write([Put("topic", "u", None), Put("topic", "none", None)]),
            store.write([DropBatches(topic, 0, 5), DropBatches(topic, 1, 99), DropBatches(other)]),
            store.write([PutBatch(topic, 0, 300, b"new")]),
        )

    async def second(store: Store) -> None:
        kept = await store.kept()
        assert kept.values == {"topic": {"t": "b"}, "id": {"": "7"}}
        assert list(await store.batches(topic, 0, 0, 99)) == [b"5", b"new"]
        assert list(await store.batches(topic, 1, 0, 99)) == list(await store.batches(other, 3, 0, 99)) == []

    run(first, stores())
    run(second, stores())


def test_batches_are_read_from_an_offset_on(stores: Stores) -> None:
    """Read from the batch of the offset, or the next one, as many as fit, at least one."""
    topic = bytes(15) + b"\1"
    texts = {0: b"0000", 5: b"5555", 300: b"33", 301: b"4444"}

    async def scene(store: Store) -> None:
        await store.write([PutBatch(topic, 0, base, texts[base]) for base in (5, 301, 300)])
        await store.write([PutBatch(topic, 0, 0, texts[0]), PutBatch(topic, 1, 2, b"of another")])

        async def read(offset: int, most: int, *, within: bool = True) -> list[int]:
            found = await store.batches(topic, 0, offset, most, within=within)
            return [next(base for base, text in texts.items() if text == data) for data in found]

        for offset, first in ((0, 0), (4, 0), (5, 1), (299, 1), (300, 2), (301, 3), (999, 3)):
            assert await read(offset, 99) == list(texts)[first:]
        for offset, first in ((0, 0), (1, 1), (5, 1), (6, 2), (300, 2), (301, 3), (302, 4)):
            assert await read(offset, 99, within=False) == list(texts)[first:]
        assert [await read(0, most) for most in (0, 3, 4, 7, 8, 10, 13, 14)] == [
            list(texts)[:count] for count in (1, 1, 1, 1, 2, 3, 3, 4)
        ]
        await store.write([DropBatches(topic, 0, 300)])
        assert await read(0, 99) == await read(5, 99) == [300, 301]
        assert list(await store.batches(topic, 1, 0, 0)) == [b"of another"]

    run(scene, stores())


def test_a_closed_store_says_so(stores: Stores) -> None:
    async def main() -> None:
        store = stores()
        with pytest.raises(ClosedStore, match="the store is not open"):
            await store.lead(0)
        assert await store.open() == await store.open() == 3
        await store.close()
        await store.close()
        with pytest.raises(ClosedStore):
            await store.append(0, [], leader_epoch=0)
        with pytest.raises(ClosedStore):
            await store.write([])

    asyncio.run(main())


def test_a_new_store_has_one_partition_by_default(tmp_path: Path) -> None:
    for made in (MemoryStore(), SQLiteStore(tmp_path / "new.db")):
        assert asyncio.run(_opened(made)) == 1
    assert asyncio.run(_opened(SQLiteStore(tmp_path / "fifty.db", new_partitions=50))) == 50
    assert asyncio.run(_opened(SQLiteStore(tmp_path / "fifty.db"))) == 50
    for wrong in (MemoryStore, lambda count: SQLiteStore(tmp_path / "none.db", count)):
        with pytest.raises(ValueError, match="partitions must be >= 1"):
            asyncio.run(_opened(wrong(0)))


async def _opened(store: Store) -> int:
    try:
        return await store.open()
    finally:
        await store.close()


def test_a_record_that_has_no_bytes_is_refused_in_its_turn(tmp_path: Path) -> None:
    """The appends queued behind it fail too, so there are no gaps."""

    async def scene(store: Store) -> None:
        epoch = await store.lead(0)
        long = Record(OffsetCommitKey("g" * 40_000, "t", 0), None)
        asked = [store.append(0, records, leader_epoch=epoch) for records in ([offset(1, 1)], [long], [offset(1, 2)])]
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert ended[0] is None
        assert isinstance(ended[1], AppendError)
        assert isinstance(ended[2], AppendError)
        await store.append(0, [offset(1, 3)], leader_epoch=epoch)
        assert list(await store.load(0)) == [offset(1, 1), offset(1, 3)]

    run(scene, SQLiteStore(tmp_path / "groups.db", 3))


_WIDE = Record(OffsetCommitKey("g", "t", 0), OffsetCommitValue(2**63, commit_timestamp=0))
_PUT, _DROP = PutBatch(bytes(16), 0, 0, b"data"), DropBatches(bytes(16), 0, 1)


def test_a_number_that_does_not_fit_is_rejected_by_every_store(stores: Stores) -> None:
    """The append fails with value and bound, and the next one is written."""

    async def scene(store: Store) -> None:
        epoch = await store.lead(0)
        with pytest.raises(AppendError, match=r"offset must be an integer of 64 bits, .* \(got 9223372036854775808\)"):
            await store.append(0, [_WIDE], leader_epoch=epoch)
        await store.append(0, [offset(0, 2**63 - 1), offset(1, -(2**63))], leader_epoch=epoch)
        assert list(await store.load(0)) == [offset(0, 2**63 - 1), offset(1, -(2**63))]

    run(scene, stores())


@pytest.mark.parametrize("number", [-1, 3, 2**31])
def test_a_missing_partition_is_rejected_by_every_store(stores: Stores, number: int) -> None:
    async def scene(store: Store) -> None:
        message = rf"partition must be from 0 to 2 \(got {number}\)"
        for call in (store.lead, store.load, store.compact):
            with pytest.raises(NotInStore, match=message):
                await call(number)
        with pytest.raises(NotInStore, match=message):
            await store.append(number, [offset(0, 1)], leader_epoch=1)

    run(scene, stores())


@pytest.mark.parametrize("change", [_PUT, _DROP], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("name", ["partition", "base", "below"])
def test_the_place_of_a_batch_has_bounds(stores: Stores, change: Change, name: str) -> None:
    if not hasattr(change, name):
        return
    most = bounds(name)[1]

    async def scene(store: Store) -> None:
        await store.lead(0)
        for number in (-1, most + 1):
            with pytest.raises(NotInStore, match=rf"{most}.* \(got {number}\)"):
                await store.write([replace(change, **{name: number})])
        await store.write([replace(change, **{name: most})])
        for number in (-1, 2**63):
            with pytest.raises(NotInStore, match=rf"offset .* \(got {number}\)"):
                await store.batches(bytes(16), 0, number, 1)

    run(scene, stores())


def test_an_epoch_that_was_never_granted_is_fenced(stores: Stores) -> None:
    """An epoch above the newest is fenced too (F-CONS-07)."""

    async def scene(store: Store) -> None:
        epoch = await store.lead(0)
        for other in (epoch - 1, epoch + 1, 2**31 - 1):
            with pytest.raises(FencedEpoch):
                await store.append(0, [offset(0, 1)], leader_epoch=other)

    run(scene, stores())
