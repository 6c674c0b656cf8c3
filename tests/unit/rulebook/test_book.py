"""The rule book is read as written, and citations have the meaning that its README gives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fencepost.rulebook.book import citations, cited_lines, read_book
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.rulebook.scope import REASONS, SHARE, out_of_scope
from fencepost_conformance.judge.rulebook.standing import Level, Standing, evidence_folder, read_standings

BOOK = read_book(Path(__file__).parents[3] / "docs" / "rules")


def test_book_holds_rules_of_every_form() -> None:
    assert len(BOOK) > 1000
    assert BOOK["C-JOIN-43"].was_run  # a table row
    assert BOOK["C-JOIN-71"].kafka_fault  # a list item
    assert BOOK["C-JOIN-38c"].file == "02-classic.md"  # a lettered id


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("# C-JOIN-43", ["C-JOIN-43"]),
        ("C-JOIN-45…47", ["C-JOIN-45", "C-JOIN-46", "C-JOIN-47"]),
        ("C-JOIN-40..42 and C-HB-11/12", ["C-JOIN-40", "C-JOIN-41", "C-JOIN-42", "C-HB-11", "C-HB-12"]),
        ("C-SYNC-21, 22", ["C-SYNC-21", "C-SYNC-22"]),
        ("C-JOIN-16(ii), X-HB-03 (4.2)", ["C-JOIN-16", "X-HB-03"]),
        ("C-JOIN-43, 3000 ms later", ["C-JOIN-43"]),
        ("C-SYNC-20b", ["C-SYNC-20b"]),
        ("C-NONE-99 and UTF-16", []),
    ],
)
def test_citations(text: str, ids: list[str]) -> None:
    assert list(citations(text, BOOK)) == ids


def test_a_number_without_its_own_row_cites_its_lettered_parts() -> None:
    assert list(citations("C-JOIN-38", BOOK)) == [f"C-JOIN-38{part}" for part in "abcdefgh"]


def test_each_citation_is_found_on_its_line() -> None:
    text = "C-JOIN-43\n\nM-REC-04…06, C-HB-11/12\nnothing\n# C-JOIN-43"
    assert list(cited_lines(text, BOOK)) == [
        ("C-JOIN-43", 1), ("M-REC-04", 3), ("M-REC-05", 3), ("M-REC-06", 3), ("C-HB-11", 3), ("C-HB-12", 3),
        ("C-JOIN-43", 5),
    ]  # fmt: skip


def test_the_places_of_a_rule_are_lines_that_cite_it() -> None:
    root = Path(__file__).parents[3]
    standings = {standing.rule.id: standing for standing in read_standings(root)}
    places = standings["C-JOIN-43"].places
    for column in ("specified", "modelled", "implemented", "tested"):
        assert places[column]
        for place in places[column]:
            file, _, line = place.rpartition(":")
            assert "C-JOIN-" in (root / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    named = {place.rpartition(":")[0] for standing in standings.values() for place in standing.places.get("tested", ())}
    assert "tests/unit/rulebook/test_book.py" not in named


def test_scope_takes_the_longest_prefix() -> None:
    assert out_of_scope(BOOK["C-JOIN-43"]) is None
    assert out_of_scope(BOOK["C-JOIN-01"]) == "dropped from the rule book"
    assert out_of_scope(BOOK["M-PE-07"]) is None
    assert out_of_scope(BOOK["C-JOIN-08"]) == SHARE
    assert out_of_scope(BOOK["O-TXN-01"]) is None


@pytest.mark.parametrize("prefix", REASONS)
def test_every_reason_excuses_some_rule(prefix: str) -> None:
    """A prefix that a longer one overrides everywhere, or that no id has, is a mistake."""
    decided = [rule for rule in BOOK.values() if rule.id.startswith(prefix) and not rule.dropped]
    assert any(out_of_scope(rule) == REASONS[prefix] for rule in decided)


@pytest.mark.parametrize("area", ["M-", "X-", "N-", "INV-KIP-", "LIV-", "A-", "F-ORD-", "F-REPLAY-", "V-"])
def test_both_protocols_are_in_scope(area: str) -> None:
    """Most rules of each area must be implemented, except for share groups and matters of clients."""
    rules = [rule for rule in BOOK.values() if rule.id.startswith(area) and not rule.dropped]
    assert sum(out_of_scope(rule) is None for rule in rules) > 0.6 * len(rules)


def test_a_rule_in_scope_that_nothing_realises_is_missing() -> None:
    rule = BOOK["M-PE-07"]
    assert Standing(rule, {}, {}, None).missing
    assert not Standing(rule, {}, {"decided": 3}, None).missing
    assert not Standing(rule, {"modelled": ("a.py",)}, {}, None).missing
    assert not Standing(rule, {}, {}, SHARE).missing


@pytest.mark.parametrize(
    ("observed", "level"),
    [
        ({"decided": 3, "ran": 5}, Level.DECIDED),
        ({"ran": 5}, Level.RAN),
        ({"wire": 5}, Level.NONE),
        ({}, Level.NONE),
    ],
)
def test_a_rule_has_the_highest_level_that_was_observed(observed: dict[str, int], level: Level) -> None:
    standing = Standing(BOOK["M-PE-07"], {}, observed, None)
    assert standing.level is level
    assert [each for each in (Level.DECIDED, Level.RAN) if standing.has(each)] == [level] * (level is not Level.NONE)


def test_an_impossible_rule_counts_nowhere_whatever_the_evidence_shows(tmp_path: Path) -> None:
    evidence_folder(tmp_path).mkdir(parents=True)
    shutil.copytree(Path(__file__).parents[3] / "docs" / "rules", tmp_path / "docs" / "rules")
    counts = {"C-JOIN-56": 1164, "C-JOIN-43": 7}
    (evidence_folder(tmp_path) / "core.json").write_text(json.dumps({"rules": counts, "ran": counts}))
    standings = {standing.rule.id: standing for standing in read_standings(tmp_path)}
    assert standings["C-JOIN-56"].level is Level.NONE
    assert not standings["C-JOIN-56"].observed
    assert standings["C-JOIN-56"].impossible == "cannot occur: an Empty group has no members"
    assert standings["C-JOIN-43"].observed == {"decided": 7, "ran": 7}


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"rules": 3}'])
def test_unreadable_evidence_is_named_with_the_command_that_makes_it(tmp_path: Path, content: str) -> None:
    evidence_folder(tmp_path).mkdir(parents=True)
    (evidence_folder(tmp_path) / "wire.json").write_text(content)
    with pytest.raises(CannotRun, match=r"wire\.json is not a file of evidence .* python -m tools\.evidence\.traces"):
        read_standings(tmp_path)
