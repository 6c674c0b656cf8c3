"""The matrix of brokers and clients: cells from the results of the named cases, and links to failures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from fencepost_conformance.run.matrix.clients import peers_folder, read_clients
from fencepost_conformance.run.matrix.pages import html, markdown
from fencepost_conformance.run.matrix.results import Row, row_of
from fencepost_conformance.run.matrix.subjects import Subject, brokers

BROKER = Subject("some", "broker", "Some broker", "1.2", ("some",))
CLIENT = Subject("one", "client", "one (Go)", "v3", ("--client", "one"))


def case(name: str, ending: str, *exchanges: str) -> dict[str, Any]:
    told = [{"api": each} for each in exchanges]
    return {
        "case": name,
        "ending": ending,
        "text": f"About {name}.",
        "why": "a < b",
        "rules": ["C-1"],
        "exchanges": told,
    }


def row(folder: Path, subject: Subject, *cases: dict[str, Any]) -> Row:
    file = folder / subject.key / "cases.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"cases": cases}))
    os.utime(file, (1_700_000_000, 1_700_000_000))
    return row_of(subject, file.parent)


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
        "| Some broker | 1.2 | 2023-11-14 | 2; [2 failed](matrix.html#some-classic) | 0; 1 not supported "
        "| 0; 1 known fault |",
        "",
        "Not in this table:",
        "",
        "- Idle 2: it was not run",
        "",
        "## Clients",
        "",
        "| client | version | date | rejoin | close |",
        "|---|---|---|---|---|",
        "| one (Go) | v3 | 2023-11-14 | 1 | 0; 1 not reached |",
        "",
        "Not in this table:",
        "",
        "- gone (C): gone is not installed",
    ]
    page = html(rows)
    assert '<a href="#some-classic">2 failed</a>' in page
    assert '<h3 id="some-classic">Some broker: classic.join.4</h3>' in page
    assert "shortest" in page
    assert "second" not in page
    assert "<b>a &lt; b</b>" in page


def test_the_rows_have_different_names_and_the_drivers_exist() -> None:
    clients = read_clients(peers_folder())
    keys = [*(each.key for each in brokers()), *(each.name for each in clients)]
    assert len(keys) == len({*keys})
    assert len(clients) >= 11
    assert len({each.language for each in clients}) >= 6
    for each in clients:
        for program in ("install", "run"):
            assert os.access(each.folder / program, os.X_OK), each.folder


def test_the_written_pages_have_a_target_for_each_link() -> None:
    docs = peers_folder().parents[1] / "docs"
    page = (docs / "matrix.html").read_text(encoding="utf-8")
    links = [part.split(")")[0] for part in (docs / "matrix.md").read_text(encoding="utf-8").split("matrix.html#")[1:]]
    assert links
    assert all(f'id="{each}"' in page for each in links)
