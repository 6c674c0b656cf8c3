"""The suite finds every named fault, by a property or a comparison, and finds nothing without a fault."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.run.mutants import consumer_member_checks, kafka_checks, killers, suite
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.targets.jvm.releases import NEWEST

#: The numbers of seeds of the checks.
COUNTS = {
    suite: (
        "SIMULATIONS", "TRACES", "LOADS", "WALKS", "GROUPS", "READINGS", "CLUSTERS", "OFFSETS", "OFFSET_TRACES",
        "EDGE_TRACES", "LOGS", "RECORD_LOTS", "STORES",
    ),
    consumer_member_checks: ("SIMULATIONS", "WALKS"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_the_suite_finds_the_fault(name):
    verdict = suite.run(MUTANTS[name], quick=True, begin_with=killers.first_of(name))
    assert verdict.killed
    assert killers.otherwise(verdict, quick=True) is None
    (kill,) = verdict.kills
    assert kill.by != "an internal error"
    assert kill.steps > 0
    assert kill.text


def test_processes_that_are_renewed_try_them_all(monkeypatch):
    """Return the mutants in order, more than two processes can run at a time."""
    monkeypatch.setattr(suite, "TASKS_EACH", 1)
    chosen = list(MUTANTS.values())[:3]
    verdicts = list(suite.run_all(chosen, quick=True, workers=2))
    assert [verdict.mutant for verdict in verdicts] == [mutant.name for mutant in chosen]
    assert all(verdict.killed for verdict in verdicts)


@pytest.mark.parametrize("one_in", [8, pytest.param(1, marks=pytest.mark.all)])
def test_without_a_fault_nothing_is_found(monkeypatch, one_in):
    for module, counts in COUNTS.items():
        for count in counts:
            monkeypatch.setattr(module, count, getattr(module, count) // one_in)
    assert suite.control() == []


def test_checks_that_are_among_others_have_a_name():
    """A quick run begins with the check that ``killers.json`` names first."""
    assert {check for checks in suite.CHECKS.values() if len(checks) > 1 for check in checks} == {*suite.NAMES}
    assert set(suite.NAMES.values()) <= {
        each.partition(":")[0] for found in killers.pinned().values() for each in found
    }


def test_faults_of_real_systems_are_among_them():
    assert len([mutant for mutant in MUTANTS.values() if "KAFKA-" in mutant.source]) >= 20


def test_a_survivor_is_an_error(monkeypatch, capsys):
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


@pytest.fixture
def one_check(monkeypatch, tmp_path):
    """Run the product only, with a temporary table of killers."""
    monkeypatch.setattr(suite, "CHECKS", dict.fromkeys(suite.CHECKS, (suite.product,)))
    monkeypatch.setattr(suite, "ALL_CHECKS", ())
    monkeypatch.setattr(killers, "FILE", tmp_path / "killers.json")
    killers.pinned.cache_clear()
    yield killers.FILE
    killers.pinned.cache_clear()


def tried(capsys, *words):
    with pytest.raises(SystemExit) as left:
        main(["mutants", "no-sync-timer", *words, "--json"])
    return left.value.code, json.loads(capsys.readouterr().out)


def test_a_mutant_that_another_check_finds_is_reported_and_can_be_pinned(one_check, capsys):
    one_check.write_text('{"no-sync-timer": ["product: INV-JOIN-01"], "gone": ["product: E2"]}')
    status, result = tried(capsys)
    assert (status, result["passed"], result["survivors"]) == (1, False, [])
    assert result["found_otherwise"] == {
        "no-sync-timer": "found by product: E2; but killers.json has product: INV-JOIN-01"
    }
    assert tried(capsys, "--quick")[0] == 1
    assert tried(capsys, "--pin")[0] == 0
    assert json.loads(one_check.read_text()) == {"no-sync-timer": ["product: E2"]}
    assert tried(capsys)[0] == 0


def test_a_check_that_no_longer_finds_a_mutant_is_reported_by_the_whole_run(one_check, capsys):
    one_check.write_text('{"no-sync-timer": ["product: E2", "simulation: LIV-05"]}')
    assert tried(capsys, "--quick")[0] == 0
    status, result = tried(capsys)
    assert status == 1
    assert "killers.json has product: E2; simulation: LIV-05" in result["found_otherwise"]["no-sync-timer"]


def test_the_first_of_the_checks_is_not_pinned_as_all_of_them(capsys):
    with pytest.raises(SystemExit) as left:
        main(["mutants", "no-sync-timer", "--pin", "--quick"])
    assert left.value.code == 2
    assert "--quick stops at the first" in capsys.readouterr().err


@pytest.mark.jvm
def test_the_comparison_with_kafkas_client_finds_its_planted_faults(monkeypatch):
    """The comparison with Kafka's client alone finds faults planted in a member and in a reader, and nothing without a
    fault."""
    monkeypatch.setattr(suite, "CHECKS", dict.fromkeys(suite.CHECKS, ()))
    monkeypatch.setattr(kafka_checks, "SCHEDULES", 12)
    for name in ("lost-partitions-not-reported", "two-fetches-at-once"):
        (kill,) = suite.run(MUTANTS[name], quick=True, kafka=NEWEST).kills
        assert f"{kill.check}: {kill.by}" in killers.pinned()[name]
    monkeypatch.setattr(suite, "ALL_CHECKS", ())
    assert suite.control(NEWEST) == []
