"""``fencepost certify`` writes a certificate only for checks that passed, and says why it does not."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from fencepost.certification import examine
from fencepost.certification.files import PartFolders
from fencepost_conformance.cli import main
from fencepost_conformance.judge.verdict import Verdict
from fencepost_conformance.run.certify.making import Made, run_pytest
from fencepost_conformance.run.certify.making import tests_of as result_of_tests
from fencepost_conformance.run.certify.plan import Planned
from fencepost_conformance.run.commands import certify
from fencepost_conformance.run.mainjob import Finding, Stage

ROOT = Path(__file__).parents[3]
CHECKOUT = PartFolders.of_checkout(ROOT)


def run(monkeypatch: pytest.MonkeyPatch, file: Path, **verdicts: Verdict | None) -> tuple[Any, str, str]:
    """Run ``certify`` with these verdicts in place of the checks, which pass otherwise; a name has ``_`` for ``-``.
    Return the exit status, and both outputs."""

    def make(plan: Sequence[Planned], *_: object, **__: object) -> Iterator[Made]:
        for each in plan:
            verdict = verdicts.get(each.name.replace("-", "_"), Verdict.PASSED)
            passed = verdict is Verdict.PASSED
            result = {"counts": {"passed": int(passed)}} | ({} if passed else {"error": "planted"})
            yield Made(each, Finding(each.stage, verdict, 1.0, result))

    monkeypatch.setattr(certify, "make", make)
    monkeypatch.setenv("COLUMNS", "300")
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(["certify", str(file), "--seed", "5"])
    return left.value.code, " ".join(out.getvalue().split()), err.getvalue()


def test_a_certificate_of_passed_checks_holds_for_this_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "certificate.json"
    assert run(monkeypatch, file)[0] == 0
    found = examine(CHECKOUT, file)
    assert (found.status, found.refused, found.certificate.size) == (0, (), "small")
    kafka = next(each for each in found.certificate.checks if each.name == "core-kafka-4.4.0")
    assert (kafka.seed, kafka.versions["kafka"]) == (5, "4.4.0")
    assert kafka.command == "fencepost conform --target kafka:4.4.0 --protocol all --traces 20 --seed 5"


def test_after_a_failed_check_there_is_no_certificate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    run(monkeypatch, file)
    status, out, _ = run(monkeypatch, file, mutants=Verdict.FAILED)
    assert (status, file.exists()) == (1, False), "the older one is gone too"
    assert "mutants: failed: planted (fencepost mutants --quick" in out
    assert "no certificate was written" in out


def test_an_undecided_check_writes_none_and_keeps_an_older_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    status, _, err = run(monkeypatch, file, core_model=Verdict.UNDECIDED)
    assert (status, file.exists()) == (2, False)
    assert "1 of 10 checks undecided (first: core-model: incomplete: planted" in err
    run(monkeypatch, file)
    run(monkeypatch, file, core_model=Verdict.UNDECIDED)
    assert file.exists()


@pytest.mark.parametrize(("verdict", "why"), [(None, "needs a JDK 17 or later"), (Verdict.BROKEN, "planted")])
def test_a_check_that_cannot_run_is_a_missing_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verdict: Verdict | None, why: str
) -> None:
    file = tmp_path / "certificate.json"
    status, _, err = run(monkeypatch, file, specification_model=verdict)
    assert (status, "missing link" in err) == (2, True)
    (missing,) = json.loads(file.read_text())["predicate"]["missing"]
    assert (missing["name"], missing["why"].startswith(why)) == ("specification-model", True)
    assert examine(CHECKOUT, file).status == 2


def test_tests_of_a_certificate_run_and_count_what_they_record(tmp_path: Path) -> None:
    """Under the settings of this project, in which each warning of pytest is an error."""
    file = tmp_path / "test_some.py"
    file.write_text("def test_it(record_property):\n    record_property('kills', 7)\n")
    found = run_pytest(Stage("some", (str(file), "-c", str(ROOT / "pyproject.toml"))), tmp_path)
    assert (found.verdict, found.result["counts"]["kills"]) == (Verdict.PASSED, 7), found.result
    file.write_text("def test_it():\n    assert 1 == 2\n")
    found = run_pytest(Stage("some", (str(file),)), tmp_path)
    assert (found.verdict, found.result["error"]) == (Verdict.FAILED, "test_it: assert 1 == 2")
    assert run_pytest(Stage("some", (str(tmp_path / "none.py"),)), tmp_path).verdict is Verdict.UNDECIDED


def test_the_counts_of_tests_have_their_properties() -> None:
    passed = "<testcase name='a'><properties><property name='kills' value='7'/></properties></testcase>"
    failed = "<testcase name='b'><failure message='assert 1 == 2&#10;more'/></testcase>"
    skipped = "<testcase name='c'><skipped/></testcase>"
    found = result_of_tests(ET.fromstring(f"<testsuites>{passed * 2}</testsuites>"))
    assert (found["verdict"], found["counts"]["passed"], found["counts"]["kills"]) == ("passed", 2, 14)
    assert result_of_tests(ET.fromstring(f"<testsuites>{passed}{failed}</testsuites>"))["error"] == "b: assert 1 == 2"
    assert result_of_tests(ET.fromstring(f"<testsuites>{passed}{skipped}</testsuites>"))["verdict"] == "incomplete"
    assert result_of_tests(ET.fromstring("<testsuites/>"))["verdict"] == "incomplete"
