"""Read the state graph that TLC writes with ``-dump dot,actionlabels``.

The file repeats the same values of the same variables in state after state. So each printed value is parsed once and
then represented by a number. A state is a tuple of numbers; an edge is two of them and the name of an action. The file
is read line by line, as it is far larger than what is kept of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Final

from .values import TlaValue, parse


@dataclass(slots=True)
class ValueNumbers:
    """Values of each variable and their numbers, shared by graphs that will be compared."""

    variables: tuple[str, ...]
    values: list[list[TlaValue]] = field(init=False)
    _numbers: list[dict[TlaValue, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.values = [[] for _ in self.variables]
        self._numbers = [{} for _ in self.variables]

    def number(self, variable: int, value: TlaValue) -> int:
        numbers = self._numbers[variable]
        known = numbers.get(value)
        if known is None:
            known = numbers[value] = len(numbers)
            self.values[variable].append(value)
        return known

    def state(self, numbers: tuple[int, ...]) -> dict[str, TlaValue]:
        return {name: values[number] for name, values, number in zip(self.variables, self.values, numbers, strict=True)}


@dataclass(slots=True)
class LabelledGraph:
    """A state graph: states as tuples of value numbers, edges as (source, action, target) with action names."""

    numbers: ValueNumbers
    states: list[tuple[int, ...]]
    initial: set[int]
    edges: set[tuple[int, str, int]]


_NODE: Final = re.compile(r'^(-?\d+) \[label="(.*)"(,style = filled)?\];?$')
_EDGE: Final = re.compile(r'^(-?\d+) -> (-?\d+) \[label="([^"]*)"')
_SEPARATOR: Final = "\\n/\\\\ "


def read_dump(path: Path, variables: tuple[str, ...], watch: Callable[[int], None] | None = None) -> LabelledGraph:
    """Return the graph of the file. ``watch`` is called from time to time with the number of bytes read."""
    numbers = ValueNumbers(variables)
    place = {name: number for number, name in enumerate(variables)}
    parsed: list[dict[str, int]] = [{} for _ in variables]
    found: dict[str, int] = {}  # TLC's name of a state to its number; an edge may come before its states
    states: dict[int, tuple[int, ...]] = {}
    initial: set[int] = set()
    edges: set[tuple[int, str, int]] = set()

    def place_of(node: str) -> int:
        return found.setdefault(node, len(found))

    for line in _lines(path, watch):
        edge = _EDGE.match(line)
        if edge is not None:
            edges.add((place_of(edge[1]), intern(edge[3]), place_of(edge[2])))
            continue
        node = _NODE.match(line)
        if node is None:
            continue
        state = place_of(node[1])
        if state not in states:
            row = [-1] * len(variables)
            for part in (_SEPARATOR + node[2].removeprefix("/\\\\ ")).split(_SEPARATOR)[1:]:
                name, _, text = part.partition(" = ")
                variable = place[name]
                seen = parsed[variable].get(text)
                if seen is None:
                    seen = parsed[variable][text] = numbers.number(variable, parse(_unescape(text)))
                row[variable] = seen
            states[state] = tuple(row)
        if node[3]:
            initial.add(state)
    return LabelledGraph(numbers, [states[each] for each in range(len(found))], initial, edges)


def _unescape(text: str) -> str:
    return text.replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\")


def _lines(path: Path, watch: Callable[[int], None] | None) -> Iterator[str]:
    read = 0
    with path.open(encoding="utf-8", newline="\n") as file:
        for count, line in enumerate(file):
            read += len(line)
            if watch is not None and count % 50_000 == 0:
                watch(read)
            yield line.rstrip("\n")
