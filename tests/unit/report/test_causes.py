"""The report of a run leads with the causes of its failures, and names a profile under which all would pass."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, PROFILES
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.judge.rows import otherwise
from fencepost_conformance.judge.rows.check import Checker, as_row
from fencepost_conformance.judge.rows.job import Job, Row
from fencepost_conformance.judge.rows.summary import Summary
from fencepost_conformance.judge.verdict import Verdict
from fencepost_conformance.show.report.chart import Chart
from fencepost_conformance.show.report.html import report_page
from fencepost_conformance.show.report.names import short_ids
from fencepost_conformance.traces.files import WireTrace
from fencepost_server.look.made import Made, made_now, without_passwords

MADE = Made("1.2.3", "", "today", "a test")
DOCS = Path(__file__).parents[3] / "docs"
ID = "0f8b2c1d-1111-4222-8333-944455556666"


def failed(seed: int, group: str, left: str = "left") -> Row:
    made = generate(seed, KAFKA_4_3, 5)
    checker = Checker(Job("core", "kafka-4.3", 5))
    row = as_row(made, checker.examine([made])[0])
    return replace(row, outcome="differed", event=3, field="replies", left=left, right="right", group=group)


def test_each_cause_has_one_row_before_everything_else() -> None:
    summary = Summary(Job("core", "kafka-4.3", 5))
    summary.add_all([failed(1, "A: x"), failed(2, "B: y", f"member c-{ID}"), failed(3, "B: y")])
    chart = Chart("the shortest", (), ("one", "coordinator"), (), rules=("C-HB-09: a rule",))
    page = report_page(summary, 1.0, [("B: y", chart)], MADE, "Under profile kafka-4.1 all pass.")
    rows = re.findall(r'<tr><td class="n"><a href="#cause-(\d)">.*?<td class="n">(\d)</td><td>(.*?)</td>', page)
    assert [(number, traces, cell.split("<br>")[0]) for number, traces, cell in rows] == [
        ("1", "2", "B: y"),
        ("2", "1", "A: x"),
    ]
    assert "C-HB-09: a rule" in rows[0][2]
    assert f'title="member c-{ID}">member c-0f8b…<' in rows[0][2]
    order = [page.index(text) for text in ("Under profile", "Causes of failures", "the shortest", "Counts", "Coverage")]
    assert order == sorted(order)
    assert "--shrink" in page


def test_ids_and_bytes_are_short() -> None:
    assert short_ids(f"a {ID} b") == "a 0f8b… b"
    assert short_ids(f"x {b'0' * 40!r} y") == "x 40 characters of bytes y"
    assert short_ids("plain b'text'") == "plain b'text'"


def test_a_profile_that_explains_all_recordings_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    passing: set[tuple[str, str]] = set()

    def check(trace: str, profile: Profile) -> SimpleNamespace:
        good = (trace, profile.name) in passing
        return SimpleNamespace(verdict=Verdict.PASSED if good else Verdict.FAILED)

    monkeypatch.setattr(otherwise, "check_trace", check)
    traces = cast(list[WireTrace], ["one", "two"])
    passing |= {("one", "kafka-4.0"), ("one", "kafka-4.1"), ("two", "kafka-4.1")}
    assert otherwise.profile_of_recordings("kafka-4.3", traces) == "kafka-4.1"
    passing |= {(trace, name) for trace in ("one", "two") for name in ("kafka-4.2", INTENDED.name)}
    assert otherwise.profile_of_recordings("kafka-4.3", traces) == "kafka-4.2"
    assert otherwise.profile_of_recordings("kafka-4.2", traces) == "kafka-4.1"
    assert otherwise.profile_of_recordings("kafka-4.3", []) == ""


def test_a_profile_that_explains_all_traces_is_named() -> None:
    """Each trace is played again under the other profile."""
    seen: list[str] = []

    def examine(traces: list[Generated]) -> list[SimpleNamespace]:
        seen.extend(trace.profile.name for trace in traces)
        outcome = SimpleNamespace(verdict=Verdict.PASSED if traces[0].profile.name == "kafka-4.1" else Verdict.FAILED)
        return [SimpleNamespace(outcome=outcome)]

    checker = cast(Checker, SimpleNamespace(profile=KAFKA_4_3, examine=examine))
    traces = [generate(seed, KAFKA_4_3, 5) for seed in (1, 2)]
    assert otherwise.profile_of_traces(checker, traces) == "kafka-4.1"
    assert seen[-2:] == ["kafka-4.1"] * 2
    assert KAFKA_4_3.name not in seen
    assert set(seen) < set(PROFILES)


def test_a_page_does_not_show_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_passwords("postgresql://me:secret@host/db x") == "postgresql://me:***@host/db x"
    monkeypatch.setattr("sys.argv", ["fencepost", "serve", "--data", "postgresql://me:secret@host/db"])
    made = made_now(target="http://a:b@c", seed=None, profile="kafka-4.3")
    assert "secret" not in made.html()
    rows = dict(made.rows())
    assert rows["command"] == "fencepost serve --data postgresql://me:***@host/db"
    assert (rows["target"], rows["profile"]) == ("http://a:***@c", "kafka-4.3")
    assert "seed" not in rows


def test_the_pictures_of_pages_are_small() -> None:
    pictures = list(DOCS.glob("page-*.png"))
    assert {path.stem for path in pictures} == {
        f"page-{name}" for name in ("report", "history", "lab", "graph", "rules")
    }
    assert max(path.stat().st_size for path in pictures) <= 150 * 1024
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    assert [path.name for path in pictures if f"({path.name})" not in pages] == []
