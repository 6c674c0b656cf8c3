"""Tables of rules, each with when to ask for it, and the rules that a trace has not shown yet.

A trace is asked for some two hundred rules at each step. Most cannot be shown by most steps, which is known beforehand
for a whole table from what happened and from the parts of the observation that are not empty, or told by one question;
and most of the others are shown early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntFlag
from typing import Any, NamedTuple, TypeAlias

from ..targets.base import Observation

Test: TypeAlias = Callable[[Any], bool]  #: of a situation, classic or of a consumer group
Rules: TypeAlias = dict[str, Test]


class Part(IntFlag):
    """Parts of an observation that have something in them."""

    RECORDS = 1
    REPLIES = 2
    TIMERS = 4
    GROUPS = 8
    CONSUMER_GROUPS = 16
    TASKS = 32


def parts_of(seen: Observation) -> int:
    """The parts of the observation that are not empty, as ``Part`` counts them."""
    return (
        (1 if seen.records else 0)
        | (2 if seen.replies else 0)
        | (4 if seen.timers else 0)
        | (8 if seen.groups else 0)
        | (16 if seen.consumer_groups else 0)
        | (32 if seen.tasks else 0)
    )


def always(_: object) -> bool:
    """The test of a table that is asked for at each step."""
    return True


class Table(NamedTuple):
    """Some rules, and without what none of them holds: ``of``, the types of the event or of the request's body (any if
    there are none); ``needs``, one of these parts of the observation (nothing if it is 0); ``asked``."""

    rules: Rules
    asked: Test = always
    of: tuple[type, ...] = ()
    needs: int = 0


Tables: TypeAlias = tuple[Table, ...]


def names(tables: Iterable[Table]) -> Iterator[str]:
    """The rules of the tables."""
    return (rule for table in tables for rule in table.rules)


class Selection:
    """Of some tables those that a step can show at all."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._known: dict[tuple[type, int], Tables] = {}

    def of(self, happened: type, parts: int) -> Tables:
        """``happened``: the type of the event, or of a request's body; ``parts`` as ``parts_of``."""
        found = self._known.get((happened, parts))
        if found is None:
            found = self._known[happened, parts] = tuple(
                table
                for table in self.tables
                if (not table.of or happened in table.of) and (not table.needs or table.needs & parts)
            )
        return found


class OpenRules:
    """Goes along with one trace; each table is asked for less and less."""

    def __init__(self) -> None:
        self._left: dict[int, Rules] = {}

    def shown(self, tables: Sequence[Table], situation: object) -> list[str]:
        """The rules of these tables that decided in this step and, of their table, in none before."""
        found: list[str] = []
        known = self._left
        for rules, asked, _, _ in tables:
            left = known.get(id(rules), rules)
            if not left or not (asked is always or asked(situation)):
                continue
            shown = [rule for rule, holds in left.items() if holds(situation)]
            if shown:
                known[id(rules)] = {rule: holds for rule, holds in left.items() if rule not in shown}
                found += shown
        return found
