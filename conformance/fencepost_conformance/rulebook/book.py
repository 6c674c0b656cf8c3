"""Read the rule book: every rule's id, text and marks, from the Markdown files in ``docs/rules``.

A rule is a table row whose first cell is an id, or a list item that opens with an id in bold. Ids are cited one by one
(``C-JOIN-43``), as ranges (``M-REC-04…06``, two or three dots do too) and as lists (``O-COMMIT-32, 33``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_ROW = re.compile(r"^\| *([A-Z][A-Z0-9]*(?:-[A-Z]+)*-\d+[a-h]?) *\|(.*)\|\s*$")
_ITEM = re.compile(r"^- \*\*([A-Z][A-Z0-9]*(?:-[A-Z]+)*-\d+[a-h]?)\*\*(.*)$")
_CITATION = re.compile(
    r"\b([A-Z][A-Z0-9]*(?:-[A-Z]+)*)-(\d{2,3})([a-h]?)(?![\w-])"
    r"((?:(?:…|\.{2,3}|–)\d{2,3}(?!\d)|(?:, ?|/)\d{2,3}[a-h]?(?![\w-]))*)"
)
_MORE = re.compile(r"(…|\.{2,3}|–|, ?|/)(\d{2,3})([a-h]?)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its id, the file it stands in, and its text as written (Markdown)."""

    id: str
    file: str
    text: str

    @property
    def plain(self) -> str:
        """The text in one line without marks of type; what were cells of a table are parted by dashes."""
        cells = re.split(r"(?<!\\)\|", self.text)
        return " — ".join(cell.strip().replace("**", "").replace("\\|", "|") for cell in cells if cell.strip())

    @property
    def dropped(self) -> bool:
        return "dropped:" in self.text

    @property
    def kafka_fault(self) -> bool:
        return "(Kafka fault)" in self.text

    @property
    def was_run(self) -> bool:
        """Confirmed on Kafka's own classes by the authors of the rule book."""
        return "(run" in self.text


def read_book(folder: Path) -> dict[str, Rule]:
    """All rules below ``folder``, by id, in the order of the book. A doubled id keeps its first place."""
    rules: dict[str, Rule] = {}
    for path in sorted(folder.glob("[0-9][0-9]-*.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            match = _ROW.match(line) or _ITEM.match(line)
            if match and match[1] not in rules:
                rules[match[1]] = Rule(match[1], path.name, match[2].strip(" |"))
    return rules


def citations(text: str, known: Mapping[str, Rule]) -> Iterator[str]:
    """Ids cited in ``text`` that the book knows, ranges and lists written out."""
    for match in _CITATION.finditer(text):
        yield from _cited(match, known)


def cited_lines(text: str, known: Mapping[str, Rule]) -> Iterator[tuple[str, int]]:
    """The same ids, each with the number of the line that cites it."""
    line, end = 1, 0
    for match in _CITATION.finditer(text):
        line += text.count("\n", end, match.start())
        end = match.start()
        yield from ((rule_id, line) for rule_id in _cited(match, known))


def _cited(match: re.Match[str], known: Mapping[str, Rule]) -> Iterator[str]:
    prefix, number, letter, more = match[1], int(match[2]), match[3], match[4]
    yield from _known(prefix, number, letter, known)
    last = number
    for joint, digits, suffix in _MORE.findall(more):
        if joint[0] in "…–" or joint.startswith(".."):
            for each in range(last + 1, int(digits) + 1):
                yield from _known(prefix, each, "", known)
        else:
            yield from _known(prefix, int(digits), suffix, known)
        last = int(digits)


def _known(prefix: str, number: int, letter: str, known: Mapping[str, Rule]) -> Iterator[str]:
    """The rule of that number; a number without its own row stands for its lettered parts (C-JOIN-38)."""
    rule_id = f"{prefix}-{number:02d}{letter}"
    if rule_id in known:
        yield rule_id
    elif not letter:
        yield from (f"{rule_id}{part}" for part in "abcdefgh" if f"{rule_id}{part}" in known)
