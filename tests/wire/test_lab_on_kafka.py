"""Sessions that ``fencepost lab`` saves, run by ``fencepost conform`` on Kafka's own coordinator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jvm_traces import require_harness

from fencepost_conformance.cli import main
from fencepost_conformance.generate.lab import Lab, parse_actions, parse_start
from fencepost_conformance.generate.lab.saving import events_trace
from fencepost_conformance.generate.lab.tours import TOURS
from fencepost_conformance.traces.files import write_traces

pytestmark = pytest.mark.jvm
RELEASE = "4.4.0"


def saved(name: str, folder: Path, profile: str) -> Path:
    """Play a tour to its end, and save it."""
    actions = [dict(action) for chapter in TOURS[name].chapters for action in chapter.actions]
    lab = Lab(parse_start({**TOURS[name].start, "profile": profile})).play(parse_actions(actions))
    write_traces(folder / f"{name}.jsonl", [events_trace(lab)])
    return folder / f"{name}.jsonl"


@pytest.mark.parametrize(
    "names", [("fail-over",), pytest.param(tuple(TOURS), marks=pytest.mark.all)], ids=["one", "all"]
)
def test_tours_pass_on_kafka(names: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_harness(RELEASE)
    files = [word for name in names for word in ("--trace", str(saved(name, tmp_path, "kafka-4.4")))]
    with pytest.raises(SystemExit) as ended:
        main(["conform", *files, "--target", f"kafka:{RELEASE}", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert (ended.value.code, result["verdict"]) == (0, "passed")
    assert result["counts"]["passed"] == len(names)


def test_a_session_of_an_older_release_differs_on_kafka(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """4.3 does not write the record of the target when the last member leaves (M-LEAVE-08)."""
    require_harness(RELEASE)
    file = saved("fail-over", tmp_path, "kafka-4.3")
    with pytest.raises(SystemExit) as ended:
        main(["conform", "--trace", str(file), "--target", f"kafka:{RELEASE}", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert (ended.value.code, result["verdict"], result["counts"]["failed"]) == (1, "failed", 1)
