"""The contract of stores fails for a store that breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from fencepost.protocol.records import Record
from fencepost.store import MemoryStore

from . import test_contract as contract

Promise = Callable[[contract.Stores], None]


class Forgets(MemoryStore):
    """The fault: the last record of a load is missing."""

    async def load(self, partition: int) -> Sequence[Record]:
        return (await super().load(partition))[:-1]


class Reorders(MemoryStore):
    """The fault: records are returned in another order."""

    async def load(self, partition: int) -> Sequence[Record]:
        return (await super().load(partition))[::-1]


class Mixes(MemoryStore):
    """The fault: partitions 0 and 1 are exchanged when they are loaded."""

    async def load(self, partition: int) -> Sequence[Record]:
        return await super().load(partition if partition > 1 else 1 - partition)


class TakesAll(MemoryStore):
    """The fault: a former leader may append."""

    def append(self, partition: int, records: Sequence[Record], *, leader_epoch: int) -> asyncio.Future[None]:
        return super().append(partition, records, leader_epoch=self._log(partition).epoch)


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (Forgets, contract.test_appended_records_are_loaded_by_partition_and_in_order),
        (Reorders, contract.test_appended_records_are_loaded_by_partition_and_in_order),
        (Mixes, contract.test_appended_records_are_loaded_by_partition_and_in_order),
        (TakesAll, contract.test_an_old_leader_appends_nothing),
    ],
)
def test_a_store_that_breaks_a_promise_is_found(kind: type[MemoryStore], promise: Promise) -> None:
    sound, broken = MemoryStore(3), kind(3)
    promise(lambda: sound)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        promise(lambda: broken)
