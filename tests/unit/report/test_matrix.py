"""The matrix of brokers and clients: cells from the results of the named cases, and links to failures."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.cases.case import CASES
from fencepost_conformance.judge.cases.catalogue import chosen
from fencepost_conformance.judge.cases.play import Ending, Played
from fencepost_conformance.judge.client_cases import catalogue
from fencepost_conformance.judge.client_cases.case import CLIENT_CASES
from fencepost_conformance.run.commands.conform_clients import excused
from fencepost_conformance.run.matrix import __main__ as matrix
from fencepost_conformance.run.matrix.__main__ import merged
from fencepost_conformance.run.matrix.clients import peers_folder, read_brokers, read_clients
from fencepost_conformance.run.matrix.earlier import read_earlier
from fencepost_conformance.run.matrix.pages import markdown
from fencepost_conformance.run.matrix.results import Row, row_of
from fencepost_conformance.run.matrix.subjects import Subject, brokers
from fencepost_conformance.run.matrix.verdicts import VERDICTS, Entry, read_verdicts
from fencepost_conformance.run.matrix.web import html
from fencepost_server.look.made import Made

BROKER = Subject("some", "broker", "Some broker", "1.2", ("some",))
MADE = Made("1.2.3", "0123456789ab", "2026-01-02 03:04 UTC", "make matrix")
CLIENT = Subject("one", "client", "one (Go)", "v3", ("--client", "one"))


def case(name: str, ending: str, *exchanges: str) -> dict[str, Any]:
    rows = [
        {"client": "client 1", "api": each, "version": 1, "request": {}, "answer": None, "at_s": 0.5, "took_s": 0.1}
        for each in exchanges
    ]
    return {
        "case": name,
        "ending": ending,
        "text": f"About {name}.",
        "why": "a < b",
        "rules": ["C-1"],
        "exchanges": rows,
    }


def row(folder: Path, subject: Subject, *cases: dict[str, Any], entries: tuple[Entry, ...] = ()) -> Row:
    file = folder / subject.key / "cases.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"cases": cases}))
    os.utime(file, (1_700_000_000, 1_700_000_000))
    return row_of(subject, file.parent, entries)


def entry(*cases: str, verdict: str = "fault", **more: Any) -> Entry:
    return Entry(cases=cases, verdict=verdict, why="It is wrong.", kafka="4.4.0", **more)


def head(kind: str) -> list[str]:
    return [f"| {kind} | cases | verdict | what | beside Kafka | ticket |", "|---|---|---|---|---|---|"]


def test_a_cell_counts_endings_and_links_to_its_shortest_failure(tmp_path: Path) -> None:
    rows = [
        row(
            tmp_path, BROKER,
            case("classic.join.1", "passed"), case("classic.join.2", "passed"),
            case("classic.join.3", "failed", "first", "second"), case("classic.join.4", "failed", "shortest"),
            case("admin.list.1", "not supported"), case("mixed.upgrade.1", "known fault"),
        ),
        row(tmp_path, CLIENT, case("client.rejoin.1", "passed"), case("client.close.1", "not reached")),
        row_of(Subject("gone", "client", "gone (C)", "", (), "gone is not installed"), tmp_path),
        row_of(Subject("idle", "broker", "Idle", "2", ()), tmp_path),
    ]  # fmt: skip
    assert markdown(rows).split("## Brokers", 1)[1].splitlines()[2:] == [
        "| broker | version | date | classic | admin | mixed |",
        "|---|---|---|---|---|---|",
        "| Some broker | 1.2 | 2023-11-14 | 2; [2 not examined](matrix.html#some-classic) | 0; 1 not supported "
        "| 0; 1 known fault |",
        "",
        "Not in this table:",
        "",
        "- Idle 2: it was not run",
        "",
        "### Failures of brokers",
        "",
        *head("broker"),
        "| Some broker | `classic.join.3`, `classic.join.4` | not examined |  |  |  |",
        "",
        "## Clients",
        "",
        "| client | version | date | rejoin | close |",
        "|---|---|---|---|---|",
        "| one (Go) | v3 | 2023-11-14 | 1 | 0; [1 not examined](matrix.html#one-close) |",
        "",
        "Not in this table:",
        "",
        "- gone (C): gone is not installed",
        "",
        "### Failures of clients",
        "",
        *head("client"),
        "| one (Go) | `client.close.1` | not examined |  |  |  |",
    ]
    page = html(rows, MADE)
    assert '<a href="#some-classic">2 not examined</a>' in page
    assert '<h3 id="some-classic">Some broker: classic.join.4</h3>' in page
    assert "shortest" in page
    assert "second" not in page.partition("<script>")[0]
    assert '<p class="note">a &lt; b (C-1)</p>' in page
    assert "sends shortest v1" in page
    assert '<footer class="made">' in page
    assert "2026-01-02 03:04 UTC" in page


def test_a_row_that_was_not_played_keeps_its_results_and_its_date(tmp_path: Path) -> None:
    """The pages are read back: cells, failures and exchanges. A row with its own results is not replaced."""
    entries = (entry("client.close.2", ticket="https://example.org/7"),)
    failed = case("client.close.1", "failed", "first"), case("client.close.2", "failed", "longer", "second")
    played = [
        row(tmp_path, CLIENT, case("client.rejoin.1", "passed"), *failed, entries=entries),
        row(tmp_path, BROKER, case("classic.join.1", "failed", "asked")),
    ]
    before = read_earlier(markdown(played), html(played, MADE))
    gone = replace(CLIENT, version="", lacking="one is not installed")
    kept = [row_of(each, tmp_path / "none", (), before) for each in (gone, BROKER)]
    assert markdown(kept) == markdown(played)
    assert html(kept, MADE) == html(played, MADE)
    newer = tmp_path / "newer"
    newer.mkdir()
    now = row(newer, BROKER, case("classic.join.1", "passed"))
    assert row_of(BROKER, newer / "some", (), before) == now
    other = row_of(replace(BROKER, version="1.3"), tmp_path / "none", (), before)
    assert not other.known, "the results of another version"
    assert read_earlier("", "") == []


def test_a_cell_names_the_verdicts_about_its_failures(tmp_path: Path) -> None:
    """A verdict explains the failure whose text it names. Another failure of that case is not examined."""
    entries = (
        entry("client.close.1", "client.join", shows="a < b", ticket="https://example.org/7"),
        entry("client.close.2", shows="another text"),
        entry("client.close.3", verdict="allowed"),
    )
    failed = [case(f"client.{name}", "failed", "x") for name in ("close.1", "close.2", "close.3", "join.4", "join.5")]
    others = case("client.close.4", "passed"), case("client.join.6", "not reached")
    of_row = row(tmp_path, CLIENT, *failed, *others, entries=entries)
    lines = markdown([of_row]).splitlines()
    cells = "1; [1 not examined, 1 fault of the peer, 1 allowed](matrix.html#one-close)"
    assert (
        f"| one (Go) | v3 | 2023-11-14 | {cells} | 0; [2 fault of the peer, 1 not reached](matrix.html#one-join) |"
        in lines
    )
    about = lines[lines.index("### Failures of clients") + 4 :]
    link, names = (
        "[example.org/7](https://example.org/7)",
        "`client.close.1`, `client.join.4`, `client.join.5`, `client.join.6`",
    )
    assert about[:3] == [
        f"| one (Go) | {names} | fault of the peer | It is wrong. | 4.4.0 | {link} |",
        "| one (Go) | `client.close.2` | not examined |  |  |  |",
        "| one (Go) | `client.close.3` | allowed | It is wrong. | 4.4.0 |  |",
    ]
    page = html([of_row], MADE)
    assert "<li>client.close.1: fault of the peer: It is wrong. " in page
    assert "<li>client.close.2: not examined</li>" in page


def test_a_verdict_about_a_case_that_passes_is_stale(tmp_path: Path) -> None:
    entries = (
        entry("client.close.1", "client.close.2", shows="a <"),
        entry("client.close.1", shows="another text"),
        entry("client.join"),
        entry("client.close.1", sometimes=True, shows="another text"),
        entry("client.gone.1"),
    )
    cases = [case("client.close.1", "failed", "x"), case("client.close.2", "passed"), case("client.join.1", "passed")]
    of_row = row(tmp_path, CLIENT, *cases, entries=entries)
    assert of_row.stale() == ["client.close.2", "client.close.1", "client.join", "client.gone.1"]
    assert markdown([of_row]).splitlines()[-1] == "- one: client.close.2, client.close.1, client.join, client.gone.1"
    assert row_of(Subject("idle", "client", "Idle", "2", ()), tmp_path, entries).stale() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[one]]\ncases = ['a.b.1']\nverdict = 'fault'\nwhy = 'x'", "kafka must say beside which release"),
        (
            "[[one]]\ncases = ['a.b.1']\nverdict = 'wrong'\nwhy = 'x'",
            "must be one of fault, allowed, unknown (got 'wrong')",
        ),
        ("[[one]]\ncases = []\nverdict = 'fault'\nwhy = 'x'", "an entry of one needs cases and why"),
        ("[[one]]\ncase = ['a']\nverdict = 'fault'\nwhy = 'x'", "has no field 'case'"),
        ("[[one]", "cannot be read"),
    ],
)
def test_a_verdict_that_is_malformed_is_reported_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "verdicts.toml"
    file.write_text(text)
    with pytest.raises(CannotRun) as refused:
        read_verdicts(file)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_verdicts_are_about_rows_and_cases_that_exist() -> None:
    assert chosen(())
    assert catalogue.chosen(())  # the registers are filled
    clients = {each.name for each in read_clients(peers_folder())}
    for key, entries in read_verdicts(peers_folder() / VERDICTS).items():
        assert key in clients | {each.key for each in brokers()} | {each.key for each in read_brokers(peers_folder())}
        known = CLIENT_CASES if key in clients else CASES
        for each in entries:
            for name in each.cases:
                assert any(case == name or case.startswith(f"{name}.") for case in known), (key, name)
            assert each.ticket == "" or each.ticket.startswith("https://")


def test_a_client_by_its_name_has_its_known_faults() -> None:
    found = Played(CLIENT_CASES["client.close.1"], Ending.FAILED, "client 1 sent a < b", None, (), frozenset(), 1.0)
    assert excused(found, [entry("client.close.1", shows="a < b")]).ending is Ending.KNOWN_FAULT
    assert "fault of the peer: It is wrong." in excused(found, [entry("client.close")]).why
    for other in (
        entry("client.close.1", shows="other"),
        entry("client.close.2"),
        entry("client.close", verdict="unknown"),
    ):
        assert excused(found, [other]) == found
    passed = replace(found, ending=Ending.PASSED)
    assert excused(passed, [entry("client.close.1")]) == passed


def test_cases_that_are_played_again_replace_their_results() -> None:
    before = [case("a.b.1", "failed"), case("a.b.2", "passed")]
    assert merged(before, [case("a.b.1", "passed"), case("a.b.3", "failed")]) == [
        case("a.b.1", "passed"), case("a.b.2", "passed"), case("a.b.3", "failed"),
    ]  # fmt: skip
    assert merged(before, []) == before


def test_the_rows_have_different_names_and_the_drivers_exist() -> None:
    clients, scripts = read_clients(peers_folder()), read_brokers(peers_folder())
    keys = [each.key for each in brokers()] + [each.key for each in scripts] + [each.name for each in clients]
    assert len(keys) == len({*keys})
    assert len(clients) >= 11
    assert len({each.language for each in clients}) >= 6
    for folder in {each.folder for each in clients} | {each.folder for each in scripts}:
        for program in ("install", "run"):
            assert os.access(folder / program, os.X_OK), folder


def test_the_written_pages_have_a_target_for_each_link() -> None:
    docs = peers_folder().parents[1] / "docs"
    page = (docs / "matrix.html").read_text(encoding="utf-8")
    links = [part.split(")")[0] for part in (docs / "matrix.md").read_text(encoding="utf-8").split("matrix.html#")[1:]]
    assert links
    assert all(f'id="{each}"' in page for each in links)


@pytest.mark.parametrize(
    ("asked", "alone"),
    [
        ((), ["classic.leave.1", "classic.leave.3"]),
        (("classic.leave.2", "classic.leave.1"), ["classic.leave.1"]),
        (("classic.leave.3",), ["classic.leave.3"]),
    ],
)
def test_cases_that_end_a_broker_are_played_alone_after_the_others(
    asked: tuple[str, ...], alone: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs: list[list[str]] = []
    monkeypatch.setattr(matrix, "play", lambda _, __, names: runs.append([*names]))
    matrix.play_row(replace(BROKER, alone=("classic.leave.1", "classic.leave.3")), tmp_path, asked)
    assert [name for run in runs for name in run if name in alone] == alone
    assert [run for run in runs if {*run} & {*alone}] == [[name] for name in alone]
    assert sorted(name for run in runs for name in run) == sorted(each.name for each in chosen(asked))
    assert runs.index([alone[0]]) == len(runs) - len(alone)


def test_the_cases_that_end_a_broker_exist() -> None:
    for broker in read_brokers(peers_folder()):
        assert {*broker.alone} <= CASES.keys()
