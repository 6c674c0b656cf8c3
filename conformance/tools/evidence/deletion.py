"""Deletes statements that cite rules from the core, one at a time, and finds the runs that then come out differently.

A statement with a rule ran in a run that agreed with Kafka. If the run without the statement has another outcome
(another reply, record, timer or state), the rule decided a step that agreed. If the deletion changes nothing, the
statement decided nothing there. A core that raises an error without the statement shows nothing either.

The mutants (``mutants``) name the rules that they break, and count in the same way.
"""

from __future__ import annotations

import ast
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final, NoReturn

from fencepost_conformance.run.mutants.mutant import Mutant, planted
from fencepost_conformance.run.mutants.replacement import (
    BESIDE,
    DoesNotApply,
    code_from,
    exchanged,
    exchanged_code,
    file_of,
)

from .places import ALTERED, Change, Citations, FunctionKey, Place, places
from .running import Ran

#: Limit for a run without the statement, in seconds of processor time; a longer one counts as endless.
_MOST_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Agreed:
    """A run that ended as Kafka's did. ``ran``: the code that ran in it. ``differs``: runs it again and returns whether
    the outcome differs. ``unshown``: prefixes of rule ids about which the run proves nothing."""

    ran: Ran
    differs: Callable[[], bool]
    unshown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deletion:
    """A change of the core that removes ``rule`` from it. It matters where one of ``lines`` of ``file`` ran, or, if
    there are none, one of ``functions``."""

    rule: str
    functions: frozenset[FunctionKey]
    lines: frozenset[tuple[str, int]]
    plant: Callable[[], AbstractContextManager[None]]

    def reached(self, ran: Ran) -> bool:
        """Whether the changed part of the core ran."""
        return not (self.lines.isdisjoint(ran.lines) if self.lines else self.functions.isdisjoint(ran.functions))


class _NoOtherValue(Exception):
    """There is no other value of this kind that the core could continue with."""


class _Endless(BaseException):
    """The run without the statement does not end."""


def deletions(folders: Iterable[Path], citations: Citations) -> list[Deletion]:
    """Return a deletion for each way to delete each place of the files below ``folders``."""
    return [
        Deletion(
            place.rule,
            frozenset([(str(place.file), place.first)]),
            frozenset((str(place.file), line) for line in place.lines),
            partial(_deleted, place, change),
        )
        for folder in folders
        for file in sorted(folder.rglob("*.py"))
        for place in places(file, file.read_text(encoding="utf-8"), citations)
        for change in place.changes
    ]


def of_mutants(mutants: Iterable[Mutant]) -> list[Deletion]:
    """Return a deletion for each mutant that applies to the core and names exactly one rule; with several it is not
    known which decides."""
    found = []
    for mutant in mutants:
        if len(mutant.rules) == 1:
            try:
                functions = frozenset(_key(function) for function in exchanged_code(mutant.replacements))
            except DoesNotApply:
                continue
            found.append(Deletion(*mutant.rules, functions, frozenset(), partial(planted, mutant)))
    return found


def deciding(
    deleted: Sequence[Deletion],
    runs: Sequence[Agreed],
    *,
    most: int,
    enough: int,
    advance: Callable[[int], None] = lambda _: None,
) -> Counter[str]:
    """Return the number of runs in which each rule decided, for rules that decided in any.

    ``most``: maximum number of runs for each deletion, among those that reach it; ``enough``: number of differing runs
    that is enough for a rule. ``advance`` is called after each deletion."""
    decided: dict[str, set[int]] = {}
    keeping = _keeping()
    for each in deleted:
        numbers = decided.setdefault(each.rule, set())
        if len(numbers) < enough:
            numbers.update(islice(_shown(each, runs, most), enough))
        for function in keeping:
            function.cache_clear()
        advance(1)
    return Counter({rule: len(numbers) for rule, numbers in decided.items() if numbers})


def _shown(each: Deletion, runs: Sequence[Agreed], most: int) -> Iterator[int]:
    """Yield the numbers of the runs that come out differently."""
    reached = (number for number, run in enumerate(runs) if each.reached(run.ran))
    shown = (number for number in reached if not each.rule.startswith(runs[number].unshown))
    for number in islice(shown, most):
        try:
            differs = _differs_without(each, runs[number])
        except (DoesNotApply, _Endless):
            return
        if differs:
            yield number


def _differs_without(each: Deletion, run: Agreed) -> bool:
    with each.plant():
        try:
            with _bounded():
                return run.differs()
        except Exception:  # the broken core proves nothing about the rule
            return False


@contextmanager
def _bounded() -> Iterator[None]:
    """Raise ``_Endless`` in code that takes too long, by the process's clock, so that load does not count."""

    def end(*_: object) -> NoReturn:
        raise _Endless

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _keeping() -> list[Any]:
    """Return the functions of the product with a cache, which may hold results of a changed function."""
    modules = [module for name, module in sys.modules.items() if name.startswith(("fencepost.", *BESIDE))]
    return [value for module in modules for value in vars(module).values() if hasattr(value, "cache_clear")]


def _key(function: FunctionType) -> FunctionKey:
    return function.__code__.co_filename, function.__code__.co_firstlineno


@contextmanager
def _deleted(place: Place, change: Change) -> Iterator[None]:
    """Remove the place from the core within the block. Raises ``DoesNotApply``."""
    function, code = _without(place, change)
    function.__globals__[ALTERED] = altered
    try:
        with exchanged({function: code}):
            yield
    finally:
        del function.__globals__[ALTERED]


def _without(place: Place, change: Change) -> tuple[FunctionType, CodeType]:
    tree = ast.parse(place.file.read_text(encoding="utf-8"))
    change(tree)
    compiled = compile(ast.fix_missing_locations(tree), str(place.file), "exec", dont_inherit=True)
    file = file_of(place.file)
    try:
        return code_from(compiled, file, place.where, {ALTERED})
    except (ValueError, KeyError) as reason:  # two of that name, a getter and a setter
        raise DoesNotApply(f"{place.where} in {file} is not one function") from reason


def altered(value: Any) -> Any:
    """Return another value of the same kind, for a plain value or a collection. There is none for objects that hold a
    state, on which every step depends. Raises ``_NoOtherValue`` for the others; the run then shows nothing."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, Enum):
        members = list(type(value))
        return members[(members.index(value) + 1) % len(members)]
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value + "?"
    if type(value) in {tuple, list, frozenset, set, dict} and value:
        return type(value)()
    raise _NoOtherValue(type(value).__name__)
