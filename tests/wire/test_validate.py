"""``fencepost validate``: its input, its output, and its exit status."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance.run.falsify.falsehoods import falsehoods
from fencepost_conformance.traces.files import WireTrace, read_traces, write_traces

CORPUS = Path(__file__).parents[1] / "corpus"
GOOD = CORPUS / "alone-java.jsonl.gz"


def validate(*words: str | Path) -> tuple[int, dict[str, Any], str]:
    """Return status, JSON result, standard error."""
    answer = subprocess.run(
        [sys.executable, "-m", "fencepost_conformance.cli", "validate", "--json", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return answer.returncode, json.loads(answer.stdout) if answer.stdout.strip() else {}, answer.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good trace, a falsified one and a broken one."""
    shutil.copy(GOOD, tmp_path / "a-good.jsonl.gz")
    (trace,) = read_traces(GOOD)
    assert isinstance(trace, WireTrace)
    wrong = next(each for each in falsehoods(trace) if each.kind == "heartbeat-unknown-member")
    write_traces(tmp_path / "b-wrong.jsonl", [wrong.trace])
    text = gzip.decompress(GOOD.read_bytes()).decode().splitlines()
    text[6] = text[6].replace('"type":', '"tipe":')
    (tmp_path / "c-broken.jsonl").write_text("\n".join(text))
    return tmp_path


def test_correct_traces_pass(tmp_path: Path) -> None:
    status, result, _ = validate(GOOD, CORPUS / "alone-*.gz")
    assert status == 0
    assert result["passed"] is True
    assert result["counts"]["passed"] == result["counts"]["traces"] == 4
    assert result["counts"]["events_per_second"] > 0


def test_a_folder_with_all_sorts(folder: Path) -> None:
    status, result, _ = validate(folder)
    assert status == 1
    assert [verdict["verdict"] for verdict in result["verdicts"]] == ["passed", "failed", "broken"]
    good, wrong, broken = result["verdicts"]
    assert good["events"] > 10
    (refusal,) = wrong["refusals"]
    line = (folder / "b-wrong.jsonl").read_text().splitlines()[refusal["line"] - 1]
    assert json.loads(line)["body"]["error_code"] == 25
    assert refusal["allowed"] == ["NONE"]
    assert "C-HB-12" in refusal["rules"]
    assert broken["line"] == 7
    assert broken["reason"]


def test_unchecked_traces_give_status_2(folder: Path) -> None:
    (folder / "b-wrong.jsonl").unlink()
    status, result, error = validate(folder)
    assert status == 2
    assert result["counts"]["passed"] == 1
    assert "c-broken.jsonl:7" in error


def test_a_group_that_was_alive_before_is_not_judged(tmp_path: Path) -> None:
    text = gzip.decompress(GOOD.read_bytes()).decode().splitlines()
    joins = [at for at, line in enumerate(text) if '"api_key":11' in line and '"sent"' in line]
    (tmp_path / "late.jsonl").write_text("\n".join([text[0], *text[joins[-1] :]]))
    status, result, error = validate(tmp_path / "late.jsonl")
    assert status == 2
    assert result["verdicts"][0]["verdict"] == "undecided"
    assert "was alive before the trace began" in error


def test_lines_are_counted_in_the_file(tmp_path: Path, folder: Path) -> None:
    good = gzip.decompress(GOOD.read_bytes()).decode().splitlines()
    both = [*good, "", *(folder / "b-wrong.jsonl").read_text().splitlines()]
    (tmp_path / "two.jsonl").write_text("\n".join(both))
    _, result, _ = validate(tmp_path / "two.jsonl")
    (refusal,) = result["verdicts"][1]["refusals"]
    assert json.loads(both[refusal["line"] - 1])["body"]["error_code"] == 25


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere.jsonl",), "nowhere.jsonl"),
        ((str(GOOD), "--profile", "kafka-0.8"), "kafka-0.8"),
        ((str(GOOD), "--engine", "steam"), "steam"),
    ],
)
def test_an_impossible_validation_is_reported_in_one_line(words: tuple[str, ...], said: str) -> None:
    status, _, error = validate(*words)
    assert status == 2
    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_several_processes_agree_with_one() -> None:
    files = CORPUS / "r*.gz"
    one = validate(files, "--workers", "1")[1]["verdicts"]
    two = validate(files, "--workers", "2")[1]["verdicts"]
    assert len(one) >= 20
    assert [(v["path"], v["verdict"], v["steps"]) for v in one] == [(v["path"], v["verdict"], v["steps"]) for v in two]


@pytest.mark.spark
@pytest.mark.slow
def test_spark_agrees_with_one_process(folder: Path) -> None:
    pytest.importorskip("pyspark", reason="needs PySpark: pip install -e '.[spark]'")
    status, result, _ = validate(folder, "--engine", "spark")
    assert status == 1
    assert [verdict["verdict"] for verdict in result["verdicts"]] == ["passed", "failed", "broken"]
