"""Brokers that are not Kafka: what they do without is not asked for, and a cluster is gone into by who coordinates."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fencepost.protocol.settings import Settings
from fencepost.sharding import partition_for
from fencepost_conformance.cli import main
from fencepost_conformance.console import CannotRun
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.pipeline import over_wire
from fencepost_conformance.pipeline.asking import absent_words, offer
from fencepost_conformance.pipeline.job import Job
from fencepost_conformance.record.addresses import Address
from fencepost_conformance.wire.settings import assumed_words, fitting, settle

HERE = Address("127.0.0.1", 9092)
#: what librdkafka's mock cluster announces of groups
MOCK = {11: (0, 6), 12: (0, 5), 13: (0, 4), 14: (0, 4), 68: (1, 1), 10: (0, 3), 3: (0, 13)}
INTERVAL, LEAST = "group_consumer_heartbeat_interval_ms", "group_consumer_min_heartbeat_interval_ms"


def test_what_clients_need_is_needed_and_what_administrators_ask_is_not() -> None:
    found = offer(MOCK, GroupProtocol.CLASSIC, HERE, 1)
    assert found.ranges == {11: (0, 6), 12: (0, 4), 13: (0, 4), 14: (0, 4)}  # Heartbeat v5 is of no Kafka
    assert found.absent == ("DescribeGroups", "ListGroups", "DeleteGroups")
    assert absent_words(found.absent).startswith("the broker does not offer DescribeGroups, ListGroups")
    assert not found.topics
    assert absent_words(()) == ""
    del (less := dict(MOCK))[14]
    with pytest.raises(CannotRun, match=r"127\.0\.0\.1:9092 does not offer SyncGroup"):
        offer(less, GroupProtocol.CLASSIC, HERE, 1)
    assert offer({**less, 19: (2, 7)}, GroupProtocol.CONSUMER, HERE, 1).topics == {19: (2, 7)}


def test_a_bound_that_nobody_told_gives_way() -> None:
    known = settle({INTERVAL: 1_000}, {})
    assert (known.settings.group_consumer_heartbeat_interval_ms, getattr(known.settings, LEAST)) == (1_000, 1_000)
    assert "group.consumer.min.heartbeat.interval.ms=1000" in assumed_words(known)
    with pytest.raises(CannotRun, match="do not go together"):
        settle({INTERVAL: 1_000, LEAST: 5_000}, {})
    far = fitting(Settings(), {"group_consumer_session_timeout_ms": 90_000}, ["group_consumer_max_session_timeout_ms"])
    assert far["group_consumer_max_session_timeout_ms"] == 90_000


@pytest.mark.parametrize("nodes", [1, 3])
def test_all_groups_of_a_trace_are_coordinated_by_the_broker_it_is_played_on(
    nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def coordinator_of(_: object, group_id: str, __: Address) -> Address:
        return Address("h", 100 + partition_for(group_id, 50) % nodes)

    @asynccontextmanager
    async def questions(*_: object) -> AsyncIterator[None]:
        yield None

    monkeypatch.setattr(over_wire, "coordinator_of", coordinator_of)
    monkeypatch.setattr(over_wire, "questions", questions)
    told = {**MOCK, **dict.fromkeys((15, 16, 42), (0, 5))}
    place = over_wire.Place(HERE, HERE, offer(told, GroupProtocol.CLASSIC, HERE, nodes))
    casts = [asyncio.run(over_wire._cast(place, seed, Job("h:1", "kafka-4.4", 9), f"p-{seed}")) for seed in range(12)]
    assert any(len(cast.groups) > 1 for _, cast, _ in casts)
    for _, cast, at in casts:
        assert {asyncio.run(coordinator_of(None, name, HERE)) for name in cast.groups} == (
            {Address("h", 100)} if nodes == 1 else {at}
        )
        assert nodes > 1 or at == HERE  # the address that was given leads to it, whatever it says of itself
        asked_for: Any = cast
        assert asked_for._around.strange_groups == (("",) if nodes == 1 else cast.groups)


MOCK_CLUSTER = Path(__file__).with_name("librdkafka_mock.py")


def test_librdkafkas_mock_cluster_is_judged(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no Kafka: it lets new members in at once (C-JOIN-34), and describes no groups. That is said, and nothing of
    it is a mistake of the run."""
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka (extra clients)")
    monkeypatch.setattr(over_wire, "_PATIENCE", 0.5)
    with subprocess.Popen([sys.executable, str(MOCK_CLUSTER)], stdout=subprocess.PIPE, text=True) as mock:
        assert mock.stdout is not None
        address = mock.stdout.readline().strip()
        try:
            with pytest.raises(SystemExit) as left:
                main(["conform", "--target", address, "--traces", "2", "--seed", "302", "--steps-per-trace", "15"])
        finally:
            mock.kill()
    out, err = (text.replace("\n", " ") for text in capfd.readouterr())
    assert left.value.code in (1, 2)  # its assertions may end it: then the run is not whole
    assert "does not offer DescribeGroups, ListGroups, DeleteGroups: nobody asked for it" in out
    assert "refused: " in out
    assert "Traceback" not in out + err
    assert "never retrieved" not in out + err
