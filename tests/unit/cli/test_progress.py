"""Long work reports its progress outside a terminal too, on standard error, so that ``--json`` prints one object."""

from __future__ import annotations

import json
import re
import time

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.run.mutants import suite
from fencepost_conformance.run.mutants.kill import Kill
from fencepost_conformance.show import console


def lines_until(capsys: pytest.CaptureFixture[str], wanted: str) -> list[str]:
    """Return the lines on standard error so far, once one of them begins so; standard output must stay empty."""
    said = ""
    for _ in range(6_000):
        output = capsys.readouterr()
        assert output.out == ""
        said += output.err
        if any(line.startswith(wanted) for line in said.splitlines()) and said.endswith("\n"):
            return said.splitlines()
        time.sleep(0.01)
    raise AssertionError(f"no line begins with {wanted!r} after a minute: {said!r}")


def test_progress_prints_one_line_each_interval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "EVERY", 0.1)
    began = time.monotonic()
    with console.progress("weighing", 40) as meter:
        meter.advance(12)
        first = lines_until(capsys, "weighing: 12 of 40")
        assert time.monotonic() - began >= 0.09
        meter.update(description="weighing salt", completed=13)
        lines = first + lines_until(capsys, "weighing salt")
        took = time.monotonic() - began
    assert len(lines) <= took / 0.1 + 1
    assert re.fullmatch(r"weighing: 12 of 40, \d+ s", first[-1])
    assert re.fullmatch(r"weighing salt: 13 of 40, \d+ s", lines[-1])
    capsys.readouterr()
    time.sleep(0.3)
    assert capsys.readouterr() == ("", "")


def test_short_work_prints_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("weighing"):
        pass
    assert capsys.readouterr().err == ""


def test_work_of_unknown_length_names_its_stage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "EVERY", 0.05)
    with console.progress("starting Spark"):
        time.sleep(0.2)
    assert re.match(r"starting Spark, \d+ s\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("check EagerQuiet CooperativeQuiet --workers 1", "EagerQuiet|CooperativeQuiet|checking"),
        ("conform --traces 20 --workers 1", "core, [a-z0-9.-]+, classic: "),
        ("mutants pending-cannot-leave --quick --workers 1", "pending-cannot-leave: |mutants"),
        ("validate tests/corpus/a*.jsonl.gz tests/corpus/c*.jsonl.gz --workers 1", "validating: "),
    ],
)
def test_commands_print_progress_beside_their_json_object(
    line: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "EVERY", 0.001)
    monkeypatch.setattr(suite, "control", _nothing_found)
    with pytest.raises(SystemExit) as ended:
        main([*line.split(), "--json"])
    output = capsys.readouterr()
    assert ended.value.code == 0
    assert json.loads(output.out)["passed"]
    assert re.search(said, output.err)


def _nothing_found(*_: object) -> list[Kill]:
    """Replaces half a minute: long enough for a progress line, however busy the machine is."""
    time.sleep(0.2)
    return []
