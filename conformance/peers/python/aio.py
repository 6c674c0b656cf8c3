"""Drive aiokafka, a client for asyncio."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import driver
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Prints the assignment that the client reports; it has no callback for lost partitions. aiokafka rebalances beside
    the application, so partitions are given up when the record under way is processed, as its documentation advises."""

    def __init__(self, processing: asyncio.Lock) -> None:
        self._processing = processing

    async def on_partitions_assigned(self, assigned: Any) -> None:
        driver.say_partitions("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        async with self._processing:
            driver.say_partitions("revoked", revoked)


def settings(given: driver.Options) -> dict[str, Any]:
    if given.protocol == "consumer":
        driver.unsupported("aiokafka has no consumer protocol (KIP-848)")
    if given.assignor not in (None, *ASSIGNORS):
        driver.unsupported(f"aiokafka has no assignor {given.assignor}")
    chosen: dict[str, Any] = {
        "bootstrap_servers": given.bootstrap,
        "group_id": given.group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": given.commit == "auto",
        "auto_commit_interval_ms": 1000,
    }
    if given.instance_id is not None:
        chosen["group_instance_id"] = given.instance_id
    if given.assignor is not None:
        chosen["partition_assignment_strategy"] = (ASSIGNORS[given.assignor],)
    if given.session_timeout_ms is not None:
        chosen |= {"session_timeout_ms": given.session_timeout_ms, "heartbeat_interval_ms": given.heartbeat_ms}
    return chosen


async def commit(consumer: AIOKafkaConsumer, topic: str, partition: int, offset: int) -> None:
    try:
        await consumer.commit({TopicPartition(topic, partition): offset})
    except KafkaError as refused:
        driver.complain(refused)
        return
    driver.say_committed([(topic, partition, offset)])


async def consume(consumer: AIOKafkaConsumer, given: driver.Options) -> None:
    """Process records until the task is cancelled. An asynchronous commit runs beside the next record."""
    commits: set[asyncio.Task[None]] = set()
    processing = asyncio.Lock()
    consumer.subscribe(list(given.topics), listener=Listener(processing))
    await consumer.start()
    async for record in consumer:
        async with processing:
            await asyncio.sleep(given.processing_s)
            driver.say("processed", topic=record.topic, partition=record.partition, offset=record.offset)
        if given.commit == "auto":
            continue
        task = asyncio.create_task(commit(consumer, record.topic, record.partition, record.offset + 1))
        commits.add(task)
        task.add_done_callback(commits.discard)
        if given.commit == "sync":
            await task


async def run(given: driver.Options) -> None:
    consumer = AIOKafkaConsumer(**settings(given))
    consuming = asyncio.create_task(consume(consumer, given))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, consuming.cancel)
    try:
        await consuming
    except asyncio.CancelledError:
        await consumer.stop()
        driver.say("closed")


if __name__ == "__main__":
    asyncio.run(run(driver.options("aiokafka")))
