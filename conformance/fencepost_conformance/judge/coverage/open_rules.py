"""Tables of rules with their conditions, and the rules that a trace has not shown yet.

Each step of a trace is tested for some two hundred rules. Most steps cannot show most rules. For a whole table that is
known from the kind of event and the non-empty parts of the observation, or by one test. Most other rules are shown
early, and are then no longer tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntFlag
from typing import Any, NamedTuple, TypeAlias

from ...traces.observation import Observation

Test: TypeAlias = Callable[[Any], bool]  #: a test of a situation, classic or of a consumer group
Rules: TypeAlias = dict[str, Test]


class Part(IntFlag):
    """The non-empty parts of an observation."""

    RECORDS = 1
    REPLIES = 2
    TIMERS = 4
    GROUPS = 8
    CONSUMER_GROUPS = 16
    TASKS = 32


def parts_of(seen: Observation) -> int:
    """Return the non-empty parts of the observation, as bits of ``Part``."""
    return (
        (1 if seen.records else 0)
        | (2 if seen.replies else 0)
        | (4 if seen.timers else 0)
        | (8 if seen.groups else 0)
        | (16 if seen.consumer_groups else 0)
        | (32 if seen.tasks else 0)
    )


def always(_: object) -> bool:
    """The test of a table that applies to every step."""
    return True


class Table(NamedTuple):
    """Some rules, with conditions that all of them need. ``of``: types of the event or of the request's body (empty:
    any); ``needs``: one of these parts of the observation (0: none); ``asked``: a test."""

    rules: Rules
    asked: Test = always
    of: tuple[type, ...] = ()
    needs: int = 0


Tables: TypeAlias = tuple[Table, ...]


def names(tables: Iterable[Table]) -> Iterator[str]:
    """Return the rules of the tables."""
    return (rule for table in tables for rule in table.rules)


class Selection:
    """Selects the tables that a step can show at all."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._known: dict[tuple[type, int], Tables] = {}

    def of(self, happened: type, parts: int) -> Tables:
        """Return the tables. ``happened``: type of the event, or of a request's body; ``parts``: as in ``parts_of``."""
        found = self._known.get((happened, parts))
        if found is None:
            found = self._known[happened, parts] = tuple(
                table
                for table in self.tables
                if (not table.of or happened in table.of) and (not table.needs or table.needs & parts)
            )
        return found


class OpenRules:
    """Follows one trace; each table is tested for fewer and fewer rules."""

    def __init__(self) -> None:
        self._left: dict[int, Rules] = {}

    def shown(self, tables: Sequence[Table], situation: object) -> list[str]:
        """Return the rules of these tables that decided in this step and, of their table, in none before."""
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
