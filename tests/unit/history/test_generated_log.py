"""The tool that writes large logs writes groups of both protocols that break no rule, and the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_conformance.show.history.words import notices as about
from fencepost_conformance.traces.offsets_log.rows import Notices
from fencepost_conformance.traces.offsets_log.source import rows_from
from tools import offsets_log


def test_generated_log_breaks_no_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets_log, "_CHANGES", 300)  # many, so that partitions move
    size = offsets_log.generate(tmp_path / "log", 4_000, 12, 3)
    notices = Notices()
    history = history_of(rows_from(tmp_path / "log", notices))
    assert notices.lines() == about(history) == []
    assert 4_000 <= history.records < 4_400
    assert len(history.groups) == 12
    assert {each.protocol for each in history.groups} == {"classic", "consumer"}
    assert {each.breaches for each in history.groups} == {0}
    assert {each.state for each in history.groups} == {"Stable"}
    assert all(each.commits and each.members and each.owners for each in history.groups)
    assert sum(each.rebalances for each in history.groups) > 100
    files = sorted((tmp_path / "log").glob("*/*.log"))
    assert sum(each.stat().st_size for each in files) == size
    offsets_log.generate(tmp_path / "again", 4_000, 12, 3)
    assert [each.read_bytes() for each in sorted((tmp_path / "again").glob("*/*.log"))] == [
        each.read_bytes() for each in files
    ]


def test_segments_end_at_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets_log, "SEGMENT_BYTES", 100)
    assert offsets_log.write(tmp_path / "log", [(base, b"x" * 40) for base in (0, 7, 9, 30, 31)]) == 200
    assert [each.name for each in sorted((tmp_path / "log").iterdir())] == [f"{base:020}.log" for base in (0, 9, 31)]
