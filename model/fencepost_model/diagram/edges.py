"""The arrows of a picture: transitions with the same ends become one arrow, and a transition from any state stays one.

An ``Edge`` has one source; a ``Bus`` joins the sources of a transition that several states have.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..machines import ANY, MachineSpec


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow. ``source`` is ``ANY`` for a transition from every state. ``labels``: trigger and rules, one line
    each."""

    source: str
    dest: str
    labels: tuple[str, ...]


def edges(spec: MachineSpec) -> list[Edge]:
    """Return the edges in the order in which the machine declares them."""
    found: dict[tuple[str, str], list[str]] = {}
    for transition in spec.transitions:
        label = f"{transition.trigger} ({', '.join(transition.rules)})"
        for source in transition.sources:
            found.setdefault((source, transition.dest), []).append(label)
    return [Edge(source, dest, tuple(labels)) for (source, dest), labels in found.items()]


@dataclass(frozen=True, slots=True)
class Bus:
    """Transitions that share sources and destination: one line in the picture that joins the sources."""

    sources: tuple[str, ...]
    dest: str
    labels: tuple[str, ...]


def buses(spec: MachineSpec) -> list[Bus]:
    """Return the buses in the order in which the machine declares them."""
    found: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for transition in spec.transitions:
        label = f"{transition.trigger} ({', '.join(transition.rules)})"
        found.setdefault((transition.sources, transition.dest), []).append(label)
    return [Bus(sources, dest, tuple(labels)) for (sources, dest), labels in found.items()]


def layers(spec: MachineSpec) -> list[str]:
    """Return the states from top to bottom: by distance from the first initial state, unreachable ones last."""
    arrows = [(edge.source, edge.dest) for edge in edges(spec)]
    order = [next(iter(spec.initial))]
    for state in order:
        order += [dest for source, dest in arrows if source == state and dest not in order]
        if len(order) == len(spec.states):
            return order
    inward = [dest for source, dest in arrows if source == ANY]
    rest = [state for state in spec.states if state not in order]
    following = [state for state in rest if state in inward and any(source == state for source, _ in arrows)]
    for start in following:
        chain = [start]
        for state in chain:
            chain += [dest for source, dest in arrows if source == state and dest not in order + chain]
        order += [state for state in chain if state not in order]
    return order + [state for state in rest if state not in order]
