"""The log of a partition: reads, their times, and the rights of producers and transactions."""

from __future__ import annotations

import asyncio
import struct

import crc32c
import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost_server.data import producers
from fencepost_server.data.batches import Batch, CorruptBatch, OldBatch, batches, marker
from fencepost_server.data.partition import Fetched, PartitionLog, durably
from fencepost_server.data.producers import Refused


def batch(count: int = 1, producer: int = -1, epoch: int = -1, first: int = -1, attributes: int = 0) -> Batch:
    data = bytearray(marker(1, 0, committed=True, coordinator_epoch=0, at_ms=1).data[:61])
    data += bytes(count)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">hi", data, 21, attributes, count - 1)
    struct.pack_into(">qhii", data, 43, producer, epoch, first, count)
    struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    (made,) = batches(bytes(data))
    return made


def write(log: PartitionLog, made: Batch) -> int:
    put, new = log.add(made)
    assert new
    log.durable(log.end)
    return put.base


def read(log: PartitionLog, offset: int, *, committed: bool, most: int = 10_000) -> Fetched:
    return asyncio.run(log.read(offset, most, committed=committed, one_at_least=True))


def bases(log: PartitionLog, offset: int, *, committed: bool = False, most: int = 10_000) -> list[int]:
    return [each.base for each in batches(read(log, offset, committed=committed, most=most).records)]


def test_batches_get_the_offsets_behind_the_last_and_are_read_whole() -> None:
    log = PartitionLog(0)
    assert [write(log, batch(count)) for count in (3, 1, 2)] == [0, 3, 4]
    assert (log.end, log.high) == (6, 6)
    assert bases(log, 0) == [0, 3, 4]
    assert bases(log, 2) == [0, 3, 4]  # the one that has it
    assert bases(log, 3) == [3, 4]
    assert bases(log, 6) == []
    assert bases(log, 0, most=1) == [0]
    assert bases(log, 0, most=130) == [0, 3][: 1 + (64 + 62 <= 130)]


def test_records_that_are_not_durable_are_not_read_and_may_be_removed() -> None:
    log = PartitionLog(0)
    write(log, batch(2, 7, 0, 0))
    log.add(batch(1, 7, 0, 2))
    assert bases(log, 0) == [0]
    assert log.check(2) is Code.none
    assert log.check(3) is Code.offset_out_of_range
    log.retract()
    assert (log.end, log.high) == (2, 2)
    assert write(log, batch(1, 7, 0, 2)) == 2  # its producer sends it again, and it is new


def test_a_batch_that_is_sent_again_is_acknowledged_when_it_is_durable() -> None:
    async def session() -> None:
        log = PartitionLog(0)
        for taken_back in (False, True):
            put, new = log.add(batch(1, 7, 0, int(taken_back)))
            again, anew = log.add(batch(1, 7, 0, int(taken_back)))
            assert (new, anew, again.base) == (True, False, put.base)
            waiting = asyncio.ensure_future(durably(log, again.last))
            await asyncio.sleep(0)
            assert not waiting.done()
            log.retract() if taken_back else log.durable(log.end)
            assert await waiting is not taken_back

    asyncio.run(session())


@pytest.mark.parametrize(
    ("then", "code"),
    [
        (batch(1, 7, 1, 5), Code.out_of_order_sequence_number),
        (batch(1, 7, 0, 0), Code.invalid_producer_epoch),
        (batch(1, 7, 2, 3), Code.out_of_order_sequence_number),
    ],
)
def test_gaps_and_old_epochs_are_refused(then: Batch, code: Code) -> None:
    log = PartitionLog(0)
    for at in range(3):
        write(log, batch(1, 7, 1, at))
    with pytest.raises(Refused) as refused:
        log.add(then)
    assert refused.value.code is code
    assert log.end == 3
    assert write(log, batch(1, 7, 2, 0)) == 3  # a new epoch starts again
    assert write(log, batch(1, 8, 0, 9)) == 4  # for an unknown producer, any sequence is the first


def test_producers_that_were_silent_longest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "MOST", 3)
    log = PartitionLog(0)
    for producer in (1, 2, 3, 1, 4):
        write(log, batch(1, producer, 0, int(log.end == 3)))
    with pytest.raises(Refused):
        log.add(batch(1, 1, 0, 9))  # it is known
    assert write(log, batch(1, 2, 0, 9)) == 5


def test_a_sequence_wraps_around() -> None:
    log = PartitionLog(0)
    write(log, batch(2, 7, 0, 2**31 - 2))
    assert write(log, batch(1, 7, 0, 0)) == 2


def test_a_read_committed_reader_stops_at_the_first_open_transaction() -> None:
    log = PartitionLog(0)
    write(log, batch())
    write(log, batch(1, 7, 0, 0, 0x10))
    write(log, batch(1, 8, 0, 0, 0x10))
    write(log, batch())
    assert (log.stable, bases(log, 0, committed=True), bases(log, 0)) == (1, [0], [0, 1, 2, 3])
    log.end_transaction(marker(7, 0, committed=False, coordinator_epoch=0, at_ms=1), committed=False)
    log.durable(log.end)
    assert (log.stable, bases(log, 0, committed=True)) == (2, [0, 1])
    log.end_transaction(marker(8, 0, committed=True, coordinator_epoch=0, at_ms=1), committed=True)
    log.durable(log.end)
    assert (log.stable, bases(log, 0, committed=True)) == (6, [0, 1, 2, 3, 4, 5])
    got = read(log, 0, committed=True)
    assert [(each.producer_id, each.first, each.last) for each in got.aborted] == [(7, 1, 4)]
    assert read(log, 5, committed=True).aborted == ()
    assert asyncio.run(log.delete_before(5)) == 5
    assert (log.start, bases(log, 5), log.check(4)) == (5, [5], Code.offset_out_of_range)


@pytest.mark.parametrize("at", [21, 40, 60])
def test_a_batch_with_a_wrong_checksum_is_rejected(at: int) -> None:
    data = bytearray(batch(3).data)
    data[at] ^= 1
    with pytest.raises(CorruptBatch):
        list(batches(bytes(data)))


def test_an_old_format_is_recognised() -> None:
    data = bytearray(batch(3).data)
    data[16] = 1
    with pytest.raises(OldBatch):
        list(batches(bytes(data)))


@pytest.mark.parametrize("producer", [-1, -5])
def test_a_batch_without_a_producer_is_never_a_duplicate(producer: int) -> None:
    """Kafka: any negative id means that there is no producer."""
    log = PartitionLog(0)
    made = batch(producer=producer, epoch=0, first=0)
    assert [write(log, made), write(log, made)] == [0, 1]
