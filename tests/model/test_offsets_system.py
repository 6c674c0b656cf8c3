"""The closed system of offsets: same graph as in the specification (E1), every action reached, every guard noticed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from graphs import (
    SPEC,
    check_changes_of_the_model,
    check_the_same_change_of_both,
    sides_of_a_changed_specification,
)

from fencepost_model.system.checking import check_python, check_tlc, explore_entry
from fencepost_model.system.families import OFFSETS
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.system.offsets.mutants import OFFSET_MUTANTS

ENTRIES = {entry.name: entry for entry in read_manifest(SPEC) if entry.module.stem in OFFSETS.modules}
QUICK = "OffsetsQuiet"


# ---- E1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.tlc
@pytest.mark.all
@pytest.mark.parametrize("name", [QUICK, "OffsetsFaults", "OffsetsRemoved"])
def test_the_two_graphs_are_the_same(name: str, tlc: None) -> None:
    row = check_tlc(ENTRIES[name], workers=2)
    assert (row.compared, row.wrong) == (True, [])


@pytest.mark.tlc
def test_a_change_of_the_model_alone_is_seen(tmp_path: Path, tlc: None) -> None:
    """Compare unchanged graphs first, which must be equal; then remove guards of the model alone."""
    mutants = (
        "IsCurrent <- AnyRequestIsCurrent",
        "Unstable <- NeverUnstable",
        "SentAtOnce <- AnsweredBeforeReplication",
    )
    check_changes_of_the_model(tmp_path, ENTRIES[QUICK], *mutants)


@pytest.mark.tlc
@pytest.mark.all
def test_a_change_of_any_guard_in_the_model_alone_is_seen(tmp_path: Path, tlc: None) -> None:
    """Remove each guard but those unused with one partition, one way to commit and stable fetches."""
    without_use = ("Overtaken", "Visible", "MayExpire", "KeptPartitions")
    mutants = [name for name in OFFSET_MUTANTS if name.split()[0] not in without_use]
    check_changes_of_the_model(tmp_path, ENTRIES["OffsetsFaults"], *mutants)


@pytest.mark.tlc
@pytest.mark.all
@pytest.mark.parametrize("override", ["Epochs = 1", "RequireStable = FALSE"])
def test_a_change_of_the_specification_alone_is_seen(override: str, tmp_path: Path, tlc: None) -> None:
    assert sides_of_a_changed_specification(tmp_path, ENTRIES[QUICK], override)


@pytest.mark.tlc
@pytest.mark.all
@pytest.mark.parametrize("mutant", ["Unstable <- NeverUnstable", "IsCurrent <- AnyRequestIsCurrent"])
def test_the_same_change_of_both_gives_the_same_graph_again(mutant: str, tmp_path: Path, tlc: None) -> None:
    check_the_same_change_of_both(tmp_path, ENTRIES[QUICK], mutant)


# ---- what happens ----------------------------------------------------------------------------------------------------


def test_every_action_is_reached() -> None:
    text = (SPEC / "Offsets.tla").read_text(encoding="utf-8")
    parts = re.findall(r"^(?:System|Environment) ==\n((?:  \\/ .*\n)+)", text, re.MULTILINE)
    assert len(parts) == 2
    actions = {*re.findall(r"(?:\\/|:) (\w+)(?:\([\w, ]+\))?$", "".join(parts), re.MULTILINE)}
    reached = set()
    for name in ("OffsetsFaults", "OffsetsRemoved"):
        graph = explore_entry(ENTRIES[name], transitions=True)[1].graph
        reached |= {label[0] for _, label, _, _ in graph.transitions()}
    assert reached == actions


def test_transactions_end_and_waits_too() -> None:
    assert check_python(ENTRIES["OffsetsFreed"]).wrong == []


def test_every_guard_is_missed_somewhere() -> None:
    problems = [read_problem(entry) for entry in ENTRIES.values() if entry.expected != "holds"]
    assert {mutant for problem in problems for mutant in problem.mutants} == {*OFFSET_MUTANTS}
