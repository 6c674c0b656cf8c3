"""Explored states as the specification's variables, each made of a few components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..explore.graph import Graph
from ..tlc.dump import LabelledGraph, ValueNumbers
from ..tlc.values import TlaValue, function

#: For each variable, in order, the components that it is made of, and the function.
Makers: TypeAlias = Mapping[str, tuple[tuple[int, ...], Callable[..., TlaValue]]]


def values_in(makers: Makers, state: tuple[Any, ...]) -> dict[str, TlaValue]:
    """Return the values of the variables in a state."""
    return {name: make(*(state[each] for each in reads)) for name, (reads, make) in makers.items()}


def graph_over(makers: Makers, graph: Graph, numbers: ValueNumbers) -> LabelledGraph:
    """Return the explored graph over the variables. It needs the transitions."""
    if numbers.variables != tuple(makers):
        raise ValueError(f"numbers are for {numbers.variables}, not for {tuple(makers)}")
    states = numbered(makers, graph, numbers)
    edges = {(source, label[0], target) for source, label, _, target in graph.transitions()}
    return LabelledGraph(numbers, states, {*range(graph.initial)}, edges)


def numbered(makers: Makers, graph: Graph, numbers: ValueNumbers) -> list[tuple[int, ...]]:
    """Return the explored states as numbers of the variables' values."""
    columns = [column.view.tolist() for column in graph.columns]
    values = graph.tables.values
    rows = []
    for place, (reads, make) in enumerate(makers.values()):
        known: dict[tuple[int, ...], int] = {}
        row = []
        for key in zip(*(columns[component] for component in reads), strict=True):
            number = known.get(key)
            if number is None:
                made = make(*(values[component][each] for component, each in zip(reads, key, strict=True)))
                number = known[key] = numbers.number(place, made)
            row.append(number)
        rows.append(row)
    return list(zip(*rows, strict=True))


def each_client(names: Sequence[str], of: Callable[[Any], TlaValue]) -> Callable[..., TlaValue]:
    """Return the maker of a variable that is a function of the clients, from their endpoints."""
    return lambda *endpoints: function((name, of(endpoint)) for name, endpoint in zip(names, endpoints, strict=True))


def under_way(names: Sequence[str], what: str, of: Callable[[str, Any], TlaValue]) -> Callable[..., TlaValue]:
    """Return the maker of a variable that is a set of messages, from those in the endpoints."""
    return lambda *endpoints: frozenset(
        of(name, message)
        for name, endpoint in zip(names, endpoints, strict=True)
        for message in getattr(endpoint, what)
    )
