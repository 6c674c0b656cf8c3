"""Liveness by fair cycles.

An infinite run breaks a liveness property, and in a finite graph such a run ends up in a cycle: a *lasso*. It counts
only if it is fair. Strongly connected components (SCCs) represent all cycles in them: a run may go round a whole SCC
for ever. So an SCC is fair to a weakly fair action if one of its edges is such a step, or if the action is disabled in
one of its states. Staying in one state for ever (stuttering) is a cycle too; it is fair if every fair action is
disabled there. With strong fairness, an SCC in which the action is enabled somewhere but never taken may still contain
a fair cycle that avoids those states. They are removed and the rest is decomposed again.

* ``P ~> Q`` is broken by a fair SCC in which Q never holds, reached without Q from a state with P;
* ``<>[] P`` is broken by a fair SCC in which P fails somewhere.

Most states are on no cycle. They are peeled off in whole arrays first; Tarjan's algorithm, which Python runs edge by
edge, gets the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graph import Edges, Graph, Step
from .interface import Fairness, LeadsTo, Settles
from .search import Exploration, Violation

Mask = NDArray[np.bool_]


def check_liveness(exploration: Exploration) -> list[Violation]:
    """Check the system's ``leads_to`` and ``settles``. Returns one violation for each property that fails.

    Raises ValueError unless the exploration is complete and kept its transitions.
    """
    graph = exploration.graph
    if graph.edges is None or not exploration.complete:
        raise ValueError("liveness needs a complete exploration that kept its transitions")
    properties = graph.system.properties
    if not properties.leads_to and not properties.settles:
        return []
    checker = _Checker(graph, graph.edges, properties.fairness)
    found: dict[str, Violation] = {}
    lassos = [
        *((each.name, partial(checker.leads_to, each)) for each in properties.leads_to),
        *((each.name, partial(checker.settles, each)) for each in properties.settles),
    ]
    for name, search in lassos:
        lasso = search() if name not in found else None
        if lasso is not None:
            found[name] = Violation(name, "liveness", *lasso)
    return list(found.values())


class _Checker:
    def __init__(self, graph: Graph, edges: Edges, fairness: Sequence[Fairness]) -> None:
        self.graph = graph
        self.start = edges.start
        self.target, self.label = edges.target, edges.label
        self.source = edges.sources
        self.fairness = fairness
        labels = graph.tables.labels.values
        changes = self.source != self.target
        self.takes: list[Mask] = []  #: for each fair action: which edges are steps of it
        self.enabled: list[Mask] = []  #: in which states such a step is enabled
        for each in fairness:
            covered = np.array([each.covers(label) for label, _ in labels], dtype=np.bool_)
            takes = covered[self.label] & changes if labels else changes
            self.takes.append(takes)
            enabled = np.zeros(graph.states, dtype=np.bool_)
            enabled[self.source[takes]] = True
            self.enabled.append(enabled)
        self.busy = np.zeros(graph.states, dtype=np.bool_)
        for enabled in self.enabled:
            self.busy |= enabled

    def holds(self, function: Callable[..., Any], reads: tuple[int, ...]) -> Mask:
        memo = self.graph.tables.memo(function, reads)
        return memo(self.graph.tables.read([column.view for column in self.graph.columns], reads)).astype(np.bool_)

    def leads_to(self, each: LeadsTo) -> tuple[list[Step], int] | None:
        inside = ~self.holds(each.goal, each.reads)
        seeds = inside & self.holds(each.premise, each.reads)
        reached = self.reach(seeds, inside)
        for component in self.fair(reached):
            return self.lasso(component, seeds, inside, None)
        return None

    def settles(self, each: Settles) -> tuple[list[Step], int] | None:
        bad = ~self.holds(each.goal, each.reads)
        everything = np.ones(self.graph.states, dtype=np.bool_)
        for component in self.fair(everything, bad):
            return self.lasso(component, None, everything, bad)
        return None

    def reach(self, seeds: Mask, inside: Mask) -> Mask:
        """Return the states reachable from the seeds by edges inside."""
        reached = seeds.copy()
        usable = inside[self.source] & inside[self.target]
        source, target = self.source[usable], self.target[usable]
        while True:
            new = target[reached[source] & ~reached[target]]
            if not new.size:
                return reached
            reached[new] = True

    def fair(self, inside: Mask, bad: Mask | None = None) -> Iterator[NDArray[np.int64]]:
        """Yield fair SCCs of the states inside that contain a bad state (any state if None), nearest first."""
        on_cycle = self.peel(inside)
        still = inside & ~on_cycle & ~self.busy
        stuck = still if bad is None else still & bad
        found: list[NDArray[np.int64]] = [np.array([state]) for state in np.flatnonzero(stuck)[:1]]
        for component in self.components(on_cycle):
            found.extend(self.fair_parts(component, bad))
        found.sort(key=lambda component: int(component.min()))
        yield from found

    def peel(self, inside: Mask) -> Mask:
        """Return the states inside that remain when states without an incoming or an outgoing edge are removed
        repeatedly. Self-loops do not count."""
        left = inside.copy()
        usable = inside[self.source] & inside[self.target] & (self.source != self.target)
        source, target = self.source[usable], self.target[usable]
        while True:
            has_in, has_out = np.zeros_like(left), np.zeros_like(left)
            has_out[source] = True
            has_in[target] = True
            kept = left & has_in & has_out
            if kept.sum() == left.sum():
                return left
            left = kept
            usable = left[source] & left[target]
            source, target = source[usable], target[usable]

    def fair_parts(self, component: NDArray[np.int64], bad: Mask | None) -> Iterator[NDArray[np.int64]]:
        """Yield the component if it is fair and has a bad state, else the parts that strong fairness leaves of it."""
        if bad is not None and not bad[component].any():
            return
        member = np.zeros(self.graph.states, dtype=np.bool_)
        member[component] = True
        inner = self.inner_edges(component, member)
        for each, takes, enabled in zip(self.fairness, self.takes, self.enabled, strict=True):
            if takes[inner].any():
                continue
            here = enabled[component]
            if here.all() or (each.strong and here.any()):
                if each.strong and not here.all():
                    member[component[here]] = False
                    rest = self.peel(member)
                    for part in self.components(rest):
                        yield from self.fair_parts(part, bad)
                    for state in component[~here & ~rest[component]]:
                        if not self.busy[state] and (bad is None or bad[state]):
                            yield np.array([state])
                return
        yield component

    def inner_edges(self, component: NDArray[np.int64], member: Mask) -> NDArray[np.int64]:
        places = [np.arange(self.start[state], self.start[state + 1]) for state in component]
        outgoing = np.concatenate(places) if places else np.empty(0, dtype=np.int64)
        inner: NDArray[np.int64] = outgoing[member[self.target[outgoing]]]
        return inner

    def components(self, inside: Mask) -> Iterator[NDArray[np.int64]]:
        """Yield the SCCs of the states inside (Tarjan, without recursion)."""
        start, target = self.start.tolist(), self.target.tolist()
        usable = inside.tolist()
        order: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        stacked: set[int] = set()
        for root in np.flatnonzero(inside).tolist():
            if root in order:
                continue
            order[root] = low[root] = len(order)
            stack.append(root)
            stacked.add(root)
            work = [(root, start[root])]
            while work:
                state, place = work.pop()
                if place < start[state + 1]:
                    work.append((state, place + 1))
                    following = target[place]
                    if not usable[following]:
                        continue
                    if following not in order:
                        order[following] = low[following] = len(order)
                        stack.append(following)
                        stacked.add(following)
                        work.append((following, start[following]))
                    elif following in stacked:
                        low[state] = min(low[state], order[following])
                    continue
                if work:
                    below = work[-1][0]
                    low[below] = min(low[below], low[state])
                if low[state] == order[state]:
                    at = _last(stack, state)
                    component = stack[at:]
                    del stack[at:]
                    stacked.difference_update(component)
                    yield np.array(sorted(component), dtype=np.int64)

    # ---- counter-examples ---------------------------------------------------------------------------------------

    def lasso(
        self, component: NDArray[np.int64], seeds: Mask | None, inside: Mask, bad: Mask | None
    ) -> tuple[list[Step], int]:
        """Return a run to the component and once round everything that makes it fair and bad, and where the loop
        begins."""
        members = set(component.tolist())
        if seeds is None:
            entry = int(component.min())
            states, labels = self.graph.path(entry), [int(self.graph.via.view[s]) for s in self.graph.path(entry)[1:]]
        else:
            nearest = self.walk(np.flatnonzero(seeds).tolist(), members, inside)
            head = self.graph.path(nearest[0][0])
            states = [*head, *nearest[0][1:]]
            labels = [*(int(self.graph.via.view[s]) for s in head[1:]), *nearest[1]]
        loop = len(states) - 1
        within = np.zeros(self.graph.states, dtype=np.bool_)
        within[component] = True
        if bad is not None and not bad[states[-1]]:
            self.go(states, labels, set(np.flatnonzero(within & bad).tolist()), within)
        inner = self.inner_edges(component, within)
        for takes, enabled in zip(self.takes, self.enabled, strict=True):
            if not enabled[component].all():
                if all(enabled[state] for state in states[loop:]):
                    self.go(states, labels, set(component[~enabled[component]].tolist()), within)
                continue
            edges = inner[takes[inner]]
            if edges.size:
                self.go(states, labels, {int(self.source[edges[0]])}, within)
                states.append(int(self.target[edges[0]]))
                labels.append(int(self.label[edges[0]]))
        if states[-1] != states[loop] or (len(states) - 1 == loop and len(members) > 1):
            self.go(states, labels, {states[loop]}, within)
        steps = [Step(None, self.graph.state(states[0]))]
        steps += [
            Step(self.graph.label(label), self.graph.state(state))
            for state, label in zip(states[1:], labels, strict=True)
        ]
        return steps, loop

    def go(self, states: list[int], labels: list[int], goals: set[int], within: Mask) -> None:
        """Extend the run to the nearest of the goals."""
        path, via = self.walk([states[-1]], goals, within)
        states.extend(path[1:])
        labels.extend(via)

    def walk(self, sources: Sequence[int], goals: set[int], within: Mask) -> tuple[list[int], list[int]]:
        """Return a shortest path inside from one of the sources to one of the goals: its states and its labels."""
        before: dict[int, tuple[int, int] | None] = dict.fromkeys(sources)
        queue = deque(sources)
        while queue:
            state = queue.popleft()
            if state in goals:
                path, via = [state], []
                while (step := before[path[-1]]) is not None:
                    path.append(step[0])
                    via.append(step[1])
                return path[::-1], via[::-1]
            for place in range(int(self.start[state]), int(self.start[state + 1])):
                following = int(self.target[place])
                if within[following] and following not in before:
                    before[following] = (state, int(self.label[place]))
                    queue.append(following)
        raise ValueError("no path inside; the component is not strongly connected")


def _last(stack: Sequence[int], state: int) -> int:
    """Return the place of a state on the stack; it is near the top."""
    at = len(stack) - 1
    while stack[at] != state:
        at -= 1
    return at
