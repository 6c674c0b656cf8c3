"""A whole broker starts, answers and stops, and reports its errors."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import BrokerFault, CannotRun
from fencepost_conformance.targets.broker import Broker
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.releases import broker_artifacts

pytestmark = pytest.mark.broker


@pytest.fixture(autouse=True)
def _jars() -> None:
    try:
        jars.fetch(*broker_artifacts(Broker().version))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])


@pytest.mark.slow
def test_a_broker_serves_a_group_and_leaves_no_process_or_file() -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    with Broker(initial_rebalance_delay_ms=0) as broker:
        broker.create_topic("topic", 2)
        producer = confluent.Producer({"bootstrap.servers": broker.bootstrap})
        for partition in (0, 1):
            producer.produce("topic", b"value", partition=partition)
        assert producer.flush(90) == 0
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": "group", "auto.offset.reset": "earliest"}
        consumer = confluent.Consumer(settings)
        consumer.subscribe(["topic"])
        values: list[bytes] = []
        for _ in range(60):
            message = consumer.poll(1)
            if message is not None and not message.error():
                values.append(message.value())
            if len(values) == 2:
                break
        consumer.close()
        assert values == [b"value", b"value"]
        folder, port = broker.log.parent, broker.port
    assert not folder.exists()
    with socket.socket() as free, pytest.raises(ConnectionRefusedError):
        free.connect(("127.0.0.1", port))
    with pytest.raises(BrokerFault, match="was not started"):
        _ = broker.log


@pytest.mark.slow
def test_a_broker_that_cannot_start_shows_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(BrokerFault, match=r"could not be formatted: .*node\.id.*\. Its log ends:"):
        Broker(settings={"node.id": "-7"}).start()
    assert list(tmp_path.iterdir()) == []


def test_without_java_a_broker_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(CannotRun, match="install a JDK"), Broker():
        pass
