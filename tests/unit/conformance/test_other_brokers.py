"""Brokers other than Kafka: APIs that they lack are not used, and each trace uses the coordinator of its groups."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fencepost.protocol.kafka_names import value_of
from fencepost.protocol.settings import Settings
from fencepost.sharding import partition_for
from fencepost_conformance.cli import main
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.common.errors import CannotRun, NotOffered
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.generate.wire.asking import CLIENTS, offer
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.run.pipeline import stage
from fencepost_conformance.show.report.terminal import absent_words
from fencepost_conformance.traces.api_names import api_name
from fencepost_conformance.traces.wire.settings import assumed_words, fitting, settle

HERE = Address("127.0.0.1", 9092)
#: APIs of groups that librdkafka's mock cluster announces
MOCK = {11: (0, 6), 12: (0, 5), 13: (0, 4), 14: (0, 4), 68: (1, 1), 10: (0, 3), 3: (0, 13)}
INTERVAL, LEAST = "group_consumer_heartbeat_interval_ms", "group_consumer_min_heartbeat_interval_ms"


def test_apis_of_clients_are_required_and_apis_of_administrators_are_not() -> None:
    found = offer(MOCK, GroupProtocol.CLASSIC, HERE, 1)
    assert found.ranges == {11: (0, 6), 12: (0, 4), 13: (0, 4), 14: (0, 4)}  # no Kafka has Heartbeat v5
    assert found.absent[:3] == ("DescribeGroups", "ListGroups", "DeleteGroups")
    assert {"OffsetCommit", "OffsetFetch", "InitProducerId", "CreateTopics"} <= {*found.absent}
    assert absent_words(found.absent).startswith("the broker does not offer DescribeGroups, ListGroups")
    assert not found.topics
    assert absent_words(()) == ""
    del (less := dict(MOCK))[14]
    with pytest.raises(CannotRun, match=r"127\.0\.0\.1:9092 does not offer SyncGroup, which --protocol classic needs"):
        offer(less, GroupProtocol.CLASSIC, HERE, 1)
    assert offer({**less, 19: (2, 7)}, GroupProtocol.CONSUMER, HERE, 1).topics == {19: (2, 7)}


def test_a_bound_that_was_not_given_is_adapted() -> None:
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

    monkeypatch.setattr(stage, "coordinator_of", coordinator_of)
    monkeypatch.setattr(stage, "questions", questions)
    ranges = {**MOCK, **dict.fromkeys((15, 16, 42), (0, 5))}
    place = stage.Place(HERE, HERE, offer(ranges, GroupProtocol.CLASSIC, HERE, nodes))
    casts = [asyncio.run(stage.cast_for(place, seed, Job("h:1", "kafka-4.4", 9), f"p-{seed}")) for seed in range(12)]
    assert any(len(cast.groups) > 1 for _, cast, _ in casts)
    for _, cast, at in casts:
        assert {asyncio.run(coordinator_of(None, name, HERE)) for name in cast.groups} == (
            {Address("h", 100)} if nodes == 1 else {at}
        )
        assert nodes > 1 or at == HERE  # the given address leads to it, whatever address it announces
        asked_for: Any = cast
        assert asked_for._around.strange_groups == (("",) if nodes == 1 else cast.groups)


MOCK_CLUSTER = Path(__file__).parents[3] / "conformance" / "peers" / "brokers" / "librdkafka-mock" / "mock.py"


def test_librdkafkas_mock_cluster_is_judged(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock cluster admits new members immediately (C-JOIN-34) and does not describe groups. The run reports this,
    and counts no failure of the suite."""
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka (extra clients)")
    monkeypatch.setattr(stage, "PATIENCE_S", 0.5)
    with subprocess.Popen([sys.executable, str(MOCK_CLUSTER)], stdout=subprocess.PIPE, text=True) as mock:
        assert mock.stdout is not None
        address = mock.stdout.readline().strip()
        try:
            with pytest.raises(SystemExit) as left:
                main(["conform", "--target", address, "--traces", "2", "--seed", "302", "--steps-per-trace", "15"])
        finally:
            mock.kill()
    out, err = (" ".join(text.split()) for text in capfd.readouterr())
    assert left.value.code in (1, 2)  # its assertions may end it, and then the run is incomplete
    assert "does not offer DescribeGroups, ListGroups, DeleteGroups, OffsetDelete" in out
    assert "refused: " in out
    assert "Traceback" not in out + err
    assert "never retrieved" not in out + err


#: versions that Kafka 4.4 announces for the APIs that the suite uses
KAFKA: dict[int, tuple[int, int]] = {
    **{3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6)},
    **{16: (0, 5), 19: (2, 7), 20: (1, 6), 22: (0, 6), 25: (0, 4), 26: (0, 5), 28: (0, 6), 32: (1, 4), 37: (0, 3)},
    **{42: (0, 2), 47: (0, 0), 68: (0, 1), 69: (0, 1)},
}


@pytest.mark.parametrize("protocol", GroupProtocol)
@pytest.mark.parametrize("key", KAFKA)
def test_each_api_that_is_absent_is_named_or_needed(protocol: GroupProtocol, key: int) -> None:
    ranges = {each: bounds for each, bounds in KAFKA.items() if each != key}
    needed = {*CLIENTS[protocol], *({19} if protocol is not GroupProtocol.CLASSIC else ())}
    if key in needed:
        with pytest.raises(NotOffered, match=f"does not offer {api_name(key)}, which --protocol {protocol} needs"):
            offer(ranges, protocol, HERE, 1)
        return
    found = offer(ranges, protocol, HERE, 1)
    asked = {api_name(each) for each in (*found.ranges, *found.topics)}
    used = {api_name(each) for each in (8, 9, 10, 15, 16, 19, 20, 22, 25, 26, 28, 37, 42, 47)}
    used |= {"ConsumerGroupDescribe"} if protocol is not GroupProtocol.CLASSIC else set()
    assert {*found.absent} == {api_name(key)} & used
    assert not asked & {*found.absent}


def test_existing_topics_replace_those_that_a_broker_does_not_create() -> None:
    ranges = {each: bounds for each, bounds in KAFKA.items() if each not in (19, 20, 37)}
    with pytest.raises(NotOffered, match=r"CreateTopics.*--topic NAME"):
        offer(ranges, GroupProtocol.CONSUMER, HERE, 1)
    found = offer(ranges, GroupProtocol.CONSUMER, HERE, 1, ("orders",))
    assert (found.given, found.absent) == (("orders",), ())


def test_kip_848_in_early_access_is_reported_in_one_line() -> None:
    ranges = {**KAFKA, 68: (0, 0), 69: (0, 0)}
    for protocol in (GroupProtocol.CONSUMER, GroupProtocol.MIXED):
        with pytest.raises(NotOffered, match=r"v0 only \(KIP-848 in early access, as in Kafka 3\.7 to 3\.9\)"):
            offer(ranges, protocol, HERE, 1)
    assert offer(ranges, GroupProtocol.CLASSIC, HERE, 1).absent == ()


def test_assignors_may_be_reported_by_class() -> None:
    """Kafka 3.9 does so."""
    classes = "org.apache.kafka.coordinator.group.assignor.UniformAssignor,range"
    assert value_of("group.consumer.assignors", classes) == ("uniform", "range")
