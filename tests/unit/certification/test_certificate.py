"""A certificate holds for exactly the files that were checked: each other file, and each edit of it, is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fencepost
from fencepost.certification import Certificate, Check, Finding, MissingLink, NoCertificate, Subject, examine
from fencepost.certification.building import reason_to_leave_out
from fencepost.certification.checking import differences, report
from fencepost.certification.files import SIGNATURE, PartFolders
from fencepost.certification.signature import CannotSign, sign
from fencepost.certification.statement import (
    CLAIMS,
    PREDICATE,
    RELEASES,
    STATEMENT,
    BadCertificate,
    as_statement,
    as_text,
    read_text,
)
from fencepost_conformance.run.certify.plan import SIZES, planned
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.replacement import replaced
from fencepost_conformance.targets.jvm.releases import RELEASES as COMPARED

ROOT = Path(__file__).parents[3]
CHECKOUT = PartFolders.of_checkout(ROOT)


def made(digests: dict[str, str]) -> Certificate:
    """Return a certificate in which every check has passed."""
    return Certificate(
        version="1",
        size="small",
        made_at="2026-11-26T12:00:00+00:00",
        commit=None,
        suite="",
        subjects=tuple(Subject(name=name, sha256=sha256) for name, sha256 in digests.items()),
        checks=tuple(
            Check(name=name, claim=claim, command="fencepost check", verdict="passed", counts={"passed": 3})
            for name, claim in CLAIMS.items()
        ),
    ).sealed()


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the files as a wheel installs them, with their certificate."""
    site = tmp_path_factory.mktemp("site")
    layout, caches = PartFolders.of_wheel(site), shutil.ignore_patterns("__pycache__", "certificate.json*")
    shutil.copytree(CHECKOUT.core, layout.core, ignore=caches)
    shutil.copytree(CHECKOUT.model, layout.model, ignore=caches)
    shutil.copytree(CHECKOUT.specification, layout.specification)
    shutil.copytree(CHECKOUT.rules, layout.rules)
    layout.certificate.write_text(as_text(made(CHECKOUT.digests())), encoding="utf-8")
    return site


@pytest.fixture
def site(master: Path, tmp_path: Path) -> PartFolders:
    """Return a copy for one test, whose files are links until ``change`` replaces them."""
    shutil.copytree(master, tmp_path / "site", copy_function=os.link)
    return PartFolders.of_wheel(tmp_path / "site")


def change(path: Path, edit: Callable[[bytes], bytes]) -> None:
    data = edit(path.read_bytes())
    path.unlink()  # the file of the other copies stays
    path.write_bytes(data)


def edited(layout: PartFolders, edit: Callable[[Certificate], Certificate]) -> Finding:
    """Return what is found when the certificate was edited, and its seal not."""
    change(layout.certificate, lambda data: as_text(edit(read_text(data))).encode())
    return examine(layout)


def test_the_same_files_pass_in_a_checkout_and_in_a_wheel(site: PartFolders) -> None:
    assert site.digests() == CHECKOUT.digests()
    found = examine(site)
    assert (found.verdict, found.status, found.refused) == ("passed", 0, ())
    assert examine(CHECKOUT, site.certificate).status == 0
    assert {name.partition("/")[0] for name in site.digests()} == {
        "fencepost", "fencepost_model", "rules", "specification",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "coordinator/dispatch.py",
        "protocol/settings.py",
        "log/partition.py",
        "certification/checking.py",
        "__init__.pyi",
    ],
)
def test_a_changed_byte_is_refused(site: PartFolders, name: str) -> None:
    change(site.core / name, lambda data: data[:-2] + b" \n")
    assert examine(site).refused == (f"fencepost/{name}: changed since it was certified",)


def test_a_change_of_any_file_is_one_line() -> None:
    certified = CHECKOUT.digests()
    for name in certified:
        assert [*differences(certified, {**certified, name: "other"})] == [f"{name}: changed since it was certified"]
        assert [*differences(certified, {each: certified[each] for each in certified if each != name})] == [
            f"{name}: not installed"
        ]


def test_model_specification_and_rules_are_certified_too(site: PartFolders) -> None:
    for path in (site.model / "table.py", site.specification / "ClassicGroup.tla", next(site.rules.iterdir())):
        change(path, lambda data: data + b"\n")
    assert len(examine(site).refused) == 3


OF_CORE = sorted(name for name, each in MUTANTS.items() if not each.replacements[0].file.startswith("fencepost_"))


@pytest.mark.parametrize("name", OF_CORE[::40])
def test_a_mutant_is_refused(site: PartFolders, name: str) -> None:
    faulty = replaced(MUTANTS[name].replacements)
    for file in faulty:
        change(site.core / file, lambda _, file=file: faulty[file].encode())  # type: ignore[misc]
    assert examine(site).refused == tuple(f"fencepost/{file}: changed since it was certified" for file in faulty)


def test_an_added_file_is_refused(site: PartFolders) -> None:
    """Python prefers an extension module to the source file beside it."""
    (site.core / "coordinator" / "dispatch.cpython-311-x86_64-linux-gnu.so").write_bytes(b"")
    assert examine(site).refused == (
        "fencepost/coordinator/dispatch.cpython-311-x86_64-linux-gnu.so: not in the certificate",
    )


def test_compiled_bytecode_is_ignored(site: PartFolders) -> None:
    (site.core / "__pycache__").mkdir()
    (site.core / "__pycache__" / "errors.cpython-311.pyc").write_bytes(b"")
    assert examine(site).status == 0


@pytest.mark.parametrize("name", CLAIMS)
def test_a_missing_check_is_refused(site: PartFolders, name: str) -> None:
    """Also if the seal was made again."""
    found = edited(
        site, lambda one: replace(one, checks=tuple(each for each in one.checks if each.name != name)).sealed()
    )
    assert (found.status, found.refused) == (1, (f"check {name} is not in the certificate",))


@pytest.mark.parametrize("verdict", ["failed", "incomplete", "undecided", ""])
def test_a_check_that_did_not_pass_is_refused(site: PartFolders, verdict: str) -> None:
    def fail(one: Certificate) -> Certificate:
        return replace(one, checks=(*one.checks[:-1], replace(one.checks[-1], verdict=verdict))).sealed()

    assert edited(site, fail).refused == (f"check store-kills: {verdict}",)


def test_a_check_that_decided_nothing_is_refused(site: PartFolders) -> None:
    def empty(one: Certificate) -> Certificate:
        return replace(one, checks=(replace(one.checks[0], counts={"passed": 0}), *one.checks[1:])).sealed()

    assert edited(site, empty).refused == ("check specification-model decided nothing",)


def test_a_missing_link_is_reported_and_leaves_the_result_incomplete(site: PartFolders) -> None:
    def lack(one: Certificate) -> Certificate:
        last = one.checks[-1]
        missing = (MissingLink(name=last.name, claim=last.claim, why="no disk"),)
        return replace(one, checks=one.checks[:-1], missing=missing).sealed()

    found = edited(site, lack)
    assert (found.verdict, found.status, found.refused) == ("incomplete", 2, ())
    assert found.missing == ("store-kills: no disk",)


EDITS: dict[str, Callable[[Certificate], Certificate]] = {
    "a count": lambda one: replace(one, checks=(replace(one.checks[0], counts={"passed": 9}), *one.checks[1:])),
    "a seed": lambda one: replace(one, checks=(replace(one.checks[0], seed=9), *one.checks[1:])),
    "a command": lambda one: replace(one, checks=(replace(one.checks[0], command="true"), *one.checks[1:])),
    "the size": lambda one: replace(one, size="full"),
    "the date": lambda one: replace(one, made_at="2030-01-01T00:00:00+00:00"),
    "the commit": lambda one: replace(one, commit="a" * 40),
    "the versions": lambda one: replace(one, versions={"python": "4"}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_certificate_is_refused(site: PartFolders, edit: str) -> None:
    assert edited(site, EDITS[edit]).refused == ("the certificate was changed after it was made",)


def test_a_subject_that_is_edited_to_fit_a_changed_file_is_refused(site: PartFolders) -> None:
    change(site.core / "errors.py", lambda data: data + b"\n")
    found = edited(site, lambda one: replace(one, subjects=made(site.digests()).subjects))
    assert found.refused == ("the certificate was changed after it was made",)


def broken(edit: Callable[[dict[str, Any]], object]) -> str:
    statement = as_statement(made({"fencepost/a.py": "1"}))
    edit(statement)
    return json.dumps(statement)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON"),
        ("[]", "it is not an in-toto statement"),
        (broken(lambda one: one.update(_type="x")), "it is not an in-toto statement"),
        (broken(lambda one: one.update(predicateType="urn:other:2")), "its predicate type is urn:other:2"),
        (broken(lambda one: one["predicate"].pop("seal")), "it has no seal"),
        (broken(lambda one: one["predicate"].pop("checks")), "a field is missing or unknown: 'checks'"),
        (broken(lambda one: one["predicate"].update(more=1)), "a field is missing or unknown"),
        (broken(lambda one: one["predicate"]["not_covered"].clear()), "its list of links that are not covered"),
        (broken(lambda one: one["predicate"]["checks"][0].update(more=1)), "a field is missing or unknown"),
        (broken(lambda one: one["predicate"]["checks"][0].update(counts=3)), "a field has another type"),
        (broken(lambda one: one["subject"][0].pop("digest")), "a field is missing or unknown: 'digest'"),
    ],
)
def test_a_file_that_is_not_a_certificate_gets_one_line(text: str, reason: str) -> None:
    with pytest.raises(BadCertificate) as raised:
        read_text(text)
    assert str(raised.value).startswith(reason)


def test_the_statement_is_one_of_in_toto() -> None:
    statement = as_statement(made({"fencepost/a.py": "1f"}))
    assert (statement["_type"], statement["predicateType"]) == (STATEMENT, PREDICATE)
    assert statement["subject"] == [{"name": "fencepost/a.py", "digest": {"sha256": "1f"}}]
    assert {each["name"] for each in statement["predicate"]["checks"]} == {*CLAIMS}
    assert read_text(json.dumps(statement)) == made({"fencepost/a.py": "1f"})


def test_each_claim_has_a_check_and_each_release_is_compared() -> None:
    assert RELEASES == COMPARED
    for size in SIZES.values():
        assert [each.name for each in planned(size, 1)] == [*CLAIMS]


# --- signatures ------------------------------------------------------------------------------------------------------

NEEDS_SSH = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen (openssh-client)")


def key(folder: Path, name: str) -> Path:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
    subprocess.run(words, check=True, timeout=60)
    return folder / name


@NEEDS_SSH
def test_only_the_signature_of_the_key_for_these_bytes_is_accepted(site: PartFolders, tmp_path: Path) -> None:
    mine, other = key(tmp_path, "mine"), key(tmp_path, "other")
    public, foreign = mine.with_suffix(".pub"), other.with_suffix(".pub")
    assert examine(site, key=public).refused == ("the certificate is not signed",)
    sign(site.certificate, mine)
    assert examine(site, key=public).status == 0
    assert examine(site).signature == "signed; --key KEY.pub verifies the signature"
    refusal = f"the signature is not one of {foreign} for this certificate"
    assert examine(site, key=foreign).refused == (refusal,)
    change(site.certificate, lambda data: as_text(replace(read_text(data), size="full").sealed()).encode())
    assert examine(site).status == 0, "only a signature shows an edit whose author renewed the seal"
    assert examine(site, key=public).refused == (f"the signature is not one of {public} for this certificate",)
    sign(site.certificate, other)
    assert examine(site, key=public).status == 1


@NEEDS_SSH
def test_a_signature_for_another_purpose_is_refused(site: PartFolders, tmp_path: Path) -> None:
    mine = key(tmp_path, "mine")
    words = ["ssh-keygen", "-Y", "sign", "-q", "-f", str(mine), "-n", "git", str(site.certificate)]
    subprocess.run(words, check=True, timeout=60)
    assert examine(site, key=mine.with_suffix(".pub")).status == 1


@NEEDS_SSH
def test_a_file_that_is_not_a_key_gets_one_line(site: PartFolders, tmp_path: Path) -> None:
    mine = key(tmp_path, "mine")
    with pytest.raises(CannotSign, match="is not a public SSH key"):
        examine(site, key=mine)
    with pytest.raises(CannotSign, match=r"cannot read the public key .*: No such file"):
        examine(site, key=tmp_path / "none.pub")
    (tmp_path / "text").write_text("no key")
    with pytest.raises(CannotSign, match="ssh-keygen cannot sign with"):
        sign(site.certificate, tmp_path / "text")


# --- where only the library is ---------------------------------------------------------------------------------------


def run(site: PartFolders, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python on the copy, without any other package."""
    command = [sys.executable, "-S", "-B", *words]
    path = {"PYTHONPATH": str(site.core.parent), "PATH": os.environ["PATH"]}
    return subprocess.run(
        command, cwd=site.core.parents[1], env=path, capture_output=True, text=True, check=False, timeout=60
    )


def test_with_the_library_alone_it_is_checked(site: PartFolders) -> None:
    ran = run(site, "-m", "fencepost.certification")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1].startswith("certify --check: passed (")
    assert "not covered: real brokers and clients" in ran.stdout
    change(site.core / "errors.py", lambda data: data + b"\n")
    ran = run(site, "-m", "fencepost.certification")
    first, last = ran.stdout.splitlines()
    assert (ran.returncode, first) == (1, "refused: fencepost/errors.py: changed since it was certified")
    assert last.startswith("certify --check: failed (")
    ran = run(site, "-m", "fencepost.certification", "--json")
    report = json.loads(ran.stdout)
    assert (report["verdict"], report["passed"], report["status"], ran.returncode) == ("failed", False, 1, 1)
    assert report["refused"] == ["fencepost/errors.py: changed since it was certified"]


def test_with_the_library_alone_it_is_an_object(site: PartFolders) -> None:
    ran = run(site, "-c", "import fencepost; one = fencepost.certificate(); print(one.size, len(one.checks))")
    assert (ran.stdout, ran.stderr) == (f"small {len(CLAIMS)}\n", "")
    site.certificate.unlink()
    ran = run(site, "-c", "import fencepost; fencepost.certificate()")
    assert ran.stderr.splitlines()[-1].endswith("has no certificate; in a checkout, 'fencepost certify' makes one")
    ran = run(site, "-m", "fencepost.certification")
    (line,) = ran.stderr.splitlines()
    assert (ran.returncode, line.startswith("fencepost certify --check: there is no certificate at ")) == (2, True)


def test_without_a_certificate_the_error_says_what_makes_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(PartFolders, "installed", classmethod(lambda cls: cls.of_wheel(tmp_path)))
    with pytest.raises(NoCertificate, match="'fencepost certify' makes one"):
        fencepost.certificate()


def test_many_differences_are_summed_up(site: PartFolders, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(site.rules)
    shutil.rmtree(site.specification)
    with pytest.raises(SystemExit):
        report(site, None, None, as_json=False)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 22
    assert shown[-2].startswith("refused: and ")


# --- the wheel -------------------------------------------------------------------------------------------------------


def test_a_wheel_carries_a_current_certificate_only(site: PartFolders, tmp_path: Path) -> None:
    kept = tmp_path / "certificate.json"

    def reason(*, compiled: bool = False, release: bool = False) -> str | None:
        return reason_to_leave_out(kept, site, compiled=compiled, release=release)

    assert reason() == "there is none; 'fencepost certify' makes one"
    kept.write_text("{")
    assert str(reason()).startswith("certificate.json is not a certificate: it is not JSON")
    current = made(site.digests())
    kept.write_text(as_text(current))
    assert reason() is None
    assert reason(compiled=True) == "the compiled modules are not the files that were checked"
    last = current.checks[-1]
    lacking = replace(
        current, checks=current.checks[:-1], missing=(MissingLink(name=last.name, claim=last.claim, why="no disk"),)
    )
    kept.write_text(as_text(lacking.sealed()))
    assert reason() is None
    assert reason(release=True) == "missing: store-kills: no disk; 'fencepost certify' makes one"
    change(site.core / "errors.py", lambda data: data + b"\n")
    assert str(reason()).startswith("fencepost/errors.py: changed since it was certified; ")


@pytest.mark.all
@pytest.mark.slow
def test_a_fresh_environment_checks_what_the_wheel_carries(tmp_path: Path) -> None:
    """Build the wheel of a copy with its certificate, install it with nothing else, and check it there."""
    copy = tmp_path / "copy"
    parts = ("backend", "impl", "model", "conformance", "spec", "docs/rules")
    for part in parts:
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / file, copy)
    layout = PartFolders.of_checkout(copy)
    (layout.core / SIGNATURE).unlink(missing_ok=True)
    layout.certificate.write_text(as_text(made(layout.digests())))
    environment = {**os.environ, "FENCEPOST_RELEASE": "1"}

    def called(*words: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
        )

    build = (sys.executable, "-c", "import sys; sys.path.insert(0, 'backend'); import fencepost_build as b; "
             "print(b.build_wheel(sys.argv[1]))", str(tmp_path))  # fmt: skip
    built = called(*build, folder=copy)
    wheel = tmp_path / built.stdout.splitlines()[-1]
    environment.pop("PYTHONPATH", None)
    assert called(sys.executable, "-m", "venv", str(tmp_path / "fresh")).returncode == 0
    programs = tmp_path / "fresh" / "bin"
    assert called(str(programs / "pip"), "install", "--no-index", str(wheel)).returncode == 0
    for words in (("fencepost", "certify", "--check"), ("python", "-m", "fencepost.certification")):
        ran = called(str(programs / words[0]), *words[1:])
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.splitlines()[-1].startswith("certify --check: passed (")
    (package,) = tmp_path.glob("fresh/lib/python*/site-packages/fencepost")
    (package / "errors.py").write_text("")
    ran = called(str(programs / "fencepost"), "certify", "--check")
    assert (ran.returncode, ran.stdout.splitlines()[0]) == (
        1, "refused: fencepost/errors.py: changed since it was certified",
    )  # fmt: skip
    (layout.core / "errors.py").write_text("")
    refused = called(*build, folder=copy)
    assert refused.returncode != 0
    assert "FENCEPOST_RELEASE is set, and the wheel would have no certificate: fencepost/errors.py" in refused.stderr
