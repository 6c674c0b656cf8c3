"""The machines as data, the machine of the library, the compiled table and the diagrams agree."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from transitions import MachineError

from fencepost_model.diagram import dot, mermaid, svg
from fencepost_model.machines import ANY, CLASSIC_GROUP, MACHINES, MachineSpec, Transition, build
from fencepost_model.table import IllegalTransition, compiled, step

SPECS = list(MACHINES.values())


class _Driven:
    """An object whose state a ``transitions`` machine changes."""

    state: str


@pytest.mark.parametrize("spec", SPECS, ids=list(MACHINES))
def test_table_and_machine_agree_on_every_trigger_in_every_state(spec: MachineSpec) -> None:
    table = compiled(spec)
    for state in spec.states:
        for trigger in table:
            driven = _Driven()
            build(spec, driven, initial=state)
            try:
                getattr(driven, trigger)()
                moved: str | None = driven.state
            except MachineError:
                moved = None
            try:
                looked_up: str | None = step(table, state, trigger)
            except IllegalTransition:
                looked_up = None
            assert moved == looked_up, (state, trigger)


@pytest.mark.parametrize("spec", SPECS, ids=list(MACHINES))
def test_only_declared_states_occur_and_each_can_be_reached(spec: MachineSpec) -> None:
    reached = set(spec.initial)
    for _ in spec.states:
        reached |= {dest for source, _, dest, _ in spec.expand() if source in reached}
    assert reached == set(spec.states)
    named = {state for t in spec.transitions for state in (*t.sources, t.dest)} - {ANY}
    assert named <= set(spec.states)


def test_illegal_transitions_of_the_rule_book() -> None:
    """The illegal transitions that C-ST-17 and C-ST-25 list are absent."""
    arrows = {(source, dest) for source, _, dest, _ in CLASSIC_GROUP.expand()}
    for source, dest in [
        ("Empty", "Stable"),
        ("Empty", "CompletingRebalance"),
        ("Stable", "CompletingRebalance"),
        ("Stable", "Empty"),
        ("CompletingRebalance", "Empty"),
        ("PreparingRebalance", "PreparingRebalance"),
        ("Empty", "Empty"),
        ("Dead", "Empty"),
        ("Dead", "PreparingRebalance"),
    ]:
        assert (source, dest) not in arrows
    assert ("Dead", "Dead") in arrows


def test_an_ambiguous_machine_is_refused() -> None:
    spec = MachineSpec(
        "two-ways",
        "",
        {"a": (), "b": ()},
        {"a": ()},
        (Transition("go", ("a",), "b", ()), Transition("go", (ANY,), "a", ())),
    )
    with pytest.raises(ValueError, match="leads to two states"):
        compiled(spec)


@pytest.mark.parametrize("spec", SPECS, ids=list(MACHINES))
def test_pictures_show_every_state_and_trigger(spec: MachineSpec) -> None:
    picture = svg(spec)
    ElementTree.fromstring(picture)
    for text in (picture, mermaid(spec), dot(spec)):
        for name in [*spec.states, *(t.trigger for t in spec.transitions)]:
            assert name in text
