"""Requests about offsets that name a topic or a partition twice: the core answers with Kafka's rows, in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from jvm_traces import KafkaOf

from fencepost.coordinator.offsets.validation import Admitted
from fencepost.protocol import offset_messages as o
from fencepost.protocol.messages import VERSIONS, RequestBody
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.generate.edges import SETTINGS, TOPIC, Stage
from fencepost_conformance.judge.compare.lockstep import compare

pytestmark = pytest.mark.jvm
RELEASES = [("4.0.2", "kafka-4.0"), ("4.3.1", "kafka-4.3"), ("4.4.0", "kafka-4.4")]


def topics(by_id: bool, *named: tuple[str, tuple[int, ...]]) -> tuple[o.OffsetCommitRequestTopic, ...]:
    """Return ``orders`` by name or by id, and topics that do not exist, each with the numbers of its partitions."""

    def fields(name: str) -> dict[str, Any]:
        return {"topic_id": TOPIC.topic_id if name == "orders" else bytes(15) + b"\x63"} if by_id else {"name": name}

    return tuple(
        o.OffsetCommitRequestTopic(
            **fields(name),
            partitions=tuple(o.OffsetCommitRequestPartition(each, committed_offset=each + 5) for each in numbers),
        )
        for name, numbers in named
    )


#: All accepted; a partition named twice; a rejected topic before, between and behind; a rejected partition.
REQUESTS = [
    [("orders", (0,)), ("orders", (1,))],
    [("orders", (0, 0)), ("orders", (0,))],
    [("nowhere", (0,)), ("orders", (0,)), ("nowhere", (1,)), ("orders", (1,))],
    [("orders", (0, 9)), ("orders", (1,)), ("orders", (9, 1))],
    [("nowhere", (0,)), ("nowhere", (0,))],
]


def asked(profile: Profile, release: str) -> Stage:
    """Yield all of them, by names and, if the release has that, by ids."""
    stage = Stage(profile)
    stage.set()
    transactions = {"4.0.2": 5, "4.3.1": 5, "4.4.0": VERSIONS[o.TxnOffsetCommitRequest][1]}[release]
    bodies: list[tuple[int, RequestBody]] = []
    for rows in REQUESTS:
        for version in (9,) if release == "4.0.2" else (9, 10):
            bodies.append((version, replace(stage.commit(), topics=topics(version >= 10, *rows))))
        for version in sorted({1, 5, transactions}):
            bodies.append((version, replace(stage.transaction(), topics=topics(version >= 6, *rows))))
        partitions = tuple(o.OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in rows)
        bodies.append((9, o.OffsetFetchRequest((o.OffsetFetchRequestGroup("simple", topics=partitions),))))
        deleted = tuple(o.OffsetDeleteRequestTopic(name=name, partition_indexes=each) for name, each in rows)
        bodies.append((0, o.OffsetDeleteRequest("simple", deleted)))
    for version, body in bodies:
        stage.ask(version, body)
    return stage


@pytest.mark.parametrize(("release", "name"), RELEASES)
def test_kafka_answers_the_same_of_topics_that_are_named_twice(kafka_of: KafkaOf, release: str, name: str) -> None:
    stage = asked(PROFILES[name], release)
    (theirs,) = kafka_of(release).run_many([(SETTINGS, stage.events)])
    assert compare(SETTINGS, PROFILES[name], stage.events, stage.observations, theirs).difference is None


def test_a_topic_that_is_always_listed_once_is_found(kafka_of: KafkaOf, monkeypatch: pytest.MonkeyPatch) -> None:
    release, name = RELEASES[-1]
    answer = Admitted.answer

    def once(self: Admitted, results: Any) -> Any:
        rows: dict[Any, Any] = {}
        for row in answer(self, results):
            before = rows.get((row.name, row.topic_id))
            rows[row.name, row.topic_id] = (
                row if before is None else replace(row, partitions=before.partitions + row.partitions)
            )
        return tuple(rows.values())

    monkeypatch.setattr(Admitted, "answer", once)
    stage = asked(PROFILES[name], release)
    (theirs,) = kafka_of(release).run_many([(SETTINGS, stage.events)])
    assert compare(SETTINGS, PROFILES[name], stage.events, stage.observations, theirs).difference is not None
