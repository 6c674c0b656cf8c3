"""Mutants as replacements in the text of the core: each has its place, breaks existing rules, and leaves no state
behind."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import fencepost
from fencepost.coordinator.classic import rebalance, sync
from fencepost.coordinator.classic.group import GroupDraft
from fencepost.coordinator.consumer import target
from fencepost.member.assignors.base import GroupMember
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.consumer_protocol import Subscription
from fencepost.protocol.events import Topic
from fencepost_conformance.cli import main
from fencepost_conformance.judge.rulebook.texts import rule_book
from fencepost_conformance.run.mutants import (
    assignor_faults,
    boundary_faults,
    cluster_faults,
    codec_faults,
    condition_faults,
    consumer_faults,
    consumer_member_faults,
    consumer_target_faults,
    family_faults,
    join_faults,
    member_faults,
    mixed_faults,
    offset_faults,
    reader_faults,
    sync_faults,
    width_faults,
)
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.killers import pinned
from fencepost_conformance.run.mutants.mutant import Mutant, Side, check, planted, text_of
from fencepost_conformance.run.mutants.page import as_markdown
from fencepost_conformance.run.mutants.replacement import DoesNotApply, Replacement, exchanged_code, in_place, replaced

DOCUMENT = Path(__file__).parents[3] / "docs" / "mutants.md"
CORE = Path(fencepost.__file__).parent
SYNC = "coordinator/classic/sync.py"


@pytest.mark.parametrize("name", MUTANTS)
def test_the_core_has_the_text_that_a_mutant_replaces(name):
    mutant = MUTANTS[name]
    check(mutant)
    changes = exchanged_code(mutant.replacements)
    assert changes
    assert all(function.__code__ != code for function, code in changes.items())


def test_mutants_break_rules_of_the_rule_book():
    broken = {rule for mutant in MUTANTS.values() for rule in mutant.rules}
    assert broken <= rule_book().keys()


def test_a_function_has_the_faulty_code_wherever_it_is_known():
    held = sync._invalid
    before = held.__code__
    with in_place([Replacement(SYNC, "_invalid", "body.generation_id != group.generation", "False")]):
        assert sync._invalid is held
        assert held.__code__ is not before
    assert held.__code__ is before


def test_a_planted_fault_is_removed_when_its_block_raises():
    before = rebalance.complete.__code__
    block = planted(MUTANTS["generation-stays"])
    block.__enter__()
    assert rebalance.complete.__code__ is not before
    assert block.__exit__(RuntimeError, RuntimeError(), None) is not True
    assert rebalance.complete.__code__ is before


def test_the_state_of_a_planted_fault_is_reset():
    """The state begins anew the next time the fault is planted."""
    topics = {"t": Topic("t", b"", 2), "u": Topic("u", b"", 9)}
    one, other = ({name: GroupMember(Subscription((topic,))) for name in "mn"} for topic in topics)
    for first, then in ((one, other), (other, one)):
        right = RangeAssignor().assign(topics, first)
        with planted(MUTANTS["assignment-cached"]):
            assert RangeAssignor().assign(topics, first) == right
            assert RangeAssignor().assign(topics, then) == right


def test_methods_properties_and_functions_that_vary_can_be_replaced():
    for file, where, before in (
        (SYNC, "AssignmentSent._is_current", "group.generation == self.generation"),
        ("coordinator/classic/group.py", "GroupDraft.all_joined", "not self.pending_join"),
        (SYNC, "not_assigned", "find_incarnation(step, group_id, incarnation)"),
    ):
        with in_place([Replacement(file, where, before, "None")]):
            pass
    with in_place([Replacement(SYNC, "not_assigned", "find_incarnation(step, group_id, incarnation)", "step")]):
        step = type("Step", (), {"quirks": None})()
        assert sync.not_assigned(step, "g", 1) is step
    assert GroupDraft.all_joined.fget.__name__ == "all_joined"
    assert target.stored.__wrapped__.__name__ == "stored"


def test_further_lines_are_indented_as_the_first():
    before = "assignments = {entry.member_id: entry.assignment for entry in body.assignments}"
    change = Replacement(SYNC, "_send_assignment", before, "if True:\n    assignments = {}")
    text = text_of(Mutant("some", Side.COORDINATOR, ("C-SYNC-17",), "", "", (change,)))
    assert "\n-    assignments = {" in text
    assert "\n+    if True:\n+        assignments = {}\n" in text


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (Replacement("coordinator/none.py", "sync", "a", "b"), "the core has no file coordinator/none.py"),
        (Replacement(SYNC, "nobody", "a", "b"), f"{SYNC} has no nobody"),
        (Replacement(SYNC, "AssignmentSent", "a", "b"), f"AssignmentSent in {SYNC} is not a function"),
        (Replacement(SYNC, "_differ", "asked > 3", "b"), f"_differ in {SYNC} does not contain this text: asked > 3"),
        (Replacement(SYNC, "_differ", "is not None", "b"), "contains this text 2 times instead of once: is not None"),
        (Replacement(SYNC, "_differ", "asked != known", "asked !="), "is not valid Python with it"),
        (
            Replacement(SYNC, "_differ", "asked != known", "strange(asked)"),
            "names that its file does not have: strange",
        ),
        (
            Replacement("coordinator/kernel/topics.py", "_topic_hash", "hash64", "hash64"),
            "caches its results",
        ),
    ],
    ids=["file", "function", "class", "text", "twice", "syntax", "name", "cached"],
)
def test_a_missing_place_of_a_mutant_is_reported(change, missing):
    mutant = Mutant("some-fault", Side.COORDINATOR, ("C-SYNC-17",), "", "", (change,))
    with pytest.raises(DoesNotApply) as failure:
        check(mutant)
    assert str(failure.value).startswith("mutant some-fault does not apply: ")
    assert missing in str(failure.value)
    with pytest.raises(DoesNotApply), planted(mutant):
        pass


def test_a_compiled_core_is_refused(monkeypatch):
    monkeypatch.setattr(sync, "__file__", "/somewhere/sync.cpython-311.so")
    with pytest.raises(DoesNotApply, match=r"sync is compiled .* without FENCEPOST_COMPILED"):
        exchanged_code([Replacement(SYNC, "_differ", "asked != known", "False")])


def test_nothing_is_changed_if_one_of_several_has_no_place():
    before = sync._differ.__code__
    changes = [Replacement(SYNC, "_differ", "asked != known", "False"), Replacement(SYNC, "_invalid", "nowhere", "")]
    with pytest.raises(DoesNotApply), in_place(changes):
        pass
    assert sync._differ.__code__ is before


def test_each_mutant_has_a_unique_name_and_a_check_that_finds_it():
    families = [
        assignor_faults, cluster_faults, codec_faults, consumer_faults, consumer_member_faults,
        consumer_target_faults, join_faults, member_faults, mixed_faults, offset_faults, reader_faults, sync_faults,
        boundary_faults, condition_faults, family_faults, width_faults,
    ]  # fmt: skip
    names = [mutant.name for family in families for mutant in family.FAULTS]
    assert sorted(names) == sorted(MUTANTS)
    assert list(pinned()) == list(MUTANTS)
    assert all(pinned().values())


def test_the_document_lists_the_mutants():
    _, mark, made = DOCUMENT.read_text(encoding="utf-8").partition("<!-- made by: fencepost mutants --markdown -->\n")
    assert mark
    assert made.strip() == as_markdown(), "fencepost mutants --markdown prints what has to stand below the mark"


def test_the_command_shows_a_fault_with_its_rules_and_as_a_diff(capsys):
    with pytest.raises(SystemExit) as left:
        main(["mutants", "sync-generation-unchecked", "--show"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert "sync-generation-unchecked: SyncGroup is accepted from any generation" in said
    assert "breaks C-SYNC-09: " in said
    assert "as in nisshi-io/nisshi@50e5666" in said
    assert "found by product: E2" in said
    assert "\n-    if body.generation_id != group.generation:\n+    if False:\n" in said


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
def test_the_diff_of_a_mutant_is_a_patch_of_the_core(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["mutants", "replacement-not-written", "load-skips-tombstones", "--show", "--json"])
    rows = json.loads(capsys.readouterr().out)["mutants"]
    shutil.copytree(CORE, tmp_path / "fencepost")
    for name, row in rows.items():
        run = subprocess.run(["patch", "-p0"], cwd=tmp_path, input=row["diff"] + "\n", text=True, check=False)
        assert run.returncode == 0
        for file, source in replaced(MUTANTS[name].replacements).items():
            assert (tmp_path / "fencepost" / file).read_text(encoding="utf-8") == source


def test_a_mutant_without_its_place_cannot_run(monkeypatch, capsys):
    moved = replace(MUTANTS["no-sync-timer"], replacements=(Replacement(SYNC, "_differ", "is away", ""),))
    monkeypatch.setitem(MUTANTS, "no-sync-timer", moved)
    with pytest.raises(SystemExit) as left:
        main(["mutants", "no-sync-timer"])
    assert left.value.code == 2
    assert (
        f"mutant no-sync-timer does not apply: _differ in {SYNC} does not contain this text" in capsys.readouterr().err
    )
