"""Histories from the executors of Spark are those of one process, of log segments and of dumps, whole or damaged."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fencepost.codec import Codec
from fencepost_conformance.cli import main
from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_conformance.run.cluster import needs
from fencepost_conformance.run.cluster.place import Place
from fencepost_conformance.run.cluster.session import Running, started
from fencepost_conformance.run.history import on_spark
from fencepost_conformance.traces.offsets_log.dump import line_of, pieces
from fencepost_conformance.traces.offsets_log.rows import Notices
from fencepost_conformance.traces.offsets_log.source import rows_from
from tools.offsets_log import generate

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install -e '.[spark]'")

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with started(Place(cores=2), needs.LOGS, light=True) as session:
        yield session


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Segments of 8 partitions; one is cut off, one has a wrong checksum, one is empty."""
    folder = tmp_path_factory.mktemp("history") / "log"
    generate(folder, 3_000, 8, 7)
    files = sorted(folder.glob("*/*.log"))
    assert len(files) == 8
    files[0].write_bytes(files[0].read_bytes()[:-9])
    data = files[1].read_bytes()
    files[1].write_bytes(data[:70] + bytes([data[70] ^ 1]) + data[71:])
    files[2].write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def dump(segments: Path) -> Path:
    """The same records with those of all partitions mixed, and lines that are none."""
    codec = Codec()
    waiting: dict[int, list[str]] = {}
    for row in rows_from(segments, Notices()):
        waiting.setdefault(row.partition, []).append(json.dumps(line_of(row, codec)))
    draw, lines = random.Random(1), [""]
    while waiting:
        number = draw.choice(sorted(waiting))
        lines.append(waiting[number].pop(0))
        if not waiting[number]:
            del waiting[number]
    lines.insert(50, "{")
    lines.insert(700, '{"partition": "x"}')
    path = segments.parent / "dump.jsonl"
    path.write_text("\n".join([lines[1], *lines]) + lines[9][:-5])
    return path


def same(running: Running, path: Path, group: str | None) -> Notices:
    """Compare the engines on a path, and return what could not be read."""
    notices = Notices()
    expected = history_of(rows_from(path, notices), group)
    found, unread = on_spark.in_session(running, path, group, lambda _: None)
    assert found == expected
    assert (unread.counts, [*unread.counts]) == (notices.counts, [*notices.counts])
    assert found.groups
    return notices


@pytest.mark.parametrize("group", [None, "group-00003"])
def test_segments_on_spark(running: Running, segments: Path, group: str | None) -> None:
    assert len(same(running, segments, group).counts) == 2


@pytest.mark.parametrize("group", [None, "group-00003"])
def test_dump_on_spark(running: Running, dump: Path, group: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_spark, "pieces", partial(pieces, most=dump.stat().st_size // 5))
    assert len(same(running, dump, group).counts) == 3


def test_missing_file_of_an_executor_is_named(tmp_path: Path) -> None:
    from fencepost_conformance.common.errors import CannotRun  # noqa: PLC0415

    with pytest.raises(CannotRun, match="every machine of a cluster must have --log under the same path"):
        on_spark.Reading(None).partition((0, [tmp_path / "0.log"]))


@pytest.mark.all
@pytest.mark.parametrize("group", [[], ["group-00003"]])
def test_command_prints_the_same_with_both_engines(
    segments: Path, dump: Path, group: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def run_with(path: Path, *words: str) -> tuple[Any, str]:
        with pytest.raises(SystemExit) as ended:
            main(["history", *group, "--log", str(path), *words, "--json"])
        return ended.value.code, capsys.readouterr().out

    for path in (segments, dump):
        status, text = run_with(path)
        assert (status, text) == run_with(path, "--engine", "spark", "--workers", "2")
        assert not status
        assert json.loads(text)["counts"]["commits"]
