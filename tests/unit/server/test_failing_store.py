"""A store that fails: the client gets an error, nothing is acknowledged that is not stored, and the server recovers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost.protocol.errors import ErrorCode
from fencepost.store import MemoryStore, PutBatch
from fencepost_server.options import Limits

from .served import Client, play, running
from .test_partition import batch


def test_records_that_cannot_be_stored_are_neither_acknowledged_nor_read() -> None:
    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            store: Any = ready.node.store
            assert isinstance(store, MemoryStore)
            client = await Client.to(ready.listen)

            async def write(sequence: int) -> Any:
                rows = [{"index": 0, "records": batch(1, 7, 0, sequence).data}]
                answer = await client.ask(
                    "produce", 9, acks=-1, timeout=1_000, topic_data=[{"name": "t", "partition_data": rows}]
                )
                return answer.responses[0].partition_responses[0]

            async def read() -> Any:
                part = {"partition": 0, "partition_max_bytes": 10_000}
                answer = await client.ask("fetch", 12, max_bytes=10_000, topics=[{"topic": "t", "partitions": [part]}])
                return answer.responses[0].partitions[0]

            assert (await write(0)).error_code == Code.none
            store.failing = ErrorCode.KAFKA_STORAGE_ERROR
            refused = await write(1)
            assert (refused.error_code, refused.base_offset) == (Code.kafka_storage_error, -1)
            asked = {"name": "new", "num_partitions": 1, "replication_factor": 1}
            made = await client.ask("create_topics", 7, topics=[asked])
            assert made.topics[0].error_code == Code.kafka_storage_error
            rows = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
            answer = await client.ask("offset_commit", 8, group_id="g", topics=rows)
            assert answer.topics[0].partitions[0].error_code != Code.none
            assert (await client.ask("init_producer_id", 4, transactional_id="x", transaction_timeout=1_000)).error_code
            store.failing = None
            assert (await read()).high_watermark == 1
            assert [topic.name for topic in (await client.ask("metadata", 9, topics=None)).topics] == ["t"]
            again = await write(1)  # its producer sends it again, and it is new
            assert (again.error_code, again.base_offset) == (Code.none, 1)
            assert (await read()).high_watermark == 2

    play(session())


def test_a_failed_write_is_reported_for_each_topic() -> None:
    async def session() -> None:
        async with running(topics={"t": 2, "u": 1}) as ready:
            store: Any = ready.node.store
            store.failing = ErrorCode.KAFKA_STORAGE_ERROR
            client = await Client.to(ready.listen)
            places = {"t": (0, 1), "u": (0,)}
            asked = [
                {"name": name, "partition_data": [{"index": index, "records": batch(1).data} for index in indexes]}
                for name, indexes in places.items()
            ]
            answer = await client.ask("produce", 9, acks=-1, timeout=1_000, topic_data=asked)
            rows = [(each.error_code, each.base_offset) for row in answer.responses for each in row.partition_responses]
            assert rows == [(Code.kafka_storage_error, -1)] * 3

    play(session())


def test_a_deleted_topic_makes_room() -> None:
    size = len(batch(1).data)

    async def session() -> None:
        limits = Limits(data_bytes=3 * size, drain_s=2.0)
        async with running(limits=limits, topics={"t": 2, "u": 1}) as ready:
            client = await Client.to(ready.listen)

            async def write(name: str, index: int) -> int:
                rows = [{"index": index, "records": batch(1).data}]
                data = [{"name": name, "partition_data": rows}]
                answer = await client.ask("produce", 9, acks=-1, timeout=1_000, topic_data=data)
                return int(answer.responses[0].partition_responses[0].error_code)

            places = [("t", 0), ("t", 1), ("t", 1)]
            assert [await write(*place) for place in places] == [Code.none] * 3
            assert await write("u", 0) == Code.kafka_storage_error
            await client.ask("delete_topics", 5, topic_names=["t"], timeout=1_000)
            assert [await write("u", 0) for _ in range(4)] == [*[Code.none] * 3, Code.kafka_storage_error]

    play(session())


@pytest.mark.parametrize("old", [True, False])
def test_nothing_joins_a_transaction_that_is_being_ended(monkeypatch: pytest.MonkeyPatch, *, old: bool) -> None:
    """Its marker is on its way to the store: late batches and offsets of the producer are rejected (KIP-890)."""

    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            store: Any = ready.node.store
            client, other = await Client.to(ready.listen), await Client.to(ready.listen)
            made = await client.ask("init_producer_id", 4, transactional_id="x", transaction_timeout=60_000)
            who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
            topics = [{"name": "t", "partitions": [0]}]
            named = {"v3_and_below_transactional_id": "x", "v3_and_below_topics": topics}
            named |= {f"v3_and_below_{name}": value for name, value in who.items()}
            assert (
                not (await client.ask("add_partitions_to_txn", 3, **named))
                .results_by_topic_v3_and_below[0]
                .results_by_partition[0]
                .partition_error_code
            )
            assert not (await client.ask("add_offsets_to_txn", 3, transactional_id="x", group_id="g", **who)).error_code
            write, may_write = store.write, asyncio.Event()
            began = asyncio.Event()

            async def slow(changes: Any) -> None:
                if any(isinstance(each, PutBatch) for each in changes):  # the marker
                    began.set()
                    await may_write.wait()
                await write(changes)

            monkeypatch.setattr(store, "write", slow)
            client.send("end_txn", 3, transactional_id="x", committed=True, **who)
            await asyncio.wait_for(began.wait(), 60)
            rows = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
            offsets = await other.ask(
                "txn_offset_commit", 3 if old else 4, transactional_id="x", group_id="g", topics=rows, **who
            )
            records = batch(1, made.producer_id, made.producer_epoch, 0, 0x10).data
            data = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
            batches = await other.ask(
                "produce", 9 if old else 11, transactional_id="x", acks=-1, timeout=1_000, topic_data=data
            )
            code = Code.invalid_txn_state if old else Code.transaction_abortable
            assert offsets.topics[0].partitions[0].error_code == code
            assert batches.responses[0].partition_responses[0].error_code == code
            may_write.set()
            assert not (await client.answer("end_txn", 3)).error_code

    play(session())
