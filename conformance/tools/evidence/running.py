"""Notes which functions of the core run, and sums up which rules decided and which only ran."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from fencepost.rulebook.book import cited_lines, read_book
from fencepost_conformance.common import repository
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.coverage.catalogue import CANNOT_OCCUR

from .places import Citations, FunctionKey


def citations() -> Citations:
    """Return a function that finds the rules of the checkout's book in a text."""
    book = read_book(repository.root() / "docs" / "rules")
    return lambda text: cited_lines(text, book)


def rules_of_functions(folder: Path, rules_in: Citations) -> dict[FunctionKey, set[str]]:
    """Return the rules that each function below ``folder`` cites, by its file and first line as in its code object.

    ``rules_in``: returns the rules of a text, each with its line."""
    found: dict[FunctionKey, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        cited = list(rules_in(text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                inside = {rule for rule, line in cited if node.lineno <= line <= (node.end_lineno or node.lineno)}
                if inside:
                    found[str(path), first] = inside
    return found


@dataclass(slots=True)
class Ran:
    """``functions`` that ran, by file and first line, and those of the watched ``lines`` that ran."""

    functions: set[FunctionKey] = field(default_factory=set)
    lines: set[tuple[str, int]] = field(default_factory=set)


@contextmanager
def noted(into: Ran, home: Path, watched: Container[FunctionKey] = ()) -> Iterator[None]:
    """Note every function of files below ``home`` that runs within the block, and the lines of ``watched`` ones."""
    prefix = str(home)

    def call(frame: FrameType, _: str, __: Any) -> Callable[[FrameType, str, Any], Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(prefix):
            return None
        key = code.co_filename, code.co_firstlineno
        into.functions.add(key)
        return line if key in watched else None

    def line(frame: FrameType, event: str, _: Any) -> Callable[[FrameType, str, Any], Any]:
        if event == "line":
            into.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)


def levels(decided: Counter[str], ran: Counter[str]) -> dict[str, dict[str, int]]:
    """Return the contents of a file of evidence: ``rules``, which decided, and ``ran``, without those that cannot
    occur. Raises ``CannotRun`` if one of these decided."""
    return {
        "rules": possible(decided),
        "ran": dict(sorted((rule, count) for rule, count in ran.items() if rule not in CANNOT_OCCUR)),
    }


def possible(decided: Counter[str]) -> dict[str, int]:
    """Return the counts of the rules that decided, in order. Raises ``CannotRun`` if one of them cannot occur: then
    either that claim or the evidence is wrong."""
    wrong = sorted(decided.keys() & CANNOT_OCCUR.keys())
    if wrong:
        raise CannotRun(
            f"{', '.join(wrong)} decided in steps that agreed, but coverage/catalogue.py says that it cannot occur: "
            "correct CANNOT_OCCUR, or the citation"
        )
    return dict(sorted(decided.items()))
