"""The client libraries that play scenarios, behind a common interface."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from .config import MemberConfig
from .events import emit


class Client(Protocol):
    """A library behind the calls that scenarios need; ``poll`` blocks for at most a tenth of a second."""

    slow: float

    def poll(self) -> int:
        """Return the number of records received."""

    def owned(self) -> Iterable[tuple[str, int]]: ...
    def subscribe(self, topics: list[str]) -> None: ...
    def unsubscribe(self) -> None: ...
    def commit(self) -> None: ...
    def seek(self, offset: int) -> None:
        """Seek to this offset in all owned partitions."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def transact(self, what: str) -> None:
        """``begin`` a transaction with a record and the current positions, ``commit`` it or ``abort`` it."""

    def close(self) -> None: ...


class _Consuming:
    """The common part of the consumers of all libraries."""

    _consumer: Any
    _producer: Any = None

    def owned(self) -> Iterable[tuple[str, int]]:
        return [(part.topic, part.partition) for part in self._consumer.assignment()]

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def close(self) -> None:
        self._consumer.close()


def _python_settings(config: MemberConfig) -> dict[str, Any]:
    """Settings that kafka-python and aiokafka give the same names."""
    return {
        "bootstrap_servers": config.bootstrap,
        "group_id": config.group,
        "client_id": config.name,
        "group_instance_id": config.instance_id,
        "session_timeout_ms": config.session_timeout_ms,
        "max_poll_interval_ms": config.poll_interval_ms,
        "heartbeat_interval_ms": config.heartbeat_ms,
        "auto_offset_reset": config.reset,
        "enable_auto_commit": config.auto_commit,
        "auto_commit_interval_ms": 700,
        "metadata_max_age_ms": 1_000,
    }


class Confluent(_Consuming):
    def __init__(self, config: MemberConfig) -> None:
        from confluent_kafka import Consumer  # noqa: PLC0415

        settings: dict[str, Any] = {
            "bootstrap.servers": config.bootstrap,
            "group.id": config.group,
            "client.id": config.name,
            "max.poll.interval.ms": config.poll_interval_ms,
            "auto.offset.reset": {"none": "error"}.get(config.reset, config.reset),
            "enable.auto.commit": config.auto_commit,
            "auto.commit.interval.ms": 700,
            "topic.metadata.refresh.interval.ms": 1_000,
        }
        if config.protocol == "consumer":
            settings |= {"group.protocol": "consumer", "group.remote.assignor": config.assignors[0]}
        else:
            settings |= {
                "session.timeout.ms": config.session_timeout_ms,
                "heartbeat.interval.ms": config.heartbeat_ms,
                "partition.assignment.strategy": ",".join(config.assignors),
            }
        if config.instance_id is not None:
            settings["group.instance.id"] = config.instance_id
        self.slow = 0.0
        self._cooperative = config.protocol == "consumer" or "cooperative-sticky" in config.assignors
        self._consumer = Consumer(settings)
        self._out = f"{config.group}-b"
        if config.transactional_id is not None:
            from confluent_kafka import Producer  # noqa: PLC0415

            self._producer = Producer(
                {"bootstrap.servers": config.bootstrap, "transactional.id": config.transactional_id}
            )
            self._producer.init_transactions(20)
        self.subscribe(list(config.topics))

    def subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        time.sleep(self.slow)
        (consumer.incremental_assign if self._cooperative else consumer.assign)(partitions)

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        time.sleep(self.slow)
        if self._cooperative:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def poll(self) -> int:
        message = self._consumer.poll(0.1)
        if message is not None and message.error():
            emit("error", text=str(message.error()))
            return 0
        return int(message is not None)

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def seek(self, offset: int) -> None:
        for part in self._consumer.assignment():
            part.offset = offset
            self._consumer.seek(part)

    def pause(self) -> None:
        self._consumer.pause(self._consumer.assignment())

    def resume(self) -> None:
        self._consumer.resume(self._consumer.assignment())

    def transact(self, what: str) -> None:
        if what == "commit":
            self._producer.commit_transaction(20)
        elif what == "abort":
            self._producer.abort_transaction(20)
        else:
            self._producer.begin_transaction()
            self._producer.produce(self._out, b"made of what was read")
            read = [part for part in self._consumer.position(self._consumer.assignment()) if part.offset >= 0]
            self._producer.send_offsets_to_transaction(read, self._consumer.consumer_group_metadata(), 20)


class KafkaPython(_Consuming):
    def __init__(self, config: MemberConfig) -> None:
        from kafka import ConsumerRebalanceListener, KafkaConsumer  # noqa: PLC0415

        outer = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                time.sleep(outer.slow)

            def on_partitions_assigned(self, assigned: Any) -> None:
                time.sleep(outer.slow)

        self.slow = 0.0
        self._listener = Listener()
        self._consumer = KafkaConsumer(
            **_python_settings(config),
            partition_assignment_strategy=tuple(_kafka_python_assignors()[name] for name in config.assignors),
            api_version=tuple(map(int, config.api_version.split("."))) if config.api_version else None,
        )
        self._out = f"{config.group}-b"
        if config.transactional_id is not None:
            from kafka import KafkaProducer  # noqa: PLC0415

            self._producer = KafkaProducer(bootstrap_servers=config.bootstrap, transactional_id=config.transactional_id)
            self._producer.init_transactions()
        self.subscribe(list(config.topics))

    def subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics=topics, listener=self._listener)

    def poll(self) -> int:
        return sum(map(len, self._consumer.poll(timeout_ms=100).values()))

    def commit(self) -> None:
        self._consumer.commit()

    def seek(self, offset: int) -> None:
        for part in self._consumer.assignment():
            self._consumer.seek(part, offset)

    def pause(self) -> None:
        self._consumer.pause(*self._consumer.assignment())

    def resume(self) -> None:
        self._consumer.resume(*self._consumer.assignment())

    def transact(self, what: str) -> None:
        from kafka.structs import OffsetAndMetadata  # noqa: PLC0415

        if what == "commit":
            self._producer.commit_transaction()
        elif what == "abort":
            self._producer.abort_transaction()
        else:
            self._producer.begin_transaction()
            self._producer.send(self._out, b"made of what was read")
            read = {part: self._consumer.position(part) for part in self._consumer.assignment()}
            offsets = {part: OffsetAndMetadata(at, "", -1) for part, at in read.items() if at is not None}
            self._producer.send_offsets_to_transaction(offsets, self._consumer.group_metadata())


def _kafka_python_assignors() -> dict[str, Any]:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor  # noqa: PLC0415
    from kafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # noqa: PLC0415
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor  # noqa: PLC0415

    return {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }


class AioKafka(_Consuming):
    """Runs its event loop only during a command, and all the time during a ``stall``."""

    def __init__(self, config: MemberConfig) -> None:
        from aiokafka import AIOKafkaConsumer  # noqa: PLC0415
        from aiokafka.abc import ConsumerRebalanceListener  # noqa: PLC0415
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # noqa: PLC0415
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor  # noqa: PLC0415

        outer = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Any) -> None:
                await asyncio.sleep(outer.slow)

            async def on_partitions_assigned(self, assigned: Any) -> None:
                await asyncio.sleep(outer.slow)

        known = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
        }
        self.slow = 0.0
        self.loop = asyncio.new_event_loop()
        self._listener = Listener()

        async def start() -> Any:
            consumer = AIOKafkaConsumer(
                **_python_settings(config),
                rebalance_timeout_ms=config.poll_interval_ms,
                partition_assignment_strategy=tuple(known[name] for name in config.assignors),
            )
            consumer.subscribe(topics=list(config.topics), listener=self._listener)
            await consumer.start()
            return consumer

        self._group, self._out = config.group, f"{config.group}-b"
        if config.transactional_id is not None:
            self._producer = self.loop.run_until_complete(self._start_producer(config))
        self._consumer = self.loop.run_until_complete(start())

    async def _start_producer(self, config: MemberConfig) -> Any:
        from aiokafka import AIOKafkaProducer  # noqa: PLC0415

        producer = AIOKafkaProducer(bootstrap_servers=config.bootstrap, transactional_id=config.transactional_id)
        await producer.start()
        return producer

    async def _resubscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics=topics, listener=self._listener)

    def subscribe(self, topics: list[str]) -> None:
        self.loop.run_until_complete(self._resubscribe(topics))

    def poll(self) -> int:
        return sum(map(len, self.loop.run_until_complete(self._consumer.getmany(timeout_ms=100)).values()))

    def commit(self) -> None:
        self.loop.run_until_complete(self._consumer.commit())

    def seek(self, offset: int) -> None:
        for part in self._consumer.assignment():
            self._consumer.seek(part, offset)

    def pause(self) -> None:
        self._consumer.pause(*self._consumer.assignment())

    def resume(self) -> None:
        self._consumer.resume(*self._consumer.assignment())

    def transact(self, what: str) -> None:
        self.loop.run_until_complete(self._transact(what))

    async def _transact(self, what: str) -> None:
        if what == "commit":
            await self._producer.commit_transaction()
        elif what == "abort":
            await self._producer.abort_transaction()
        else:
            await self._producer.begin_transaction()
            await self._producer.send(self._out, b"made of what was read")
            read = {part: await self._consumer.position(part) for part in self._consumer.assignment()}
            await self._producer.send_offsets_to_transaction(read, self._group)

    def sleep(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def unsubscribe(self) -> None:
        async def run() -> None:
            self._consumer.unsubscribe()

        self.loop.run_until_complete(run())

    def close(self) -> None:
        self.loop.run_until_complete(self._consumer.stop())
        if self._producer is not None:
            self.loop.run_until_complete(self._producer.stop())


LIBRARIES: dict[str, Callable[[MemberConfig], Client]] = {
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}
