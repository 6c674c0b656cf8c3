"""The commands, programs and links of the README work as shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from textwrap import indent

import pytest
import typer

from fencepost_conformance.cli import COMMANDS

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EMBEDDING = PROGRAM.findall((ROOT / "docs" / "embedding.md").read_text(encoding="utf-8"))


def run(program: str, folder: Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_the_program_shows_two_members_join_and_one_leave(tmp_path: Path) -> None:
    (program,) = PROGRAM.findall(README)
    assert program.count("\n") < 60
    lines = run(program, tmp_path).splitlines()
    assert len(lines) == 11
    for number, what in (
        (1, "MEMBER_ID_REQUIRED"), (3, "generation_id=1"), (4, "generation_id=1"), (5, "b'0 1 2'"), (6, "b'3 4 5'"),
        (7, "ErrorCode.NONE"), (8, "LeaveGroupResponse(error_code=<ErrorCode.NONE"), (9, "REBALANCE_IN_PROGRESS"),
    ):  # fmt: skip
        (answer,) = (line for line in lines if f"answer to {number}: " in line)
        assert what in answer
    assert [line.split()[3] for line in lines if "record" in line.split()[2]] == ["1:", "2:"]


def test_the_program_has_types(tmp_path: Path) -> None:
    """The package is typed, so a copied program must pass mypy --strict."""
    pytest.importorskip("mypy", reason="needs mypy: pip install -e '.[dev]'")
    (program,) = PROGRAM.findall(README)
    file = tmp_path / "program.py"
    file.write_text(program, encoding="utf-8")
    cache = ROOT / ".mypy_cache" / "readme"
    paths = os.pathsep.join(str(ROOT / each) for each in ("impl", "model"))
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}", str(file)],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": paths}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "Success: no issues found in 1 source file\n")


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (0, "MEMBER_ID_REQUIRED worker-1-"),
        (1, "2 (TopicPartitions(topic_id=b'orders-topic-id!', partitions=(0, 1, 2, 3, 4, 5)),)"),
        (2, "('first', 'uniform')"),
        (3, "groups=()"),
        (4, "members left: ()"),
        (5, "['run'] ()"),
    ],
)
def test_programs_of_the_embedding_page_run(place: int, shown: str, tmp_path: Path) -> None:
    assert len(EMBEDDING) == 6
    assert shown in run(EMBEDDING[place], tmp_path).splitlines()[-1]


def test_programs_of_the_members_page_run(tmp_path: Path) -> None:
    programs = PROGRAM.findall((ROOT / "docs" / "members.md").read_text(encoding="utf-8"))
    assert len(programs) == 2
    for program in programs:
        assert run(program, tmp_path) == ""


def test_the_program_of_the_stores_page_runs(tmp_path: Path) -> None:
    (program,) = PROGRAM.findall((ROOT / "docs" / "store.md").read_text(encoding="utf-8"))
    assert run(program, tmp_path) == "()\n"


def test_the_program_of_the_consumer_page_runs(tmp_path: Path) -> None:
    (program,) = PROGRAM.findall((ROOT / "docs" / "consumer.md").read_text(encoding="utf-8"))
    assert run(program, tmp_path) == "[b'first', b'second'] 2\n"


def test_the_program_of_the_log_page_runs(tmp_path: Path) -> None:
    (program,) = PROGRAM.findall((ROOT / "docs" / "log.md").read_text(encoding="utf-8"))
    assert run(program, tmp_path) == "2500 records were written, 501 are left\n"


def test_the_program_of_the_codec_page_runs(tmp_path: Path) -> None:
    *_, program = PROGRAM.findall((ROOT / "docs" / "codec.md").read_text(encoding="utf-8"))
    assert run(program, tmp_path) == "5 2\n"


def test_the_page_on_hosting_shows_parts_of_its_example() -> None:
    parts = PROGRAM.findall((ROOT / "docs" / "hosting.md").read_text(encoding="utf-8"))
    example = (ROOT / "examples" / "host.py").read_text(encoding="utf-8")
    assert len(parts) == 5
    for part in parts:
        assert indent(part.replace("\n\n\n", "\n\n"), "    ") in example


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_the_examples_run(example: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / example)], capture_output=True, text=True, timeout=150, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "works on" in ran.stdout
    if example == "workers.py":
        assert "worker A is killed" in ran.stdout
        assert "240 jobs are done" in ran.stdout
    if example == "host.py":
        assert "no longer leads partition 1: leader epoch 1 is no longer the newest" in ran.stdout
        assert "a commit to broker 1: {'NOT_COORDINATOR'}" in ran.stdout
        assert "no acknowledged offset is lost: 12 offsets" in ran.stdout


def test_the_commands_of_the_readme_exist() -> None:
    named = re.findall(r"`(?:\.venv/bin/)?fencepost ([a-z]+)", README)
    assert named
    assert set(named) <= set(COMMANDS)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"\bmake ((?:run|test|install)[a-z-]*)", README)) <= set(targets)


SHOWN = re.findall(r"`(?:\.venv/bin/)?fencepost ([a-z]+)((?: [^`\n]*)?)`", README)


@pytest.mark.parametrize(("name", "rest"), sorted({(name, rest.strip()) for name, rest in SHOWN}))
def test_a_command_is_shown_with_the_arguments_that_it_needs(name: str, rest: str) -> None:
    """A line that is copied from the table must not fail with a missing argument."""
    app = typer.Typer(add_completion=False)
    function = {"import": "import_capture"}.get(name, name)  # a word of Python names no module
    app.command(name)(getattr(import_module(f"fencepost_conformance.run.commands.{function}"), function))
    command = typer.main.get_command(app)
    with command.make_context(name, shlex.split(rest), resilient_parsing=True) as context:
        missing = [each.name for each in command.params if each.required and context.params[each.name] in (None, ())]
    assert missing == []


def test_the_links_of_the_readme_exist() -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README):
        assert (ROOT / link).exists(), link


def test_where_the_command_is_and_that_a_broker_can_be_tested() -> None:
    assert ".venv/bin/fencepost" in README
    assert "--target HOST:PORT" in README


def test_the_licence_is_there_and_named() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
