"""The rule book is read as it is written, and citations are understood as its README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost_conformance.rulebook.book import citations, read_book
from fencepost_conformance.rulebook.scope import out_of_scope

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


def test_scope_takes_the_longest_prefix() -> None:
    assert out_of_scope(BOOK["C-JOIN-43"]) is None
    assert out_of_scope(BOOK["C-JOIN-01"]) == "dropped from the rule book"
    assert "mixed groups" in str(out_of_scope(BOOK["C-JOIN-15"]))
