"""Planted faults of the areas: each has its place in the product, in this process and in a copy; the document lists
them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fencepost
from fencepost_conformance.cli import main
from fencepost_conformance.run.mutants.areas import kept, trial
from fencepost_conformance.run.mutants.areas.catalogue import FAULTS
from fencepost_conformance.run.mutants.areas.copying import environment, faulty_copy
from fencepost_conformance.run.mutants.areas.fault import Area
from fencepost_conformance.run.mutants.areas.page import as_markdown
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.replacement import exchanged_code, in_place
from fencepost_server.security import acl

ROOT = Path(__file__).parents[3]
PRODUCT = Path(fencepost.__file__).parents[1]
DENY = FAULTS["deny-all-denies-nothing"]
PROGRAM = """
from fencepost_server.security.acl import Acl, Operation, Resource, parse_rules
rules = parse_rules("allow User:a Read Topic *\\ndeny User:a All Topic t")
allowed = Acl(rules).allows("User:a", "h", Operation.READ, Resource.TOPIC, "t")
"""
TESTS = f"""
import pytest
{PROGRAM}
def test_imports(): pass

@pytest.mark.parametrize("name", ["a b"])
def test_denied(name): assert not allowed

def test_not_reached(): assert not allowed
"""


@pytest.mark.parametrize("name", FAULTS)
def test_the_product_has_the_text_that_a_fault_replaces(name):
    changes = exchanged_code(FAULTS[name].replacements)
    assert changes
    assert all(function.__code__ != code for function, code in changes.items())


def test_names_are_unique_and_each_area_has_faults():
    assert not FAULTS.keys() & MUTANTS.keys()
    assert {fault.area for fault in FAULTS.values()} == {*Area}
    assert list(kept.kept()) == list(FAULTS)
    assert len({(fault.words, fault.shown) for fault in FAULTS.values()}) == len(FAULTS)


def test_a_fault_is_planted_in_this_process_and_taken_back():
    rules = acl.parse_rules("allow User:a Read Topic *\ndeny User:a All Topic t")
    asked = ("User:a", "h", acl.Operation.READ, acl.Resource.TOPIC, "t")
    with in_place(DENY.replacements):
        assert acl.Acl(rules).allows(*asked)
    assert not acl.Acl(rules).allows(*asked)


def test_a_separate_process_has_the_fault_and_the_product_is_unchanged(tmp_path):
    before = (PRODUCT / "fencepost_server/security/acl.py").read_bytes()
    faulty_copy(DENY.replacements, tmp_path)
    words = [sys.executable, "-c", f"{PROGRAM}print(allowed)"]
    faulty = subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True, check=True)
    right = subprocess.run(words, env={**environment(PRODUCT)}, capture_output=True, text=True, check=True)
    assert (faulty.stdout, right.stdout) == ("True\n", "False\n")
    assert (PRODUCT / "fencepost_server/security/acl.py").read_bytes() == before


def test_the_first_test_that_fails_kills_a_fault(tmp_path):
    """A run without a fault kills nothing."""
    (tmp_path / "test_it.py").write_text(TESTS)
    killed, right = (
        trial.try_tests("deny", replacements, ("test_it.py",), tmp_path) for replacements in (DENY.replacements, ())
    )
    assert (killed.killer, right.killer) == ("test_it.py::test_denied[a b]", None)


def test_a_run_that_ran_nothing_is_not_a_result(tmp_path):
    with pytest.raises(trial.CannotTry):
        trial.try_tests("none", (), ("nowhere.py",), tmp_path)


def test_a_test_that_does_not_end_kills_a_fault():
    assert trial._killer(None, "tests/a.py::test_b PASSED\ntests/a.py::test_c ") == "tests/a.py::test_c (does not end)"


def test_killers_are_recorded_and_those_of_other_checks_stay(monkeypatch, tmp_path):
    one, other = list(FAULTS)[:2]
    file = trial.tests_of(FAULTS[one])[0]
    monkeypatch.setattr(kept, "FILE", tmp_path / "killers.json")
    kept.FILE.write_text(json.dumps({one: [f"{file}::test_a", "oracle: P"], other: []}))
    kept.keep([trial.Trial(one, f"{file}::test_b")])
    assert kept.kept() == {one: (f"{file}::test_b", "oracle: P"), other: ()}
    kept.keep([trial.Trial(one, None)])
    assert kept.kept()[one] == ("oracle: P",)


def test_the_document_lists_the_faults():
    text = (ROOT / "docs" / "planted-faults.md").read_text(encoding="utf-8")
    _, mark, made = text.partition("<!-- made by: fencepost mutants --area server --markdown -->\n")
    assert mark
    assert made.strip() == as_markdown(), "fencepost mutants --area server --markdown prints what has to stand there"


def said(capsys, *words):
    with pytest.raises(SystemExit) as left:
        main(["mutants", *words])
    output = capsys.readouterr()
    return left.value.code, output.out, output.err


def test_the_command_lists_an_area(capsys):
    status, out, _ = said(capsys, "--area", "server/security", "--list", "--json")
    rows = json.loads(out)["mutants"]
    assert status == 0
    assert rows.keys() == {name for name, fault in FAULTS.items() if fault.area is Area.SECURITY}
    assert rows[DENY.name]["text"] == DENY.words


def test_the_command_names_the_survivors(capsys, monkeypatch):
    monkeypatch.setattr(trial, "try_tests", lambda name, *_: trial.Trial(name, None))
    status, out, _ = said(capsys, "--area", "server", DENY.name, "--json")
    assert (status, json.loads(out)["survivors"]) == (1, [DENY.name])


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("--area", "servers"), "no area 'servers'; did you mean server"),
        (("--area", "store", "deny-all-denies-nothing"), "no mutant of store 'deny-all-denies-nothing'"),
        (("--area", "server", "--quick"), "--area can only be combined with"),
    ],
)
def test_a_fault_that_cannot_be_run_is_named(capsys, words, wrong):
    status, _, err = said(capsys, *words)
    assert status == 2
    assert wrong in err
