"""Drive confluent-kafka, librdkafka's client for Python."""

from __future__ import annotations

from typing import Any

import driver
from confluent_kafka import Consumer, KafkaException, TopicPartition

NAMES = {"range": "range", "roundrobin": "roundrobin", "cooperative-sticky": "cooperative-sticky"}


def settings(given: driver.Options) -> dict[str, Any]:
    if given.assignor == "sticky":
        driver.unsupported("confluent-kafka has no assignor sticky")
    chosen: dict[str, Any] = {
        "bootstrap.servers": given.bootstrap,
        "group.id": given.group,
        "group.protocol": given.protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": given.commit == "auto",
        "auto.commit.interval.ms": 1000,
        "enable.auto.offset.store": False,
        "on_commit": on_commit,
    }
    if given.instance_id is not None:
        chosen["group.instance.id"] = given.instance_id
    if given.protocol == "consumer":
        if given.session_timeout_ms is not None:
            driver.unsupported("the broker decides the session timeout of the consumer protocol")
        if given.assignor not in (None, "range"):
            driver.unsupported(f"the consumer protocol has no assignor {given.assignor}")
        if given.assignor is not None:
            chosen["group.remote.assignor"] = given.assignor
        return chosen
    if given.assignor is not None:
        chosen["partition.assignment.strategy"] = NAMES[given.assignor]
    if given.session_timeout_ms is not None:
        chosen |= {"session.timeout.ms": given.session_timeout_ms, "heartbeat.interval.ms": given.heartbeat_ms}
    return chosen


def on_commit(error: Any, partitions: list[TopicPartition]) -> None:
    failed = error or next((each.error for each in partitions if each.error), None)
    if failed is not None:
        driver.complain(failed)
        return
    driver.say_committed((each.topic, each.partition, each.offset) for each in partitions if each.offset >= 0)


def main() -> None:
    given = driver.options("confluent-kafka")
    consumer = Consumer(settings(given))
    stop = driver.stop_event()
    consumer.subscribe(
        list(given.topics),
        on_assign=lambda _, partitions: driver.say_partitions("assigned", partitions),
        on_revoke=lambda _, partitions: driver.say_partitions("revoked", partitions),
        on_lost=lambda _, partitions: driver.say_partitions("lost", partitions),
    )
    while not stop.is_set():
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error():
            driver.complain(message.error())
            continue
        if stop.wait(given.processing_s):
            break
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        driver.say("processed", topic=topic, partition=partition, offset=offset)
        behind = TopicPartition(topic, partition, offset + 1)
        try:
            if given.commit == "auto":
                consumer.store_offsets(offsets=[behind])
            elif given.commit == "sync":
                on_commit(None, consumer.commit(offsets=[behind], asynchronous=False))
            else:
                consumer.commit(offsets=[behind], asynchronous=True)
        except KafkaException as refused:
            driver.complain(refused)
    consumer.close()
    driver.say("closed")


if __name__ == "__main__":
    main()
