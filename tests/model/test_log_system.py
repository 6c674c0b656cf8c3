"""The closed log: same graph as in the specification (E1), every action reached, every removed guard noticed."""

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

from fencepost_model.system.checking import check_tlc, explore_entry
from fencepost_model.system.durable import Durable, follows
from fencepost_model.system.families import LOG
from fencepost_model.system.log.mutants import LOG_MUTANTS
from fencepost_model.system.manifest import read_manifest, read_problem

ENTRIES = {entry.name: entry for entry in read_manifest(SPEC) if entry.module.stem in LOG.modules}
QUICK = "LogThreeBrokers"
#: Guards of the cleaners, which are not used where there is room for one record only.
CLEANERS = {"Superseded", "HasNoOlderRecords", "EveryBrokerHasSeen"}


# ---- E1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.tlc
@pytest.mark.all
@pytest.mark.parametrize("name", [QUICK, "LogQuiet", "LogThreeLeaders"])
def test_the_two_graphs_are_the_same(name: str, tlc: None) -> None:
    row = check_tlc(ENTRIES[name], workers=2)
    assert (row.compared, row.wrong) == (True, [])


@pytest.mark.tlc
def test_a_change_of_the_model_alone_is_seen(tmp_path: Path, tlc: None) -> None:
    """Compare unchanged graphs first, which must be equal; then remove guards of the model alone."""
    mutants = [name for name in LOG_MUTANTS if name.split()[0] not in CLEANERS]
    check_changes_of_the_model(tmp_path, ENTRIES[QUICK], *mutants)


@pytest.mark.tlc
@pytest.mark.all
def test_a_change_of_a_cleaner_in_the_model_alone_is_seen(tmp_path: Path, tlc: None) -> None:
    mutants = [name for name in LOG_MUTANTS if name.split()[0] in CLEANERS]
    check_changes_of_the_model(tmp_path, ENTRIES["LogQuiet"], *mutants)


@pytest.mark.tlc
@pytest.mark.all
@pytest.mark.parametrize("override", ["Elections = 2", "Allowed <- WritesAndElections"])
def test_a_change_of_the_specification_alone_is_seen(override: str, tmp_path: Path, tlc: None) -> None:
    assert sides_of_a_changed_specification(tmp_path, ENTRIES[QUICK], override)


@pytest.mark.tlc
@pytest.mark.all
@pytest.mark.parametrize("mutant", ["AfterTimeOut <- UndoneByTimeOut", "Loaded <- LoadedToHighWatermark"])
def test_the_same_change_of_both_gives_the_same_graph_again(mutant: str, tmp_path: Path, tlc: None) -> None:
    check_the_same_change_of_both(tmp_path, ENTRIES[QUICK], mutant)


# ---- what happens ----------------------------------------------------------------------------------------------------


def test_every_action_is_reached() -> None:
    text = (SPEC / "GroupLog.tla").read_text(encoding="utf-8")
    parts = re.findall(r"^(?:System|Environment) ==\n((?:  .*\n)+)", text, re.MULTILINE)
    assert len(parts) == 2
    actions = {*re.findall(r" (\w+)\([\w, ]+\)$", "".join(parts), re.MULTILINE)}
    graph = explore_entry(ENTRIES["LogQuiet"], transitions=True)[1].graph
    assert {label[0] for _, label, _, _ in graph.transitions()} == actions


def test_every_guard_is_missed_somewhere() -> None:
    problems = [read_problem(entry) for entry in ENTRIES.values() if entry.expected != "holds"]
    assert {mutant for problem in problems for mutant in problem.mutants} == {*LOG_MUTANTS}


# ---- Durable ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stable", "opened", "may"),
    [
        ("a", ("b", "c"), True),  # no change
        ("a", ("b", "c", "d"), True),  # one more record is written
        ("b", ("c",), True),  # one record is replicated
        ("c", (), True),  # both records are replicated
        ("a", ("b",), True),  # the last record is lost
        ("a", (), True),  # both records are lost
        ("b", (), True),  # one record is replicated, the other lost
        ("a", ("c",), False),  # the second record survives without the first
        ("b", ("c", "d"), False),  # one record is replicated while another is written
        ("x", ("b", "c"), False),  # a record is replicated that was not written
        ("a", ("x", "c"), False),
        ("a", ("b", "c", "d", "e"), False),
    ],
)
def test_successors_of_a_durable_state(stable: str, opened: tuple[str, ...], may: bool) -> None:
    assert follows(Durable("a", ("b", "c")), Durable(stable, opened)) is may
