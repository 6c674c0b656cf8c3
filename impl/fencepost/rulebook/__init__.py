"""The rule book in the package: ``rules["C-JOIN-43"]`` is the rule whose id an error or a trace contains.

Its text is ``docs/rules``: a checkout reads it there, a wheel contains a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from .book import Rule, read_book

__all__ = ["Rule", "RuleBook", "rules"]

#: the copy in a wheel, and the text of a checkout
_PACKED: Final = Path(__file__).with_name("text")
_SOURCE: Final = Path(__file__).parents[3] / "docs" / "rules"
_ALIKE: Final = 0.8


class RuleBook(Mapping[str, Rule]):
    """All rules by id, in the order of the book. The files in ``folder`` are read at the first access."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Rule] | None = None

    @property
    def _rules(self) -> dict[str, Rule]:
        if self._read is None:
            self._read = read_book(self._folder)
        if not self._read:
            raise FileNotFoundError(f"the rule book is missing in {self._folder}; install the package again")
        return self._read

    def __getitem__(self, rule_id: str) -> Rule:
        """Return a rule. Raises ``KeyError`` for an unknown id, with similar ids in the message."""
        rule = self._rules.get(rule_id)
        if rule is None:
            raise KeyError(f"no rule {rule_id!r}; {self._hint(rule_id)}")
        return rule

    def __contains__(self, rule_id: object) -> bool:
        return rule_id in self._rules

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __repr__(self) -> str:
        return f"<{len(self)} rules of {self._folder}>"

    def _hint(self, rule_id: object) -> str:
        if not isinstance(rule_id, str):
            return f"a rule id must be a str, such as 'C-JOIN-43' (got {type(rule_id).__name__})"
        word = rule_id.strip().upper()
        if word in self._rules:
            return f"did you mean {word!r}?"
        parts = [each for each in self._rules if each[:-1] == word]  # C-JOIN-38 has parts a to h
        alike = parts or get_close_matches(word, self._rules, cutoff=_ALIKE)
        return f"did you mean {' or '.join(map(repr, alike))}?" if alike else "list(fencepost.rules) has all ids"


rules: Final = RuleBook(_PACKED if _PACKED.is_dir() else _SOURCE)
