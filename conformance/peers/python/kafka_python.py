"""Drive kafka-python, a client in pure Python."""

from __future__ import annotations

import logging
from typing import Any

import driver
from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


#: long, since kafka-python 3.0.12 can forget a rejoin whose SyncGroup is not answered within one poll (docs/peers.md)
POLL_MS = 1000


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Prints the assignment that the client reports."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        driver.say_partitions("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        driver.say_partitions("revoked", revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        driver.say_partitions("lost", lost)


def on_commit(offsets: Any, response: Any) -> None:
    if isinstance(response, Exception):
        driver.complain(response)
        return
    driver.say_committed((each.topic, each.partition, at.offset) for each, at in offsets.items())


def settings(given: driver.Options) -> dict[str, Any]:
    if given.protocol == "consumer":
        driver.unsupported("kafka-python has no consumer protocol (KIP-848)")
    chosen: dict[str, Any] = {
        "bootstrap_servers": given.bootstrap,
        "group_id": given.group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": given.commit == "auto",
        "auto_commit_interval_ms": 1000,
        "default_offset_commit_callback": on_commit,
        # a commit of each record does not wait for that of the previous one
        "max_in_flight_requests_per_connection": 1000,
        # one record a poll: an automatic commit covers the records that a poll returned
        "max_poll_records": 1,
    }
    if given.instance_id is not None:
        chosen["group_instance_id"] = given.instance_id
    if given.assignor is not None:
        chosen["partition_assignment_strategy"] = [ASSIGNORS[given.assignor]]
    if given.session_timeout_ms is not None:
        chosen |= {"session_timeout_ms": given.session_timeout_ms, "heartbeat_interval_ms": given.heartbeat_ms}
    return chosen


def main() -> None:
    given = driver.options("kafka-python")
    logging.basicConfig(level=logging.ERROR)
    consumer = KafkaConsumer(**settings(given))
    stop = driver.stop_event()
    consumer.subscribe(list(given.topics), listener=Listener())
    while not stop.is_set():
        records = [record for batch in consumer.poll(timeout_ms=POLL_MS).values() for record in batch]
        for record in records:
            if stop.wait(given.processing_s):
                break
            driver.say("processed", topic=record.topic, partition=record.partition, offset=record.offset)
            behind = {TopicPartition(record.topic, record.partition): OffsetAndMetadata(record.offset + 1, "", -1)}
            try:
                if given.commit == "sync":
                    consumer.commit(behind)
                    driver.say_committed([(record.topic, record.partition, record.offset + 1)])
                elif given.commit == "async":
                    consumer.commit_async(behind, callback=on_commit)
            except KafkaError as refused:
                driver.complain(refused)
    consumer.close()
    driver.say("closed")


if __name__ == "__main__":
    main()
