"""A server that is restarted with its folder shows the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kio.schema.errors import ErrorCode as Code

from .served import Client, play, running
from .test_partition import batch

GROUP, SET = 32, 0
HEARTBEAT = "consumer.heartbeat.interval.ms"


def test_topics_settings_and_long_logs_are_there_again(tmp_path: Path) -> None:
    """More than one MiB in a partition, so that the start reads a log in several pieces."""
    last: dict[str, Any] = {}

    async def before() -> None:
        async with running(data=tmp_path, flush=False, topics={"t": 1, "long": 1}) as ready:
            client = await Client.to(ready.listen)
            records = batch(400_000).data
            for _ in range(4):
                data = [{"name": "long", "partition_data": [{"index": 0, "records": records}]}]
                answer = await client.ask("produce", 9, acks=-1, timeout=5_000, topic_data=data)
                assert answer.responses[0].partition_responses[0].error_code == Code.none
            asked = [{"name": "t", "count": 3, "assignments": None}]
            grown = await client.ask("create_partitions", 3, topics=asked, timeout=5_000)
            assert grown.results[0].error_code == Code.none
            configs = [{"name": HEARTBEAT, "config_operation": SET, "value": "6000"}]
            row = {"resource_type": GROUP, "resource_name": "g", "configs": configs}
            set_ = await client.ask("incremental_alter_configs", 1, resources=[row])
            assert set_.responses[0].error_code == Code.none
            last.update(await _seen(client))

    async def after() -> None:
        async with running(data=tmp_path, flush=False) as ready:
            assert await _seen(await Client.to(ready.listen)) == last

    play(before())
    assert last == {"partitions": 3, "end": 1_600_000, "heartbeat": 6_000, "described": "6000"}
    play(after())


async def _seen(client: Client) -> dict[str, Any]:
    metadata = await client.ask("metadata", 12, topics=[{"name": "t", "topic_id": None}])
    asked = [{"name": "long", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    ends = await client.ask("list_offsets", 5, topics=asked)
    beat = {"group_id": "g", "member_id": "m", "member_epoch": 0, "rebalance_timeout": 1_000}
    beaten = await client.ask("consumer_group_heartbeat", 1, **beat, topic_partitions=(), subscribed_topic_names=("t",))
    await client.ask("consumer_group_heartbeat", 1, **{**beat, "member_epoch": -1})
    row = {"resource_type": GROUP, "resource_name": "g", "configuration_keys": [HEARTBEAT]}
    described = await client.ask("describe_configs", 4, resources=[row])
    return {
        "partitions": len(metadata.topics[0].partitions),
        "end": ends.topics[0].partitions[0].offset,
        "heartbeat": round(beaten.heartbeat_interval.total_seconds() * 1_000),
        "described": described.results[0].configs[0].value,
    }


def test_producers_of_deleted_records_are_known_after_a_restart(tmp_path: Path) -> None:
    """As after a clean restart of Kafka, which stores the producers of a partition when it stops. It forgets them if no
    record is left."""

    async def before() -> None:
        async with running(data=tmp_path, flush=False, topics={"t": 2}) as ready:
            client = await Client.to(ready.listen)
            for index, offset in ((0, 3), (1, 2)):
                produced = [await _produced(client, sequence, index) for sequence in (0, 1, 2)]
                assert produced == [(Code.none, at) for at in range(3)]
                rows = [{"name": "t", "partitions": [{"partition_index": index, "offset": offset}]}]
                deleted = await client.ask("delete_records", 2, topics=rows, timeout=1_000)
                assert deleted.topics[0].partitions[0].low_watermark == offset
            assert await _produced(client, 3, 1) == (Code.none, 3)

    async def after() -> None:
        async with running(data=tmp_path, flush=False):
            pass  # a second start does not know them again
        async with running(data=tmp_path, flush=False) as ready:
            client = await Client.to(ready.listen)
            assert await _produced(client, 5, 0) == (Code.none, 3)
            assert await _produced(client, 5, 1) == (Code.out_of_order_sequence_number, -1)
            assert await _produced(client, 3, 1) == (Code.none, 3)
            assert await _produced(client, 4, 1) == (Code.none, 4)

    play(before())
    play(after())


async def _produced(client: Client, sequence: int, index: int) -> tuple[int, int]:
    """The error and the offset of a batch of an idempotent producer."""
    data = [{"name": "t", "partition_data": [{"index": index, "records": batch(1, 7, 0, sequence).data}]}]
    answer = await client.ask("produce", 9, acks=-1, timeout=1_000, topic_data=data)
    row = answer.responses[0].partition_responses[0]
    return row.error_code, row.base_offset
