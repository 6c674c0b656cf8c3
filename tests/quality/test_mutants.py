"""Every named fault is found by the suite, by a property or a comparison; without a fault nothing is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost_conformance.mutants import suite
from fencepost_conformance.mutants.catalogue import MUTANTS

DOCUMENT = Path(__file__).parents[2] / "docs" / "mutants.md"


@pytest.mark.parametrize("name", MUTANTS)
def test_the_suite_finds_the_fault(name):
    verdict = suite.run(MUTANTS[name], quick=True)
    assert verdict.killed
    (kill,) = verdict.kills
    assert kill.by != "an internal error"
    assert kill.steps > 0
    assert kill.text


def test_processes_that_are_renewed_try_them_all(monkeypatch):
    """In order, and more of them than two processes may try."""
    monkeypatch.setattr(suite, "TASKS_EACH", 1)
    chosen = list(MUTANTS.values())[:5]
    verdicts = list(suite.run_all(chosen, quick=True, workers=2))
    assert [verdict.mutant for verdict in verdicts] == [mutant.name for mutant in chosen]
    assert all(verdict.killed for verdict in verdicts)


def test_without_a_fault_nothing_is_found():
    assert suite.control() == []


def test_faults_of_real_systems_are_among_them():
    assert len([mutant for mutant in MUTANTS.values() if "KAFKA-" in mutant.source]) >= 20


def test_the_document_lists_every_mutant():
    rows = re.findall(r"^\| `([\w-]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert rows == list(MUTANTS)


def test_a_survivor_is_an_error(monkeypatch, capsys):
    from fencepost_conformance.cli import main  # noqa: PLC0415

    monkeypatch.setattr(suite, "CHECKS", dict.fromkeys(suite.CHECKS, ()))
    monkeypatch.setattr(suite, "ALL_CHECKS", ())
    with pytest.raises(SystemExit) as left:
        main(["mutants", "no-sync-timer", "--json"])
    assert left.value.code == 1
    assert json.loads(capsys.readouterr().out)["survivors"] == ["no-sync-timer"]


def test_an_unknown_name_is_refused():
    run = subprocess.run(
        [sys.executable, "-m", "fencepost_conformance.cli", "mutants", "nothing"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 2
    assert "no mutant 'nothing'" in run.stderr
