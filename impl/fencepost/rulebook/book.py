"""Read the rule book: every rule's id, text, place and marks, from the Markdown files in ``docs/rules``.

A rule is a table row whose first cell is an id, or a list item that opens with an id in bold. Ids are cited one by one
(``C-JOIN-43``), as ranges (``M-REC-04…06``, two or three dots do too) and as lists (``O-COMMIT-32, 33``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

_ROW = re.compile(r"^\| *([A-Z][A-Z0-9]*(?:-[A-Z]+)*-\d+[a-h]?) *\|(.*)\|\s*$")
_ITEM = re.compile(r"^- \*\*([A-Z][A-Z0-9]*(?:-[A-Z]+)*-\d+[a-h]?)\*\*(.*)$")
_HEADING = re.compile(r"^(#{1,6}) (.*)$")
_CITATION = re.compile(
    r"\b([A-Z][A-Z0-9]*(?:-[A-Z]+)*)-(\d{2,3})([a-h]?)(?![\w-])"
    r"((?:(?:…|\.{2,3}|–)\d{2,3}(?!\d)|(?:, ?|/)\d{2,3}[a-h]?(?![\w-]))*)"
)
_MORE = re.compile(r"(…|\.{2,3}|–|, ?|/)(\d{2,3})([a-h]?)")


#: A bracket about other releases: ``[4.0–4.2: …]``.
_ELSEWHERE = re.compile(r"\[(4\.\d[^]:]*):")
_RELEASES = ("4.0", "4.1", "4.2", "4.2.2", "4.3", "4.4")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the rule book, with its text as written (Markdown).

    ``file``: the name of its file; ``chapter``, ``section``: the headings above it. In a chapter without sections, both
    are its heading.
    """

    id: str
    _: KW_ONLY
    file: str
    text: str
    chapter: str = ""
    section: str = ""

    def __str__(self) -> str:
        return f"{self.id}: {self.plain}"

    @property
    def plain(self) -> str:
        """The text in one line without markup; dashes separate the cells of a table."""
        cells = re.split(r"(?<!\\)\|", self.text)
        return " — ".join(cell.strip().replace("**", "").replace("\\|", "|") for cell in cells if cell.strip())

    @property
    def marks(self) -> frozenset[str]:
        """The rule's marks: ``Kafka fault``, ``run``, ``read``, ``dropped``, ``unverified``."""
        flags = {
            "Kafka fault": self.kafka_fault,
            "run": self.was_run,
            "read": "(read" in self.text,
            "dropped": self.dropped,
            "unverified": "**unverified**" in self.text,
        }
        return frozenset(mark for mark, holds in flags.items() if holds)

    @property
    def releases(self) -> tuple[str, ...]:
        """The Kafka releases that differ from the text, which is about 4.3; in order, without repetition."""
        named = {release for span in _ELSEWHERE.findall(self.text) for release in _releases(span)}
        return tuple(release for release in _RELEASES if release in named)

    @property
    def dropped(self) -> bool:
        """Whether the rule no longer exists; its id is not used again."""
        return "dropped:" in self.text

    @property
    def kafka_fault(self) -> bool:
        """Whether Kafka has a bug here; the intended protocol forbids the behaviour."""
        return "(Kafka fault)" in self.text

    @property
    def was_run(self) -> bool:
        """Whether the authors of the rule book confirmed it on Kafka's own classes."""
        return "(run" in self.text


def _releases(span: str) -> Iterator[str]:
    """Yield the releases of a span: ``4.0–4.2`` is 4.0, 4.1 and 4.2; ``4.2.2, 4.4`` is only those two."""
    for part in span.split(","):
        first, _, last = part.strip().partition("–")
        if first in _RELEASES and (last or first) in _RELEASES:
            between = _RELEASES[_RELEASES.index(first) : _RELEASES.index(last or first) + 1]
            yield from (each for each in between if each in (first, last) or each.count(".") == 1)


def read_book(folder: Path) -> dict[str, Rule]:
    """Read all rules in ``folder``, by id, in the order of the book. A repeated id keeps its first place."""
    rules: dict[str, Rule] = {}
    for path in sorted(folder.glob("[0-9][0-9]-*.md")):
        chapter = section = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if heading := _HEADING.match(line):
                if len(heading[1]) <= 2:
                    chapter = heading[2]
                section = heading[2]
            match = _ROW.match(line) or _ITEM.match(line)
            if match and match[1] not in rules:
                rules[match[1]] = Rule(
                    match[1], file=path.name, text=match[2].strip(" |"), chapter=chapter, section=section
                )
    return rules


def citations(text: str, known: Mapping[str, Rule]) -> Iterator[str]:
    """Yield the known ids that ``text`` cites; ranges and lists are expanded."""
    for match in _CITATION.finditer(text):
        yield from _cited(match, known)


def cited_lines(text: str, known: Mapping[str, Rule]) -> Iterator[tuple[str, int]]:
    """Yield the same ids, each with the number of its line."""
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
    """Yield the rule with that number; without one, yield its lettered parts (C-JOIN-38)."""
    rule_id = f"{prefix}-{number:02d}{letter}"
    if rule_id in known:
        yield rule_id
    elif not letter:
        yield from (f"{rule_id}{part}" for part in "abcdefgh" if f"{rule_id}{part}" in known)
