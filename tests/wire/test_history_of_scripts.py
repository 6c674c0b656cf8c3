"""Scripts of the corpus with real clients, on Kafka and on ``fencepost serve``: the history tells what they did.

The recorder writes what the clients and the broker said. The history comes only from the records of the broker's log.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from served import Served

from fencepost_conformance.common.addresses import parse_address
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.history.events import GroupHistory, History, Kind
from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_conformance.targets.broker import Broker
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.releases import broker_artifacts
from fencepost_conformance.traces.offsets_log.rows import Notices
from fencepost_conformance.traces.offsets_log.source import rows_from
from fencepost_conformance.traces.offsets_log.topic import read_topic
from fencepost_conformance.traces.wire.access import OPEN
from tools.corpus.produce import BROKER_SETTINGS, Take, play, takes

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.all]

SCRIPTS = ("join-and-leave", "consumer-join-and-leave", "crash", "consumer-crash")
CLIENT = "confluent-kafka"
METADATA, COMMIT, JOIN, LEAVE, SYNC, HEARTBEAT = 3, 8, 11, 13, 14, 68


@dataclass(slots=True)
class Recorded:
    """Facts about the group from the recording: the ids of members that joined, and of those that said that they leave;
    generations and epochs in answers; the commits that were answered without an error."""

    joined: set[str] = field(default_factory=set)
    synced: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    began: set[int] = field(default_factory=set)
    completed: set[int] = field(default_factory=set)
    commits: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))


def recorded(path: Path) -> Recorded:
    found, sent, names = Recorded(), dict[tuple[int, int], dict[str, Any]](), dict[str, str]()
    with gzip.open(path, "rt") as lines:
        for line in map(json.loads, lines):
            place = line.get("connection"), line.get("correlation_id")
            if line["type"] == "sent":
                sent[place] = line["body"]
            elif line["type"] == "received" and place in sent:
                _take(found, line["api_key"], sent.pop(place), line["body"], names)
    return found


def _take(found: Recorded, api: int, asked: dict[str, Any], answer: dict[str, Any], names: dict[str, str]) -> None:
    if api == METADATA:
        names.update({each["topic_id"]: each["name"] for each in answer["topics"] if each.get("topic_id")})
    elif api == COMMIT:
        for given, row in zip(asked["topics"], answer["topics"], strict=True):
            name = given.get("name") or names[given["topic_id"]]
            for one, answered in zip(given["partitions"], row["partitions"], strict=True):
                if answered["error_code"] == 0:
                    found.commits[name, one["partition_index"]].append(one["committed_offset"])
    elif answer.get("error_code") != 0:
        return
    elif api == JOIN:
        found.joined.add(answer["member_id"])
        found.began.add(answer["generation_id"])
    elif api == SYNC:
        found.synced.add(asked["member_id"])
        found.completed.add(asked["generation_id"])
    elif api == LEAVE:
        found.left |= {each["member_id"] for each in asked.get("members") or ()} or {asked.get("member_id", "")}
    elif api == HEARTBEAT:
        if asked["member_epoch"] < 0:
            found.left.add(asked["member_id"])
        else:
            found.joined.add(answer["member_id"])
            found.completed.add(answer["member_epoch"])


def differences(group: GroupHistory, history: History, said: Recorded, *, classic: bool) -> list[str]:
    """Compare the history with the recording."""
    wrong = []
    joined = {name for each in group.events if each.kind is Kind.JOINED for name in each.members}
    gone = {name for each in group.events if each.kind is Kind.GONE for name in each.members}
    kind = Kind.GENERATION if classic else Kind.BEGAN
    epochs = {each.epoch for each in group.events if each.kind is kind}
    if classic:
        if not said.synced <= joined <= said.joined:
            wrong.append(f"joined: {joined}, recorded: {said.synced} to {said.joined}")
        if not said.completed <= epochs <= said.began:
            wrong.append(f"generations: {epochs}, recorded: {said.completed} to {said.began}")
    else:
        if joined != said.joined:
            wrong.append(f"joined: {joined}, recorded: {said.joined}")
        if not said.completed - {0} <= epochs:
            wrong.append(f"epochs: {epochs}, recorded: {said.completed}")
    if not said.left & joined <= gone or gone != joined:
        wrong.append(f"gone: {gone}, recorded: {said.left}")
    committed = {
        (history.names.get(row.place.topic, row.place.topic), row.place.partition): row for row in group.offsets
    }
    if {place: (len(each), each[-1]) for place, each in said.commits.items()} != {
        place: (row.commits, row.offset) for place, row in committed.items()
    }:
        wrong.append(f"commits: {committed}, recorded: {dict(said.commits)}")
    if group.state != "Empty" or group.breaches:
        wrong.append(f"state {group.state}, {group.breaches} broken rules")
    return wrong


async def played(chosen: list[Take], broker: Any, folder: Path) -> None:
    await asyncio.gather(*[play(take, broker, None, 0, folder / f"{take.name}.jsonl.gz") for take in chosen])


@contextmanager
def kafka() -> Iterator[Broker]:
    try:
        jars.fetch(*broker_artifacts(Broker().version))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    with Broker("4.4.0", initial_rebalance_delay_ms=500, settings=BROKER_SETTINGS) as broker:
        yield broker


@contextmanager
def serve() -> Iterator[Any]:
    settings = [word for name, value in BROKER_SETTINGS.items() for word in ("--setting", f"{name}={value}")]
    with Served(
        "--partitions", "4", "--setting", "group.initial.rebalance.delay.ms=500", *settings, topics=()
    ) as server:
        yield SimpleNamespace(bootstrap=server.bootstrap, version="serve", data=None)


@pytest.mark.parametrize("start", [serve, pytest.param(kafka, marks=pytest.mark.broker)])
def test_history_tells_what_the_scripts_did(tmp_path: Path, start: Any) -> None:
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    chosen = [take for name in SCRIPTS for take in takes([f"{name}-{CLIENT}"], java=False)]
    assert len(chosen) == len(SCRIPTS)
    with start() as broker:
        at = parse_address(broker.bootstrap, "bootstrap")
        list(read_topic(at, OPEN, Notices())) if start is serve else None  # from now on, records have their times
        asyncio.run(played(chosen, broker, tmp_path))
        notices = Notices()
        history = history_of(read_topic(at, OPEN, notices), keep_events=True)
        groups = {each.group: each for each in history.groups}
        for take in chosen:
            said = recorded(tmp_path / f"{take.name}.jsonl.gz")
            classic = take.scenario.protocol == "classic"
            assert said.joined, take.name
            assert differences(groups[take.name], history, said, classic=classic) == [], take.name
        assert notices.lines() == []
        if broker.data is not None:  # the segments of the log say the same
            files = history_of(rows_from(broker.data, Notices()), keep_events=True)
            assert files.groups == history.groups
