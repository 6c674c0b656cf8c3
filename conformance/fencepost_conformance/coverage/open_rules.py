"""Tables of rules, each with when to ask for it, and the rules that a trace has not shown yet.

A trace is asked for some two hundred rules at each step. Most cannot be shown by most steps, which one question tells
for a whole table; and most of the others are shown early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

Test: TypeAlias = Callable[[Any], bool]  #: of a situation, classic or of a consumer group
Rules: TypeAlias = dict[str, Test]
#: tables, each with a test without which none of its rules holds
Tables: TypeAlias = tuple[tuple[Test, Rules], ...]


def always(_: object) -> bool:
    """The test of a table that is asked for at each step."""
    return True


def names(tables: Iterable[Tables]) -> Iterator[str]:
    """The rules of the tables."""
    return (rule for some in tables for _, rules in some for rule in rules)


class OpenRules:
    """Goes along with one trace; each table is asked for less and less."""

    def __init__(self) -> None:
        self._left: dict[int, Rules] = {}

    def shown(self, tables: Tables, situation: object) -> list[str]:
        """The rules of these tables that decided in this step and, of their table, in none before."""
        found: list[str] = []
        for asked, rules in tables:
            if not asked(situation):
                continue
            left = self._left.get(id(rules))
            if left is None:
                left = self._left[id(rules)] = dict(rules)
            for rule in [rule for rule, holds in left.items() if holds(situation)]:
                del left[rule]
                found.append(rule)
        return found
