"""Reads TLC configuration files: sections, assignments to constants, names of properties."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final


class BadConfiguration(ValueError):
    """A configuration cannot be used; the message names the file and the line."""


class UnknownName(BadConfiguration):
    """A configuration uses a name that does not exist. ``where``: the file and the line; ``kind``: what should have
    the name."""

    def __init__(self, where: str, kind: str, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"{where}: no {kind} {name!r}; there are {', '.join(known)}")
        self.where, self.kind, self.name, self.known = where, kind, name, known


@dataclass(frozen=True, slots=True)
class Word:
    """A name in a configuration file, with its line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """``name = value`` or ``name <- value``; in the second form, the value is the name of a definition."""

    name: str
    by_name: bool
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Cfg:
    """The contents of a configuration file. ``subject``: the family or module that a comment names, if any."""

    path: Path
    assignments: tuple[Assignment, ...]
    properties: tuple[Word, ...]
    specification: Word | None
    subject: Word | None

    def at(self, line: int) -> str:
        return f"{self.path}:{line}"


_CONSTANTS: Final = ("CONSTANTS", "CONSTANT")
_PROPERTIES: Final = ("INVARIANTS", "INVARIANT", "PROPERTIES", "PROPERTY")
_READ: Final = ("SPECIFICATION", *_CONSTANTS, *_PROPERTIES, "CHECK_DEADLOCK")
_NOT_READ: Final = (
    *("SYMMETRY", "VIEW", "CONSTRAINTS", "CONSTRAINT", "ACTION_CONSTRAINTS", "ACTION_CONSTRAINT"),
    *("INIT", "NEXT", "ALIAS", "POSTCONDITION"),
)
_SECTION: Final = re.compile(rf"\b({'|'.join((*_READ, *_NOT_READ))})\b")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)\s*(<-|=)\s*")
_SUBJECT: Final = re.compile(r"\\\*\s*(?:Family|Spec):\s*(\w+)")
_COMMENT: Final = re.compile(r"\\\*[^\n]*|\(\*.*?\*\)", re.DOTALL)


def read_cfg(path: Path) -> Cfg:
    """Read a configuration file. Raises BadConfiguration, OSError."""
    try:
        whole = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as reason:
        raise BadConfiguration(f"{path}: not a text in UTF-8 ({reason.reason})") from None
    named = _SUBJECT.search(whole)
    subject = None if named is None else Word(named[1], whole.count("\n", 0, named.start()) + 1)
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), whole)
    assignments: list[Assignment] = []
    properties: list[Word] = []
    specification = None
    for section, body, line in _sections(path, text):
        if section in _CONSTANTS:
            assignments += _assignments(path, body, line)
        elif section in _PROPERTIES:
            properties += _words(body, line)
        elif section == "SPECIFICATION":
            (specification,) = [*_words(body, line), None][:1]
        elif body.split() != ["FALSE"]:
            raise BadConfiguration(f"{path}:{line}: deadlocks are not checked; use CHECK_DEADLOCK FALSE")
    return Cfg(path, tuple(assignments), tuple(properties), specification, subject)


def _sections(path: Path, text: str) -> Iterator[tuple[str, str, int]]:
    """Yield each section: its name, its text, the line of its name."""
    heads = list(_SECTION.finditer(text))
    first = text[: heads[0].start()] if heads else text
    if first.strip():
        line = text[: len(first) - len(first.lstrip())].count("\n") + 1
        words = first.strip().splitlines()[0].strip()
        raise BadConfiguration(f"{path}:{line}: {words!r} comes before any of {', '.join(_READ)}")
    for head, following in zip(heads, [*heads[1:], None], strict=False):
        line = text.count("\n", 0, head.start()) + 1
        if head[1] in _NOT_READ:
            raise BadConfiguration(f"{path}:{line}: {head[1]} is not supported; remove it")
        yield head[1], text[head.end() : following.start() if following else len(text)], line


def _words(body: str, line: int) -> list[Word]:
    return [Word(found[0], line + body.count("\n", 0, found.start())) for found in re.finditer(r"\S+", body)]


def _assignments(path: Path, body: str, line: int) -> Iterator[Assignment]:
    found = list(_ASSIGNED.finditer(body))
    first = (body[: found[0].start()] if found else body).strip()
    if first:
        raise BadConfiguration(f"{path}:{line}: {first.splitlines()[0]!r} is not an assignment: name = value")
    for each, following in zip(found, [*found[1:], None], strict=False):
        at = line + body.count("\n", 0, each.start())
        value = body[each.end() : following.start() if following else len(body)].strip()
        value = re.sub(r"^\[\w+\]\s*", "", value) if each[2] == "<-" else value  # of an instance of that module
        if not value:
            raise BadConfiguration(f"{path}:{at}: {each[1]} has no value")
        yield Assignment(each[1], each[2] == "<-", value, at)
