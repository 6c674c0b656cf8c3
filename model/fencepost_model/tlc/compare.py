"""Compare two labelled state graphs as sets of states and sets of (state, action, state)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from .dump import LabelledGraph
from .values import TlaValue, show

_SHOWN = 3  #: differences of each kind that are printed in full


@dataclass(frozen=True, slots=True)
class Difference:
    """A state or transition that only one graph has, with a shortest path to it in that graph.

    ``path`` lists actions from an initial state; ``state`` is where the path ends. For a transition, ``action`` and
    ``target`` follow, and ``target`` holds only the variables that the step changes.
    """

    side: str
    kind: str  #: "state" or "transition"
    path: tuple[str, ...]
    state: dict[str, TlaValue]
    action: str | None = None
    target: dict[str, TlaValue] | None = None

    def text(self) -> str:
        lines = [f"only {self.side} has this {self.kind}, after {' → '.join(self.path) or 'no step'}:"]
        lines += [f"    {name} = {show(value)}" for name, value in self.state.items()]
        if self.target is not None:
            lines.append(f"  {self.action} gives")
            lines += [f"    {name} = {show(value)}" for name, value in self.target.items()] or ["    the same state"]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two graphs."""

    left: str
    right: str
    states: int  #: in both
    transitions: int  #: in both
    left_states: int  #: only on the left
    right_states: int
    left_transitions: int
    right_transitions: int
    initial_differ: bool
    differences: tuple[Difference, ...]  #: the nearest few

    @property
    def equal(self) -> bool:
        return not (
            self.left_states
            or self.right_states
            or self.left_transitions
            or self.right_transitions
            or self.initial_differ
        )


def compare(left: LabelledGraph, right: LabelledGraph, names: tuple[str, str] = ("left", "right")) -> Comparison:
    """Compare two graphs, which must share their ``numbers``."""
    if left.numbers is not right.numbers:
        raise ValueError("graphs can be compared only if their values were numbered together")
    sides = (left, right)
    states = tuple({*side.states} for side in sides)
    edges = tuple(
        {(side.states[source], action, side.states[target]) for source, action, target in side.edges} for side in sides
    )
    initial = tuple({side.states[each] for each in side.initial} for side in sides)
    both = states[0] & states[1]
    differences: list[Difference] = []
    for here, there in ((0, 1), (1, 0)):
        differences += _differences(sides[here], names[here], states[here] - both, edges[here] - edges[there], both)
    differences.sort(key=lambda difference: len(difference.path))
    return Comparison(
        names[0],
        names[1],
        len(both),
        len(edges[0] & edges[1]),
        len(states[0] - both),
        len(states[1] - both),
        len(edges[0] - edges[1]),
        len(edges[1] - edges[0]),
        initial[0] != initial[1],
        tuple(differences),
    )


def _differences(
    graph: LabelledGraph,
    side: str,
    extra_states: set[tuple[int, ...]],
    extra_edges: set[tuple[tuple[int, ...], str, tuple[int, ...]]],
    both: set[tuple[int, ...]],
) -> Iterable[Difference]:
    """Return the differences nearest to an initial state: edges that leave common states first, else states."""
    if not extra_states and not extra_edges:
        return []
    paths = _paths(graph)
    numbers = graph.numbers
    leaving = [edge for edge in extra_edges if edge[0] in both]
    if leaving:
        leaving.sort(key=lambda edge: (len(paths[edge[0]]), edge[1], edge[0], edge[2]))
        return [
            Difference(
                side,
                "transition",
                paths[source],
                numbers.state(source),
                action,
                {
                    name: values[there]
                    for name, values, here, there in zip(numbers.variables, numbers.values, source, target, strict=True)
                    if here != there
                },
            )
            for source, action, target in leaving[:_SHOWN]
        ]
    nearest = sorted(extra_states, key=lambda state: (len(paths[state]), state))[:_SHOWN]
    return [Difference(side, "state", paths[state], numbers.state(state)) for state in nearest]


def _paths(graph: LabelledGraph) -> dict[tuple[int, ...], tuple[str, ...]]:
    """Return a shortest path of actions to each state."""
    following: dict[int, list[tuple[str, int]]] = {}
    for source, action, target in sorted(graph.edges):
        following.setdefault(source, []).append((action, target))
    before: dict[int, tuple[int, str] | None] = dict.fromkeys(sorted(graph.initial))
    queue = deque(before)
    while queue:
        source = queue.popleft()
        for action, target in following.get(source, ()):
            if target not in before:
                before[target] = (source, action)
                queue.append(target)

    class Paths(dict[tuple[int, ...], tuple[str, ...]]):
        def __missing__(self, state: tuple[int, ...]) -> tuple[str, ...]:
            path: list[str] = []
            at = before[place[state]]
            while at is not None:
                path.append(at[1])
                at = before[at[0]]
            self[state] = tuple(reversed(path))
            return self[state]

    place = {state: number for number, state in enumerate(graph.states)}
    return Paths()
