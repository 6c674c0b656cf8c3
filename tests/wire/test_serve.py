"""``fencepost serve`` and the unmodified Kafka clients of Python: they produce, join, consume, commit and resume."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from served import Served

pytestmark = pytest.mark.clients

#: an initial rebalance delay would only make tests wait
QUICK = ("--setting", "group.initial.rebalance.delay.ms=0")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Served(
        *QUICK, topics=("orders:4", "aio:2", "py:2", "classic:2", "consumer:2", "txn:1", "txn-out:1")
    ) as server:
        yield server


def produce(bootstrap: str, topic: str, values: list[str]) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    producer = confluent.Producer({"bootstrap.servers": bootstrap})
    for at, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=at % 2)
    assert producer.flush(90) == 0


def consume(consumer: Any, count: int, seconds: float = 90) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None:
            assert not message.error(), message.error()
            found.append(message.value())
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_consumes_commits_and_resumes(served: Served, protocol: str) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    produce(served.bootstrap, protocol, ["a", "b", "c", "d"])
    settings = {
        "bootstrap.servers": served.bootstrap,
        "group.id": f"librdkafka-{protocol}",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = confluent.Consumer(settings)
    consumer.subscribe([protocol])
    assert sorted(consume(consumer, 4)) == [b"a", b"b", b"c", b"d"]
    consumer.commit(asynchronous=False)
    consumer.close()
    produce(served.bootstrap, protocol, ["e"])
    again = confluent.Consumer(settings)
    again.subscribe([protocol])
    assert consume(again, 1) == [b"e"]
    again.close()


def test_aiokafka_consumes_commits_and_resumes(served: Served) -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="needs aiokafka: pip install -e '.[clients]'")

    async def read(count: int) -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            "aio",
            bootstrap_servers=served.bootstrap,
            group_id="aiokafka",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            found = [(await asyncio.wait_for(consumer.getone(), 120)).value for _ in range(count)]
            await consumer.commit()
        finally:
            await consumer.stop()
        return found

    async def write(values: list[bytes]) -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=served.bootstrap)
        await producer.start()
        for value in values:
            await producer.send_and_wait("aio", value)
        await producer.stop()

    asyncio.run(write([b"a", b"b", b"c"]))
    assert sorted(asyncio.run(read(3))) == [b"a", b"b", b"c"]
    asyncio.run(write([b"d"]))
    assert asyncio.run(read(1)) == [b"d"]


def test_kafka_python_consumes_commits_and_resumes(served: Served) -> None:
    kafka = pytest.importorskip("kafka", reason="needs kafka-python: pip install -e '.[clients]'")

    def read(count: int) -> list[bytes]:
        consumer = kafka.KafkaConsumer(
            "py",
            bootstrap_servers=served.bootstrap,
            group_id="kafka-python",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=20_000,
        )
        found = []
        for message in consumer:
            found.append(message.value)
            if len(found) == count:
                break
        consumer.commit()
        consumer.close()
        return found

    producer = kafka.KafkaProducer(bootstrap_servers=served.bootstrap)
    for value in (b"a", b"b", b"c"):
        producer.send("py", value).get(20)
    assert sorted(read(3)) == [b"a", b"b", b"c"]
    producer.send("py", b"d").get(20)
    assert read(1) == [b"d"]
    producer.close()


def test_a_transaction_is_read_when_it_is_committed_and_never_when_it_is_aborted(served: Served) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    produce(served.bootstrap, "txn", ["in"])
    source = confluent.Consumer(
        {"bootstrap.servers": served.bootstrap, "group.id": "copies", "auto.offset.reset": "earliest"}
        | {"enable.auto.commit": False}
    )
    source.subscribe(["txn"])
    assert consume(source, 1) == [b"in"]
    producer = confluent.Producer({"bootstrap.servers": served.bootstrap, "transactional.id": "copier"})
    producer.init_transactions(90)
    producer.begin_transaction()
    producer.produce("txn-out", b"aborted")
    producer.flush(90)
    producer.abort_transaction(90)
    producer.begin_transaction()
    producer.produce("txn-out", b"committed")
    producer.send_offsets_to_transaction(source.position(source.assignment()), source.consumer_group_metadata(), 20)
    producer.commit_transaction(90)
    committed = source.committed(source.assignment(), 10)
    assert [each.offset for each in committed] == [1]
    source.close()
    reader = confluent.Consumer(
        {"bootstrap.servers": served.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
        | {"isolation.level": "read_committed"}
    )
    reader.subscribe(["txn-out"])
    assert consume(reader, 1) == [b"committed"]
    assert consume(reader, 1, 0.5) == []
    reader.close()


def test_admin_tools_list_describe_reset_and_delete_groups(served: Served) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    admins = pytest.importorskip("confluent_kafka.admin", reason="needs confluent-kafka: pip install -e '.[clients]'")
    admin = admins.AdminClient({"bootstrap.servers": served.bootstrap})
    place = confluent.TopicPartition("orders", 0, 0)
    for protocol in ("classic", "consumer"):
        name = f"admin-{protocol}"
        member = confluent.Consumer(
            {"bootstrap.servers": served.bootstrap, "group.id": name, "group.protocol": protocol}
        )
        member.subscribe(["orders"])
        deadline = time.monotonic() + 90
        while len(member.assignment()) < 4:
            assert time.monotonic() < deadline
            member.poll(0.1)
        described = admin.describe_consumer_groups([name])[name].result()
        assert (described.state.name, len(described.members)) == ("STABLE", 1)
        assert len(described.members[0].assignment.topic_partitions) == 4
        listed = admin.list_consumer_groups().result().valid
        assert name in {row.group_id for row in listed}
        member.close()
        asked = confluent.ConsumerGroupTopicPartitions(name, [place])
        (changed,) = admin.alter_consumer_group_offsets([asked]).values()
        assert changed.result().topic_partitions[0].error is None
        (found,) = admin.list_consumer_group_offsets([confluent.ConsumerGroupTopicPartitions(name)]).values()
        assert [(row.partition, row.offset) for row in found.result().topic_partitions] == [(0, 0)]
        admin.delete_consumer_groups([name])[name].result()
        assert name not in {row.group_id for row in admin.list_consumer_groups().result().valid}


def test_serve_ends_on_sigterm() -> None:
    with Served(*QUICK) as server:
        assert server.stop() == 0
