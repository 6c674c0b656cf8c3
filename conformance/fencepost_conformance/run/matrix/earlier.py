"""Rows of earlier pages: a row that was not played in this run keeps its cells, its failures and its date.

The pages themselves are the record. A run on a machine that lacks a peer therefore does not lose that row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Final

from .subjects import Subject

#: columns before the families: name, version and date
HEAD: Final = 3
_LINK: Final = re.compile(r"\]\([^)]*#([^)]+)\)")
_SECTION: Final = re.compile(r'<h3 id="([^"]+)">.*?(?=<h3 id="|</main>)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Earlier:
    """A row as the earlier pages have it. ``cells``: Markdown by family. ``failures``: lines of the list of failures.
    ``sections``: HTML by anchor."""

    kind: str
    name: str
    version: str
    date: str
    cells: Mapping[str, str]
    failures: tuple[str, ...]
    sections: Mapping[str, str]


def read_earlier(markdown: str, html: str) -> list[Earlier]:
    """Return the rows of earlier pages; none of an empty text."""
    sections = {unescape(found[1]): found[0].rstrip() for found in _SECTION.finditer(html)}
    rows: list[Earlier] = []
    for part in markdown.split("\n## ")[1:]:
        kind = part.split("\n", 1)[0].lower().removesuffix("s")
        table, _, failures = part.partition("\n### ")
        lines = [_cells(line) for line in table.splitlines() if line.startswith("| ")]
        listed = [line for line in failures.splitlines() if line.startswith("| ")]
        for name, version, date, *texts in lines[1:]:
            cells = {family: text for family, text in zip(lines[0][HEAD:], texts, strict=False) if text}
            anchors = [anchor for text in cells.values() for anchor in _LINK.findall(text)]
            own = tuple(line for line in listed if _cells(line)[0] == name)
            found = {anchor: sections[anchor] for anchor in anchors if anchor in sections}
            rows.append(Earlier(kind, name, version, date, cells, own, found))
    return rows


def earlier_of(subject: Subject, rows: Iterable[Earlier]) -> Earlier | None:
    """Return the earlier row of a subject; if the subject is not installed, whatever its version was."""
    for each in rows:
        if (each.kind, each.name) == (subject.kind, subject.name) and subject.version in ("", each.version):
            return each
    return None


def _cells(line: str) -> list[str]:
    """Split a line of a table; an escaped bar belongs to its cell."""
    return [each.strip() for each in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]
