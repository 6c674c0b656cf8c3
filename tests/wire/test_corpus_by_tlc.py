"""The stored verdicts of TLC about the corpus: they are about these recordings, and the page shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from fencepost_conformance.judge.tla import validate
from fencepost_conformance.judge.tla.validate import Choices, check_by_tlc
from fencepost_model.tlc.run import TlcSlow
from tools.corpus_by_tlc import SLOW, check, digest_of, family_of, read_rows, tables

ROOT: Final = Path(__file__).resolve().parents[2]
ROWS: Final = read_rows(ROOT / "docs/trace-validation.json")
CORPUS: Final = sorted((ROOT / "tests/corpus").glob("*.jsonl.gz"))
PAGE: Final = (ROOT / "docs/trace-validation.md").read_text(encoding="utf-8")


def test_each_recording_has_a_verdict() -> None:
    stored = {row.file: (row.digest, row.family) for row in ROWS}
    assert stored == {path.name: (digest_of(path), family_of(path)) for path in CORPUS}
    assert len(ROWS) == len(CORPUS)


def test_no_recording_is_refused() -> None:
    assert {row.verdict for row in ROWS} == {"passed", "undecided"}
    assert all(row.reason for row in ROWS if row.verdict == "undecided")


def test_the_page_shows_the_stored_verdicts() -> None:
    assert tables(ROWS) in PAGE
    for at in (0, -1):
        other = [*ROWS]
        other[at] = replace(other[at], verdict="failed", reason="a planted refusal")
        assert tables(other) not in PAGE


def test_recordings_outside_the_specification_are_still_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """TLC has no part in this: a recording that needs it gets the verdict of a search that was stopped."""

    def run_tlc(*_: object, **__: object) -> None:
        raise TlcSlow(SLOW, "")

    monkeypatch.setattr(validate, "run_tlc", run_tlc)
    expected = {row.file: row.reason for row in ROWS if row.verdict == "undecided" and not row.reason.startswith(SLOW)}
    reasons = {path.name: check(path, 1.0).reason for path in CORPUS}
    assert {name: reason for name, reason in reasons.items() if reason != SLOW} == expected


def test_a_bound_for_each_search_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def run_tlc(*_: object, seconds: float, **__: object) -> None:
        limits.append(seconds)
        raise TlcSlow(f"{SLOW} after {seconds:g} s", "")

    monkeypatch.setattr(validate, "run_tlc", run_tlc)
    one = next(path for path in CORPUS if path.name.startswith("alone-java"))
    found = [verdict.reason for file in check_by_tlc([one, one], Choices(seconds=7)) for verdict in file]
    assert found == [f"{SLOW} after 7 s"] * 2
    assert limits == [37, 7, 7]
