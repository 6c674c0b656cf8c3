"""What the README shows can be done as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost_conformance.cli import COMMANDS

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_it_has_a_program() -> None:
    assert PROGRAMS
    assert any("step(" in program for program in PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_its_programs_run_as_they_are(program: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "answer to request 1" in ran.stdout
    assert ran.stdout.endswith("members left: ()\n")


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_the_examples_run(example: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / example)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "works on" in ran.stdout


def test_its_commands_exist() -> None:
    named = re.findall(r"`(?:\.venv/bin/)?fencepost ([a-z]+)", README)
    assert named
    assert set(named) <= set(COMMANDS)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"\bmake ((?:run|test|install)[a-z-]*)", README)) <= set(targets)


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README):
        assert (ROOT / link).exists(), link


def test_where_the_command_is_and_that_a_broker_can_be_tested() -> None:
    assert ".venv/bin/fencepost" in README
    assert "--target HOST:PORT" in README


def test_the_licence_is_there_and_named() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
