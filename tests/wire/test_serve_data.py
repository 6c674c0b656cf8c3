"""``fencepost serve --data``: groups, offsets, topics, batches, transactions and settings survive SIGKILL."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest
from served import Served
from test_serve import QUICK, consume, produce

pytestmark = pytest.mark.clients
NEEDS = "needs confluent-kafka: pip install -e '.[clients]'"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_continues_where_it_was_when_the_server_is_killed(protocol: str, tmp_path: Path) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason=NEEDS)
    with Served(*QUICK, "--data", str(tmp_path / "data"), topics=("orders:2",)) as server:
        produce(server.bootstrap, "orders", ["a", "b", "c"])
        consumer = confluent.Consumer(
            {"bootstrap.servers": server.bootstrap, "group.id": "g", "group.protocol": protocol, "log_level": 0}
            | {"auto.offset.reset": "earliest", "enable.auto.commit": False, "reconnect.backoff.max.ms": 200}
        )
        consumer.subscribe(["orders"])
        assert sorted(consume(consumer, 3)) == [b"a", b"b", b"c"]
        consumer.commit(asynchronous=False)
        server.kill()
        server.start()
        produce(server.bootstrap, "orders", ["d"])
        deadline, found = time.monotonic() + 90, []
        while not found and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                found.append(message.value())
        assert found == [b"d"]  # the same member, and none of its committed records again
        consumer.close()


def test_acknowledged_records_survive_and_decided_transactions_are_finished(tmp_path: Path) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason=NEEDS)
    admins = pytest.importorskip("confluent_kafka.admin", reason=NEEDS)
    acknowledged: list[bytes] = []

    def delivered(error: object, message: object) -> None:
        if error is None:
            acknowledged.append(message.value())  # type: ignore[attr-defined]

    with Served(*QUICK, "--data", str(tmp_path), topics=("log:1", "txn:1")) as server:
        settings = {"bootstrap.servers": server.bootstrap, "log_level": 0, "linger.ms": 0}
        for kill in range(4):
            producer = confluent.Producer({**settings, "message.timeout.ms": 2_000})
            stop = threading.Timer(0.1 + 0.2 * kill, server.kill)
            at, before = 0, len(acknowledged)
            while stop.ident is None or stop.is_alive():
                if stop.ident is None and len(acknowledged) > before + 40:
                    stop.start()
                producer.produce("log", f"{kill}-{at}".encode(), callback=delivered)
                producer.poll(0.001)
                at += 1
            producer.flush(3)
            producer.purge()
            server.start()
        writer = confluent.Producer({**settings, "transactional.id": "t"})
        writer.init_transactions(90)
        for value, commit in ((b"one", True), (b"two", False), (b"three", True)):
            writer.begin_transaction()
            writer.produce("txn", value)
            writer.flush(90)
            writer.commit_transaction(90) if commit else writer.abort_transaction(90)
        writer.begin_transaction()
        writer.produce("txn", b"open")
        writer.flush(90)
        admin = admins.AdminClient(settings)
        admin.create_topics([admins.NewTopic("made", 3, 1)])["made"].result(90)
        server.kill()
        server.start()
        topics = admins.AdminClient(settings).list_topics(timeout=90).topics
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {"log": 1, "txn": 1, "made": 3}

        def read(topic: str, count: int) -> list[bytes]:
            reader = confluent.Consumer(
                {**settings, "group.id": f"of-{topic}", "auto.offset.reset": "earliest"}
                | {"isolation.level": "read_committed"}
            )
            reader.subscribe([topic])
            found = consume(reader, count)
            while more := consume(reader, 1, 0.5):  # unacknowledged records may be present too
                found += more
            reader.close()
            return found

        kept = read("log", len(acknowledged))
        assert len(acknowledged) > 100
        assert set(acknowledged) <= set(kept)
        assert read("txn", 2) == [b"one", b"three"]  # records of an open transaction are not read
        again = confluent.Producer({**settings, "transactional.id": "t"})
        again.init_transactions(90)  # aborts the open transaction
        again.begin_transaction()
        again.produce("txn", b"four")
        again.commit_transaction(90)
        assert read("txn", 1) == [b"four"]


def used_mib(server: Served) -> float:
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@pytest.mark.all
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory of another process is read from /proc")
def test_memory_stays_where_it_is_while_200_mib_are_written(tmp_path: Path) -> None:
    """After a restart everything is read again, as it was written; 32 MiB of it are in memory."""
    confluent = pytest.importorskip("confluent_kafka", reason=NEEDS)
    settings = {"linger.ms": 20, "batch.size": 500_000, "log_level": 0}
    random, written, count = Random(7), hashlib.sha256(), 0
    with Served(*QUICK, "--data", str(tmp_path), topics=("log:1",)) as server:
        producer = confluent.Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True, **settings})
        used = []
        for mib in range(200):
            for _ in range(64):
                value = random.randbytes(16_384)
                written.update(value)
                producer.produce("log", value)
                count += 1
            assert producer.flush(60) == 0
            if mib % 20 == 19:
                used.append(used_mib(server))
        print("MiB after each 20 MiB:", [round(each) for each in used])
        assert max(used[2:]) - used[2] < 25  # the cache is full by then
        server.kill()
        server.start()
        again = used_mib(server)
        reader = confluent.Consumer({"bootstrap.servers": server.bootstrap, "group.id": "g", "log_level": 0})
        reader.assign([confluent.TopicPartition("log", 0, 0)])
        read = hashlib.sha256()
        for _ in range(count):
            message = reader.poll(20)
            assert message is not None
            assert not message.error(), message.error()
            read.update(message.value())
        assert read.digest() == written.digest()
        print("MiB after the restart, and when all was read:", round(again), round(used_mib(server)))
        assert max(again, used_mib(server)) < used[2]
        reader.close()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: (path / "fencepost.db").write_text("no database " * 100), "is not a database"),
        (lambda path: (path / "fencepost.db").mkdir(), "cannot be opened"),
    ],
)
def test_an_unusable_folder_is_reported_in_one_line(make: object, words: str, tmp_path: Path) -> None:
    make(tmp_path)  # type: ignore[operator]
    command = [sys.executable, "-m", "fencepost_conformance.cli", "serve", "--json", "--listen", "127.0.0.1:0"]
    ended = subprocess.run([*command, "--data", str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert words in json.loads(ended.stdout)["error"]
    assert len(ended.stderr.splitlines()) == 1


def test_a_folder_is_of_one_server_at_a_time(tmp_path: Path) -> None:
    with Served("--data", str(tmp_path)):
        command = [sys.executable, "-m", "fencepost_conformance.cli", "serve", "--listen", "127.0.0.1:0"]
        more = ["--data", str(tmp_path)]
        ended = subprocess.run([*command, *more], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "in use by another process" in ended.stderr
