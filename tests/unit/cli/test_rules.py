"""``fencepost rules`` shows the text and the places of a rule, in a checkout and with the package alone; other output
that names a rule includes its text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.checker.verdict import Refusal, Verdict
from fencepost_conformance.judge.rulebook.texts import brief, chosen, rule_book, rule_lines
from fencepost_conformance.run.commands import validate
from fencepost_conformance.show.report.details import panel
from fencepost_conformance.show.report.steps import Kind, StepWords

ROOT = Path(__file__).parents[3]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["rules", *words])
    assert ended.value.code == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("word", ["C-JOIN-43", "c-join-43", "C-Join-43"])
def test_a_rule_is_shown_with_its_text_and_its_places(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, word)
    assert "docs/rules/02-classic.md" in shown
    assert "the phase ends after the first quiet window of length D" in shown
    assert "specified: spec/ClassicCoordinator.tla:" in shown
    assert "modelled: model/fencepost_model/classic/" in shown
    assert "implemented: impl/fencepost/coordinator/classic/rebalance.py:" in shown
    assert "tested: tests/" in shown
    assert "compared with Kafka: decided in" in shown
    assert "seen on the wire:" in shown


def as_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main(["rules", *words, "--json"])
    assert ended.value.code == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_json_counts_decided_and_only_run_rules_also_of_each_family(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys)
    levels = ("decided", "ran", "none")
    assert set(found["meanings"]) == set(levels)
    assert sum(found["counts"][level] for level in levels) == found["counts"]["in_scope"]
    for level in levels:
        in_scope = [rule for rule in found["rules"] if rule["level"] == level and rule["out_of_scope"] is None]
        assert len(in_scope) == found["counts"][level]
        assert sum(family[level] for family in found["families"].values()) == found["counts"][level]


def test_only_rules_of_one_level_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    ran = as_json(capsys, "--only", "ran")
    assert len(ran["rules"]) == ran["counts"]["ran"] > 0
    assert all(rule["level"] == "ran" and rule["decided"] == 0 < rule["ran"] for rule in ran["rules"])
    first = ran["rules"][0]["id"]
    shown = said(capsys, "--only", "ran")
    assert first in shown
    assert "C-JOIN-43" not in shown
    assert "a function that cites it ran in" in said(capsys, first)


def test_a_rule_that_cannot_occur_says_so_and_counts_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert "compared with Kafka: no; cannot occur: an Empty group has no members" in said(capsys, "C-JOIN-56")
    (rule,) = as_json(capsys, "C-JOIN-56")["rules"]
    assert (rule["level"], rule["decided"], rule["ran"], rule["wire"]) == ("none", 0, 0, 0)


@pytest.mark.parametrize(
    ("word", "first", "many"),
    [
        ("c-join-40..43", "C-JOIN-40", 4),
        ("M-REC-04…06", "M-REC-04", 3),
        ("C-HB-11/12", "C-HB-11", 2),
        ("c-join-38", "C-JOIN-38a", 8),
        ("c-sync-20B", "C-SYNC-20b", 1),
        ("c-hb", "C-HB-01", 14),
    ],
)
def test_ranges_and_beginnings_of_either_case(word: str, first: str, many: int) -> None:
    found = chosen(word)
    assert (found[0].id, len(found)) == (first, many)


@pytest.mark.parametrize(
    ("word", "like"), [("C-JOIN-430", "C-JOIN-43"), ("c-jion-43", "C-JOIN-43"), ("zzz", "prefixes")]
)
def test_an_unknown_id_suggests_similar_ids(word: str, like: str) -> None:
    with pytest.raises(CannotRun, match=like):
        chosen(word)


def test_a_text_is_one_line_without_marks_of_type() -> None:
    assert all("**" not in rule.plain and "\n" not in rule.plain for rule in rule_book().values())
    assert rule_book()["C-ST-10"].plain.startswith("Empty → Preparing — a member is added (C-JOIN-40).")
    assert brief("C-JOIN-43").endswith(" …")
    assert brief("no rule") == ""


def test_a_refusal_and_a_page_bring_the_text_of_the_rules_they_name() -> None:
    assert rule_lines(["C-ST-04", "C-NONE-01"]) == [f"C-ST-04: {brief('C-ST-04')}", "C-NONE-01"]
    refusal = Refusal("g", 3, 5, "seen", ("allowed",), ("C-ST-04",))
    listing = validate.table([Verdict("a.jsonl", "t", "refused", refusals=(refusal,))])
    assert listing is not None
    assert brief("C-ST-04") in listing.rows[0][-1]
    step = StepWords(0, 0, Kind.REQUEST, "", "", "what", "what", rules=("C-ST-04",))
    assert f'<summary title="{brief("C-ST-04")}">C-ST-04</summary>' in panel(step)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel of the project, unpacked outside any checkout."""
    try:
        recent = int(version("setuptools").partition(".")[0]) >= 77
        version("wheel")
    except PackageNotFoundError:
        recent = False
    if not recent:
        pytest.skip("building a wheel offline needs setuptools 77 and wheel: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    for part in ("impl", "model", "conformance", "docs/rules", "backend"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for file in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, copy)
    words = (
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(copy),
    )
    built = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    shutil.rmtree(copy)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "installed")
    shutil.copy(wheel, folder / "installed")
    return folder / "installed"


def test_a_fresh_environment_with_the_wheel_has_the_exports_and_the_rules(installed: Path, tmp_path: Path) -> None:
    (wheel,) = installed.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    python = str(tmp_path / "venv" / "bin" / "python")
    words = ["--python", python, "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, timeout=120)
    program = (
        "import fencepost as f; state, out = f.step(f.initial_state(f.Settings(), f.INTENDED),"
        " f.Load(0, leader_epoch=1, records=()), f.RandomChoices()); [getattr(f, name) for name in dir(f)];"
        " print(f.__file__, len(f.rules), f.rules['C-JOIN-43'].section, sep='\\n')"
    )
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [python, "-c", program], cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=60, check=True
    )
    place, count, section = ran.stdout.splitlines()
    assert Path(place).is_relative_to(tmp_path)
    assert (int(count), section) == (len(rule_book()), rule_book()["C-JOIN-43"].section)


def test_a_wheel_holds_the_rule_book_and_the_licence(installed: Path) -> None:
    packed = installed / "fencepost" / "rulebook" / "text"
    assert {path.name for path in packed.iterdir()} == {path.name for path in (ROOT / "docs" / "rules").glob("*.md")}
    (about,) = installed.glob("*.dist-info")
    assert "License-Expression: Apache-2.0" in (about / "METADATA").read_text(encoding="utf-8")
    assert (about / "licenses" / "LICENSE").is_file()


def test_a_wheel_holds_the_files_of_every_page(installed: Path) -> None:
    """Style, scripts and pages, such as those of ``fencepost lab``."""
    files = [
        path.relative_to(root)
        for root in (ROOT / "impl", ROOT / "conformance")
        for path in root.glob("fencepost*/**/static/*")
    ]
    assert {"lab.html", "lab.js", "lab.css", "page.js", "page.css", "picture.css"} <= {path.name for path in files}
    assert [str(path) for path in files if not (installed / path).is_file()] == []


@pytest.mark.parametrize("words", [("c-join-43",), ()])
def test_without_a_checkout_rules_shows_the_texts_and_says_what_needs_one(
    words: tuple[str, ...], installed: Path, tmp_path: Path
) -> None:
    program = "from fencepost_conformance.cli import main; main()"

    def run(*more: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-c", program, "rules", *words, *more],
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(installed)}, capture_output=True, text=True, timeout=60,
            check=True,
        )  # fmt: skip
        return ran.stdout

    shown = " ".join(run().split())
    assert "run this in a checkout" in shown
    if words:
        assert "the phase ends after the first quiet window of length D" in shown
    found = json.loads(run("--json"))
    assert {rule["id"]: rule["text"] for rule in found["rules"]}["C-JOIN-43"] == rule_book()["C-JOIN-43"].plain
