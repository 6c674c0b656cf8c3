"""An explored state graph as the data of a page: tables of values, states as rows of numbers, transitions by source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencepost_model.explore.graph import Edges, Graph
from fencepost_model.explore.search import Violation
from fencepost_model.system.checking import Explored
from fencepost_model.system.families import family_of
from fencepost_model.system.variables import numbered
from fencepost_model.tlc.dump import ValueNumbers
from fencepost_model.tlc.values import Function


def graph_data(name: str, explored: Explored) -> dict[str, Any]:
    """Return the graph as JSON data. It needs an exploration with its transitions.

    ``states[i][j]`` is a place in ``values[j]``, the values of variable j. The transitions of state i are those from
    ``start[i]`` up to ``start[i + 1]``, each with a ``target`` and a place in ``labels``. ``parent`` and ``via`` lead
    back to an initial state (-1). States from ``expanded`` on have successors that were not explored.
    """
    found, graph = explored.found, explored.found.graph
    edges = graph.edges
    if edges is None:
        raise ValueError("the graph was explored without its transitions; explore with transitions=True")
    makers = family_of(explored.system.config).makers(explored.system)
    numbers = ValueNumbers(tuple(makers))
    states = numbered(makers, graph, numbers)
    of_label = {number: place for place, number in enumerate(dict.fromkeys(edges.label.tolist()))}
    return {
        "name": name,
        "variables": list(makers),
        "values": [[plain(value) for value in column] for column in numbers.values],
        "states": states,
        "initial": graph.initial,
        "start": edges.start.tolist(),
        "target": edges.target.tolist(),
        "label": [of_label[number] for number in edges.label.tolist()],
        "labels": [" ".join(graph.label(number)) for number in of_label],
        "parent": graph.parent.view.tolist(),
        "via": [of_label.get(each, -1) if each >= 0 else -1 for each in graph.via.view.tolist()],
        "expanded": graph.states if found.complete else _expanded(edges),
        "stopped": found.stopped or "",
        "broken": _broken(graph, found.violations),
    }


def plain(value: Any) -> Any:
    """Return a value as JavaScript reads it: records and functions are objects, sets and sequences are arrays."""
    if isinstance(value, Function):
        return {str(key): plain(each) for key, each in sorted(value, key=repr)}
    if isinstance(value, frozenset):
        return sorted((plain(each) for each in value), key=repr)
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return value


def _expanded(edges: Edges) -> int:
    sources: Sequence[int] = edges.sources.tolist()
    return sources[-1] + 1 if sources else 0


def _broken(graph: Graph, violations: Sequence[Violation]) -> list[dict[str, Any]]:
    """Return each broken property with the numbers of the states that lead to it."""
    if not violations:
        return []
    numbers = {graph.state(number): number for number in range(graph.states)}
    return [
        {
            "property": each.property,
            "path": [numbers[step.state] for step in each.trace],
            "steps": [" ".join(step.label or ()) for step in each.trace],
        }
        for each in violations
    ]
