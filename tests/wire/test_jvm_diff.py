"""Kafka's coordinator event by event, compared with the core and with another release."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from jvm_traces import KafkaOf, require_harness

from fencepost.protocol.events import AppendFailed
from fencepost.protocol.profiles import NEWEST_KAFKA
from fencepost_conformance.cli import main
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.diff.groups import Groups
from fencepost_conformance.judge.diff.job import Job, parse_side
from fencepost_conformance.judge.diff.run import Runner, run
from fencepost_conformance.targets.kafka_jvm import KafkaJvm

pytestmark = pytest.mark.jvm

OLD, NEW = "4.2.1", "4.3.1"


def compared(one: str, other: str, protocol: GroupProtocol, traces: int) -> Groups:
    found = Groups()
    for rows in run(Job(parse_side(one), parse_side(other), 60, protocol), range(traces), workers=1):
        found.add_all(rows)
    return found


@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_kafka_steps_event_by_event_as_in_one_go(kafka_of: KafkaOf, protocol: GroupProtocol) -> None:
    kafka, failed = kafka_of(NEW), 0
    for seed in range(12):
        trace = generate(seed, NEWEST_KAFKA, 60, protocol, offsets=None, fails_within=False)
        whole = kafka.run(trace.settings, trace.profile, trace.events)
        live = kafka.live(trace.settings)
        for at, (event, seen) in enumerate(zip(trace.events, whole, strict=True)):
            live.start(event)
            assert live.feed(event) == seen, (seed, at)
        failed += sum(isinstance(event, AppendFailed) for event in trace.events)
    assert failed > 0


@pytest.mark.parametrize("protocol", [GroupProtocol.CONSUMER, GroupProtocol.MIXED])
@pytest.mark.parametrize("sides", [(f"kafka:{NEW}", "core:kafka-4.3"), ("core:kafka-4.3", f"kafka:{NEW}")])
def test_kafka_and_the_core_of_its_profile_are_the_same_either_way(
    protocol: GroupProtocol, sides: tuple[str, str]
) -> None:
    """Choices that only Kafka knows are followed, on either side: seeds 5 and 11 need that."""
    require_harness(NEW)
    found = compared(*sides, protocol, 14)
    assert not found.groups, list(found.groups)


def test_a_jvm_that_ends_costs_one_trace() -> None:
    require_harness(NEW)
    job = Job(parse_side(f"kafka:{NEW}"), parse_side("core:kafka-4.3"), 30, GroupProtocol.CONSUMER)
    with Runner(job) as runner:
        before = runner.row(3)
        pid = runner._jvms["one"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert "it ended" in runner.row(3).broken
        assert runner.row(3) == before


@pytest.mark.parametrize("traces", ["1", pytest.param("6", marks=pytest.mark.all)])
def test_two_releases(traces: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_harness(OLD)
    require_harness(NEW)
    words = ["diff", f"kafka:{OLD}", f"kafka:{NEW}", "--protocol", "consumer", "--traces", traces, "--workers", "1"]
    with pytest.raises(SystemExit) as left:
        main([*words, "--json", "-o", str(tmp_path)])
    result = json.loads(capsys.readouterr().out)
    assert left.value.code == 1
    groups = {group["key"]: group for group in result["groups"]}
    first = groups["ConsumerGroupHeartbeat: records[ConsumerGroupMetadata].value.epoch +1->+2"]
    assert (first["a"], first["b"], first["following"]) == ("1", "2", 0)
    assert first["shortest"]["switches"].keys() == {"old_epochs_start_at_zero"}
    assert first["shortest"]["events"] == ["Load", "ConsumerGroupHeartbeat"]
    for key, group in groups.items():
        assert group["shortest"]["switches"], key
        assert group["shortest"]["not_in_profile"] == {}, key


def test_a_free_choice_that_differs_between_releases_is_reported_as_a_choice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The partition of each member on equal terms is a free choice (M-TGT-04): the model of 4.4 allows both releases'
    results."""
    require_harness("4.3.1")
    require_harness("4.4.0")
    words = ["diff", "kafka:4.3.1", "kafka:4.4.0", "--protocol", "consumer", "--seed", "342", "--traces", "1"]
    with pytest.raises(SystemExit):
        main([*words, "--workers", "1", "--json"])
    groups = json.loads(capsys.readouterr().out)["groups"]
    choices = [group["shortest"] for group in groups if not group["shortest"]["switches"]]
    assert choices
    assert all("kafka-4.4" in chosen["free"] and not chosen["not_in_profile"] for chosen in choices)


def test_a_folder_of_jars_is_the_release_that_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    require_harness(NEW)
    folder = KafkaJvm(NEW)._build.libraries()[0].parent
    words = ["diff", f"kafka:{folder}", f"kafka:{NEW}", "--protocol", "mixed", "--traces", "5", "--workers", "1"]
    with pytest.raises(SystemExit) as left:
        main([*words, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert (left.value.code, result["groups"]) == (0, [])
    assert result["a"]["build"]["version"] == NEW
