"""Brokers that ``conform`` starts by their names."""

from __future__ import annotations

import json

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.run.bench.golang import go_command

pytestmark = pytest.mark.slow


def endings_of(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, dict[str, str]]:
    """Return the exit status, and how each case ended."""
    with pytest.raises(SystemExit) as left:
        main(["conform", *words, "--json"])
    return left.value.code, {each["case"]: each["ending"] for each in json.loads(capsys.readouterr().out)["cases"]}


def test_serve_is_started_with_the_given_settings(capsys: pytest.CaptureFixture[str]) -> None:
    """``offset.metadata.max.bytes`` decides ``offsets.commit.4``, whose text of 20,000 characters is then allowed."""
    assert endings_of(capsys, "serve", "--case", "offsets.commit.4") == (0, {"offsets.commit.4": "passed"})
    words = ("serve", "--case", "offsets.commit.4", "--setting", "offset.metadata.max.bytes=30000")
    assert endings_of(capsys, *words) == (1, {"offsets.commit.4": "failed"})


def test_kfake_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        go_command()
    except CannotRun:
        pytest.skip("needs Go")
    status, endings = endings_of(capsys, "kfake", "--case", "classic.heartbeat.1", "--case", "classic.heartbeat.6")
    assert (status, endings) == (1, {"classic.heartbeat.1": "passed", "classic.heartbeat.6": "failed"})
