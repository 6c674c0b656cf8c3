"""Each word of the glossary occurs in the file that the glossary names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [
    (word, file)
    for words, file in re.findall(r"^\| ([^|]+) \|[^|]*\| `([a-z_/]+\.py)` \|", GLOSSARY, re.MULTILINE)
    for word in re.sub(r"\(.*?\)|\bto ", "", words).split(",")
]


def test_the_glossary_is_short() -> None:
    """Most words should be the field's, so that no page has to explain them."""
    rows = re.findall(r"^\| (?!Word |-)", GLOSSARY, re.MULTILINE)
    assert ROWS
    assert len(ROWS) <= len(rows) + 1 <= 25


@pytest.mark.parametrize(("word", "file"), ROWS)
def test_a_word_occurs_where_the_glossary_says(word: str, file: str) -> None:
    beginning = word.strip().rpartition(" ")[2].removesuffix("ing")
    assert beginning.lower() in (ROOT / file).read_text(encoding="utf-8").lower()
