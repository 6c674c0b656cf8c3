"""A store that fails: who writes is told, nothing is acknowledged that is not there, and later all goes on."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode as Code

from fencepost.protocol.errors import ErrorCode
from fencepost.store import SharedMemoryStore

from .served import Client, play, running
from .test_partition import batch


def test_what_cannot_be_kept_is_not_acknowledged_and_not_read() -> None:
    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            store: Any = ready.node.store
            assert isinstance(store, SharedMemoryStore)
            client = await Client.to(ready.listen)

            async def write(sequence: int) -> Any:
                rows = [{"index": 0, "records": batch(1, 7, 0, sequence).data}]
                told = await client.ask(
                    "produce", 9, acks=-1, timeout=1_000, topic_data=[{"name": "t", "partition_data": rows}]
                )
                return told.responses[0].partition_responses[0]

            async def read() -> Any:
                part = {"partition": 0, "partition_max_bytes": 10_000}
                told = await client.ask("fetch", 12, max_bytes=10_000, topics=[{"topic": "t", "partitions": [part]}])
                return told.responses[0].partitions[0]

            assert (await write(0)).error_code == Code.none
            store.failing = ErrorCode.KAFKA_STORAGE_ERROR
            refused = await write(1)
            assert (refused.error_code, refused.base_offset) == (Code.kafka_storage_error, -1)
            asked = {"name": "new", "num_partitions": 1, "replication_factor": 1}
            made = await client.ask("create_topics", 7, topics=[asked])
            assert made.topics[0].error_code == Code.kafka_storage_error
            rows = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
            told = await client.ask("offset_commit", 8, group_id="g", topics=rows)
            assert told.topics[0].partitions[0].error_code != Code.none
            assert (await client.ask("init_producer_id", 4, transactional_id="x", transaction_timeout=1_000)).error_code
            store.failing = None
            assert (await read()).high_watermark == 1
            assert [topic.name for topic in (await client.ask("metadata", 9, topics=None)).topics] == ["t"]
            again = await write(1)  # sent again by its producer, it is new
            assert (again.error_code, again.base_offset) == (Code.none, 1)
            assert (await read()).high_watermark == 2

    play(session())
