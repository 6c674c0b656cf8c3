"""Shells complete commands and options. A shell asks through environment variables, and so does this test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost_conformance.cli import COMMANDS

PROGRAM = "from fencepost_conformance.cli import main; main()"


def test_completion_is_installed_for_the_named_shell(tmp_path: Path) -> None:
    output = run("--install-completion", "bash", HOME=str(tmp_path))
    assert "bash completion installed in" in output
    assert "fencepost" in (tmp_path / ".bashrc").read_text(encoding="utf-8")


def run(*words: str, **variables: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in ran.stderr
    return ran.stdout


def asked(shell: str, line: str) -> str:
    """Return the answer to the shell that completes the line."""
    return run(
        _FENCEPOST_COMPLETE=f"complete_{shell}",
        COMP_WORDS=line,
        COMP_CWORD=str(line.count(" ")),
        _TYPER_COMPLETE_ARGS=line,
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_completes_commands_and_options(shell: str) -> None:
    commands = asked(shell, "fencepost ")
    assert all(command in commands for command in COMMANDS)
    assert "conform" in asked(shell, "fencepost con")
    assert "check" not in asked(shell, "fencepost con")
    options = asked(shell, "fencepost check --")
    assert all(option in options for option in ("--engine", "--workers", "--json"))


@pytest.mark.parametrize(
    ("shell", "words"),
    [("bash", "complete -o default -F"), ("zsh", "#compdef fencepost"), ("fish", "complete --command fencepost")],
)
def test_the_script_of_each_shell_is_shown(shell: str, words: str) -> None:
    script = run("--show-completion", shell)
    assert words in script
    assert f"_FENCEPOST_COMPLETE=complete_{shell}" in script
