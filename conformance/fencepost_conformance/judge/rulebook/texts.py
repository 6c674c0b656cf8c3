"""The rule book wherever the program runs: from the checkout, or from the installed package."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from fencepost.rulebook import rules
from fencepost.rulebook.book import Rule, citations, read_book

from ...common import repository
from ...common.errors import CannotRun
from ...common.nearest import nearest

_BRIEF: Final = 240


def source() -> Path | None:
    """Return the checkout, None if there is only the installed package."""
    try:
        return repository.root()
    except CannotRun:
        return None


@cache
def rule_book() -> dict[str, Rule]:
    """Return all rules by id, from the current checkout, else from the package. Raises ``CannotRun`` without a rule
    book."""
    root = source()
    try:
        return dict(rules) if root is None else read_book(root / "docs" / "rules")
    except FileNotFoundError as missing:
        raise CannotRun(str(missing)) from None


def brief(rule_id: str) -> str:
    """Return the text of a rule in one line, cut if it is long; empty for an unknown id."""
    try:
        rule = rule_book().get(rule_id)
    except CannotRun:
        return ""
    if rule is None:
        return ""
    return rule.plain if len(rule.plain) <= _BRIEF else f"{rule.plain[:_BRIEF].rsplit(' ', 1)[0]} …"


def rule_lines(rule_ids: Iterable[str]) -> list[str]:
    """Return each rule on a line, its text after its id."""
    return [f"{rule_id}: {text}" if (text := brief(rule_id)) else rule_id for rule_id in rule_ids]


def chosen(word: str) -> list[Rule]:
    """Return the rules that a word of the command line stands for, ignoring case: one id, a range (``C-JOIN-40..43``),
    several (``C-HB-11/12``), or a prefix (``C-JOIN``). Raises ``CannotRun`` if there are none."""
    book = rule_book()
    by_folded = {rule_id.casefold(): rule_id for rule_id in book}
    folded = word.casefold()
    if folded in by_folded:
        return [book[by_folded[folded]]]
    cited = [book[rule_id] for rule_id in dict.fromkeys(citations(word.upper(), book))]
    begun = [rule for rule_id, rule in book.items() if rule_id.casefold().startswith(folded)]
    if found := cited or begun:
        return found
    like = nearest(word, book)
    guess = f"the most similar are {', '.join(like)}" if like else "docs/rules/README.md lists the prefixes"
    raise CannotRun(f"no rule {word!r}, and none with that prefix; {guess}")
