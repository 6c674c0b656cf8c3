"""A worker in Python, on unmodified confluent-kafka. ``scene.py`` says what a worker does."""

import json
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

PAUSE_S = 0.01


def tell(event: str, **more: Any) -> None:
    """Report a step as a line of JSON."""
    sys.stdout.write(json.dumps({"at": time.time_ns() // 1_000_000, "event": event, **more}) + "\n")
    sys.stdout.flush()


def produce(at: str, topic: str, partitions: int, name: str, enough: threading.Event) -> None:
    """Produce numbered values to the partitions in turn."""
    producer = Producer({"bootstrap.servers": at, "enable.idempotence": True, "linger.ms": 5, "log_level": 0})

    def on_delivery(error: Any, message: Any) -> None:
        if error is None:
            tell("acked", value=message.value().decode())
        else:
            tell("error", text=f"produce: {error}")

    number = 0
    while not enough.is_set():
        producer.produce(topic, f"{name}-{number}", partition=number % partitions, callback=on_delivery)
        producer.poll(PAUSE_S)
        time.sleep(PAUSE_S)
        number += 1
    producer.flush(60)
    tell("produced")


def consume(at: str, topic: str, group: str, protocol: str, leave: threading.Event) -> None:
    """Run one member of a group: it reads records and commits their offsets."""
    settings = {"bootstrap.servers": at, "group.id": group, "group.protocol": protocol, "log_level": 0}
    settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    if protocol == "classic":
        settings |= {"partition.assignment.strategy": "range", "session.timeout.ms": 15_000}
    consumer = Consumer(settings)
    read: dict[int, int] = {}

    def commit() -> None:
        if not read:
            return
        asked = [TopicPartition(topic, partition, offset) for partition, offset in read.items()]
        try:
            found = consumer.commit(offsets=asked, asynchronous=False)
        except KafkaException as failure:
            tell("error", text=f"commit in {group}: {failure.args[0]}")
            return
        tell("committed", group=group, offsets=[[row.partition, row.offset] for row in found if row.error is None])
        read.clear()

    def gained(_: Any, rows: Any) -> None:
        tell("assigned", group=group, partitions=[row.partition for row in rows])

    def revoked(_: Any, rows: Any) -> None:
        commit()
        read.clear()
        tell("revoked", group=group, partitions=[row.partition for row in rows])

    def lost(_: Any, rows: Any) -> None:
        read.clear()
        tell("lost", group=group, partitions=[row.partition for row in rows])

    consumer.subscribe([topic], on_assign=gained, on_revoke=revoked, on_lost=lost)
    while not leave.is_set():
        records = []
        message = consumer.poll(0.2)
        while message is not None:
            if message.error():
                tell("error", text=f"read in {group}: {message.error()}")
            else:
                records.append([message.partition(), message.offset(), message.value().decode()])
                read[message.partition()] = message.offset() + 1
            message = consumer.poll(0) if len(records) < 100 else None
        if records:
            tell("read", group=group, records=records)
        commit()
    consumer.close()


def main() -> None:
    at, topic, partitions, name, *groups = sys.argv[1:]
    enough, leave = threading.Event(), threading.Event()
    threads = [threading.Thread(target=produce, args=(at, topic, int(partitions), name, enough))]
    for each in groups:
        group, _, protocol = each.partition(":")
        threads.append(threading.Thread(target=consume, args=(at, topic, group, protocol, leave)))
    for thread in threads:
        thread.start()
    sys.stdin.readline()
    enough.set()
    sys.stdin.read()
    leave.set()
    for thread in threads:
        thread.join()
    tell("closed")


if __name__ == "__main__":
    main()
