"""Find phrases that make technical English hard to read: in docs, docstrings, comments, messages and names of tests.

    python tests/quality/plain_english.py [PATH ...]

The phrases, with a reason and a suggestion each, are in ``plain_english.toml``. The command prints each phrase that it
finds, and exits with status 1 if there are more than ``RATE`` and ``PER_FILE`` allow. A text without any of these
phrases can still be hard to read: read it aloud.

There are linters for prose, but none fits. Vale's package on PyPI downloads a program from elsewhere when it first
runs, and reads no messages; proselint has a fixed list of checks, and does not read Python.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = Path(__file__).with_suffix(".toml")
PLACES: Final = (
    "README.md", "SECURITY.md", "CONTRIBUTING.md", "docs", "impl", "model", "conformance", "spec", "examples",
    "backend", "tests",
)  # fmt: skip
#: phrases for each 1,000 words, over all places
RATE: Final = 0.3
#: a file may have one phrase, and one more for each 1,000 words
PER_FILE: Final = 1_000
#: Places that still have too many phrases; ``complaints`` leaves them out. A test fails for an entry without need.
NOT_YET: Final[tuple[str, ...]] = ()
_START: Final = r"(?:(?<=[.;:!?] )|(?<=[.;:!?]\n)|(?<=\n\n)|^[ ]*(?:[-*#|]+[ ]|\d+[.][ ])?)"
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]+")
_NOT_PROSE: Final = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
#: of Python; ``tokenize`` takes ten times as long
_STRING_OR_COMMENT: Final = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(\#[^\n]*)""",
    re.DOTALL,
)
_TLA_COMMENT: Final = re.compile(r"\(\*.*?\*\)|\\\*[^\n]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A turn of phrase to avoid: its pattern, the reason, a suggestion, and an example of wrong and right.

    ``names`` says that the phrase matters in the name of a test only.
    """

    name: str
    pattern: re.Pattern[str]
    why: str
    instead: str
    wrong: str
    right: str
    names: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of prose and the line on which it begins."""

    text: str
    line: int
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A phrase that was found, and where."""

    path: str
    line: int
    words: str
    phrase: Phrase

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words!r} ({self.phrase.name}); {self.phrase.instead}"


@dataclass(frozen=True, slots=True)
class File:
    """A file that was read: how many words of prose it has, and the phrases to avoid in it."""

    path: str
    words: int
    hits: tuple[Hit, ...]

    @property
    def allowed(self) -> int:
        return 1 + self.words // PER_FILE


def _compiled(pattern: str) -> re.Pattern[str]:
    spaced = pattern.replace(" ", r"\s+")
    return re.compile(spaced.replace("{start}", _START), re.MULTILINE | re.IGNORECASE * ("{start}" not in pattern))


@cache
def phrases() -> tuple[Phrase, ...]:
    """Every phrase of the table."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["phrase"]
    return tuple(
        Phrase(
            row["name"],
            _compiled(row["pattern"]),
            row["why"],
            row["instead"],
            row["wrong"],
            row["right"],
            row.get("where") == "names",
        )
        for row in rows
    )


def found(passage: Passage, path: str) -> Iterator[Hit]:
    """Yield the phrases to avoid in one passage."""
    for phrase in phrases():
        if phrase.names and not passage.is_name:
            continue
        for match in phrase.pattern.finditer(passage.text):
            line = passage.line + passage.text.count("\n", 0, match.start())
            yield Hit(path, line, " ".join(match.group().split()), phrase)


def _of_markdown(text: str) -> Iterator[Passage]:
    # code keeps its line breaks, so that the lines after it are counted right
    yield Passage(_NOT_PROSE.sub(lambda code: "\n" * code.group().count("\n") or "X", text), 1)


def _of_tla(text: str) -> Iterator[Passage]:
    # a comment of several lines, each begun by \*, is one passage
    line, block = 0, [""]
    for comment in _TLA_COMMENT.finditer(text):
        at = text.count("\n", 0, comment.start()) + 1
        words = comment.group().strip("(*)\\ ")
        if comment.group().startswith("\\*") and at == line + len(block):
            block.append(words)
            continue
        yield Passage("\n".join(block), line)
        line, block = at, [words]
    yield Passage("\n".join(block), line)


def _comments(text: str) -> Iterator[Passage]:
    """Yield comments, those on consecutive lines as one passage."""
    line, block = 0, [""]
    at, end = 1, 0
    for token in _STRING_OR_COMMENT.finditer(text):
        if not token[1]:
            continue
        at, end = at + text.count("\n", end, token.start()), token.start()
        words = token[1].lstrip("#: ")
        if at == line + len(block) and not text[text.rfind("\n", 0, end) + 1 : end].strip():
            block.append(words)
            continue
        yield Passage("\n".join(block), line)
        line, block = at, [words]
    yield Passage("\n".join(block), line)


def _of_python(text: str) -> Iterator[Passage]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Passage(node.value, node.lineno)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Passage(node.name.removeprefix("test_").replace("_", " "), node.lineno, is_name=True)
    yield from _comments(text)


_READERS: Final = {".md": _of_markdown, ".py": _of_python, ".tla": _of_tla}


def read(path: Path, root: Path = ROOT) -> File:
    """Read the prose of one file, and find the phrases to avoid in it."""
    name = path.relative_to(root).as_posix()
    passages = list(_READERS[path.suffix](path.read_text(encoding="utf-8")))
    words = sum(len(_WORD.findall(each.text)) for each in passages)
    hits = sorted((hit for each in passages for hit in found(each, name)), key=lambda hit: hit.line)
    return File(name, words, tuple(hits))


def paths(places: Iterable[str] = PLACES, root: Path = ROOT) -> Iterator[Path]:
    """Yield the files with prose in these places, in order."""
    for place in places:
        top = root / place
        yield from [top] if top.is_file() else sorted(each for each in top.rglob("*") if each.suffix in _READERS)


def complaints(files: Iterable[File], not_yet: tuple[str, ...] = NOT_YET) -> list[str]:
    """Return the excess over the limits: the phrases of each file that has too many, and the rate over all files."""
    files = [file for file in files if not file.path.startswith(not_yet)]
    lines = [str(hit) for file in files if len(file.hits) > file.allowed for hit in file.hits]
    words, hits = sum(file.words for file in files), sum(len(file.hits) for file in files)
    if 1_000 * hits > RATE * words:
        lines.append(f"{hits} phrases in {words:,} words are more than {RATE} for each 1,000 words")
    return lines


def main(places: list[str]) -> int:
    """Print each phrase that was found, and each excess over the limits; the exit status is 1 if there is one."""
    root = Path.cwd() if places else ROOT
    for place in places:
        path = root / place
        if not path.is_dir() and not (path.is_file() and path.suffix in _READERS):
            print(f"{place} is neither a folder nor a file with the suffix {', '.join(_READERS)}")
            return 2
    files = [read(path.resolve()) for path in paths(places or PLACES, root)]
    beyond = complaints(files)
    for line in dict.fromkeys([*(str(hit) for file in files for hit in file.hits), *beyond]):
        print(line)
    words, hits = sum(file.words for file in files), sum(len(file.hits) for file in files)
    print(f"{hits} phrases to avoid in {words:,} words of {len(files):,} files: {'failed' if beyond else 'passed'}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
