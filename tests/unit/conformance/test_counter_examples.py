"""Counter-examples of the model checker are replayed on the core, and on Kafka's classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.generate.counter_example import is_counter_example, read_counter_example
from fencepost_conformance.show.report.counter_example import as_itf
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.jvm import jars
from fencepost_model.system.checking import check_python
from fencepost_model.system.manifest import Entry, read_manifest
from fencepost_model.system.user_model import user_entry

ROOT: Final = Path(__file__).parents[3]
SPEC: Final = ROOT / "spec"
ENTRIES: Final = {entry.name: entry for entry in read_manifest(SPEC)}
#: Each with the protocols, faults and timers that the others do not have.
NAMES: Final = (
    "KafkaTwoOwners",
    "KafkaReplacedPending",
    "KafkaForgottenSync",
    "KafkaRefusalWaits",
    "KafkaStaticRefused",
)
CLASSIC: Final = [
    entry.name
    for entry in ENTRIES.values()
    if entry.protocol == "classic" and entry.module.stem == "MCClassicGroup"
    and entry.size == "small" and entry.expected not in ("holds", "temporal") and entry.name not in NAMES
]  # fmt: skip


def written(path: Path, entry: Entry) -> Path:
    """Write the counter-example of a configuration."""
    path.write_text(json.dumps(as_itf(check_python(entry))), encoding="utf-8")
    return path


def replayed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(SystemExit) as ended:
        main(["replay", "--json", *words])
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", [*NAMES, *(pytest.param(name, marks=pytest.mark.all) for name in CLASSIC)])
def test_the_core_takes_the_steps_of_a_counter_example(name: str, tmp_path: Path) -> None:
    """The translation itself compares state, generation, leader and members after each step."""
    trace = read_counter_example(written(tmp_path / "trace.itf.json", ENTRIES[name]), SPEC)
    assert trace is not None
    assert len(trace.events) > 2
    assert Core().run(trace.settings, trace.profile, trace.events) == list(trace.observations)


def test_the_command_replays_a_file_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "trace.itf.json", user_entry(ROOT / "examples" / "models" / "stalled.py", SPEC))
    status, result = replayed(capsys, str(path))
    assert (status, result["counts"]["passed"]) == (0, 1)


def test_the_core_without_the_fault_does_not_take_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SameGeneration is the counter-example of a mutant of the model."""
    path = written(tmp_path / "trace.itf.json", ENTRIES["SameGeneration"])
    status, result = replayed(capsys, str(path))
    assert status == 2
    assert "the core does not take step 7 (JoinTimerFires) as the model does: generation is 1, not 0" in result["error"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["states"][3].update(idsUsed=7), "state 3 is not a successor of the state before it"),
        (lambda data: data["#meta"]["fencepost"].update(configuration="Unknown"), "no configuration 'Unknown'"),
    ],
)
def test_a_changed_file_is_one_line(
    change: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "trace.itf.json", ENTRIES["KafkaStaticRefused"])
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    status, result = replayed(capsys, str(path))
    assert status == 2
    assert message in result["error"]


def test_other_families_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "trace.itf.json", ENTRIES["TakenWhileHeld"])
    status, result = replayed(capsys, str(path))
    assert status == 2
    assert "only counter-examples of classic groups are translated, not of consumer" in result["error"]


@pytest.mark.parametrize(
    "data", [{}, [], {"#meta": []}, {"#meta": {"fencepost": {"type": "trace"}}}, {"#meta": {"fencepost": 1}}]
)
def test_other_itf_files_are_traces(data: Any, tmp_path: Path) -> None:
    assert not is_counter_example(data)


@pytest.mark.jvm
def test_kafka_takes_the_steps_of_a_counter_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not (jars.cache_root() / "jars" / "kafka-group-coordinator-4.3.1").is_dir():
        pytest.skip("needs kafka-group-coordinator-4.3.1 in the cache")
    path = written(tmp_path / "trace.itf.json", ENTRIES["KafkaTwoOwners"])
    status, result = replayed(capsys, str(path), "--target", "kafka:4.3.1")
    assert (status, result["counts"]["passed"]) == (0, 1)
