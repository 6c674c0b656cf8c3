"""A worker in Python, on unmodified aiokafka. ``scene.py`` says what a worker does."""

import asyncio
import json
import sys
import time
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

PAUSE_S = 0.01


def tell(event: str, **more: Any) -> None:
    """Report a step as a line of JSON."""
    sys.stdout.write(json.dumps({"at": time.time_ns() // 1_000_000, "event": event, **more}) + "\n")
    sys.stdout.flush()


async def produce(at: str, topic: str, partitions: int, name: str, enough: asyncio.Event) -> None:
    """Produce numbered values to the partitions in turn."""
    producer = AIOKafkaProducer(bootstrap_servers=at, enable_idempotence=True, linger_ms=5, request_timeout_ms=10_000)
    await producer.start()
    waiting = set()

    async def acknowledged(value: str, sent: Any) -> None:
        try:
            await sent
            tell("acked", value=value)
        except KafkaError as failure:
            tell("error", text=f"produce: {failure!r}")

    number = 0
    while not enough.is_set():
        value = f"{name}-{number}"
        sent = await producer.send(topic, value.encode(), partition=number % partitions)
        task = asyncio.ensure_future(acknowledged(value, sent))
        waiting.add(task)
        task.add_done_callback(waiting.discard)
        await asyncio.sleep(PAUSE_S)
        number += 1
    await producer.flush()
    await asyncio.gather(*waiting)
    tell("produced")
    await producer.stop()


async def consume(at: str, topic: str, group: str, leave: asyncio.Event) -> None:
    """Run one member of a group: it reads records and commits their offsets."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=at,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=15_000,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    read: dict[int, int] = {}

    async def commit() -> None:
        if not read:
            return
        asked = dict(read)
        try:
            await consumer.commit({TopicPartition(topic, partition): offset for partition, offset in asked.items()})
        except KafkaError as failure:
            tell("error", text=f"commit in {group}: {failure!r}")
            return
        tell("committed", group=group, offsets=[list(row) for row in asked.items()])
        read.clear()

    class RebalanceListener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Any) -> None:
            tell("assigned", group=group, partitions=[row.partition for row in assigned])

        async def on_partitions_revoked(self, revoked: Any) -> None:
            await commit()
            read.clear()
            tell("revoked", group=group, partitions=[row.partition for row in revoked])

    await consumer.start()
    consumer.subscribe([topic], listener=RebalanceListener())
    while not leave.is_set():
        try:
            found = await consumer.getmany(timeout_ms=200, max_records=100)
        except KafkaError as failure:
            tell("error", text=f"read in {group}: {failure!r}")
            continue
        rows = [row for some in found.values() for row in some]
        if rows:
            tell("read", group=group, records=[[row.partition, row.offset, row.value.decode()] for row in rows])
            read.update({row.partition: row.offset + 1 for row in rows})
        await commit()
    await consumer.stop()


async def main() -> None:
    at, topic, partitions, name, *groups = sys.argv[1:]
    enough, leave = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.ensure_future(produce(at, topic, int(partitions), name, enough))]
    for each in groups:
        group, _, protocol = each.partition(":")
        if protocol != "classic":
            sys.exit(f"aiokafka supports only the protocol classic (got {protocol})")
        tasks.append(asyncio.ensure_future(consume(at, topic, group, leave)))
    await asyncio.to_thread(sys.stdin.readline)
    enough.set()
    await asyncio.to_thread(sys.stdin.read)
    leave.set()
    await asyncio.gather(*tasks)
    tell("closed")


if __name__ == "__main__":
    asyncio.run(main())
