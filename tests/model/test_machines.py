"""The machines as data, the machine of the library, the compiled table and the diagrams agree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest
from transitions import MachineError

from fencepost.coordinator.classic.group import VALID_PREVIOUS_STATES
from fencepost.member.consumer.turn import LEGAL
from fencepost_model.diagram import dot, mermaid, svg
from fencepost_model.machines import ANY, CLASSIC_GROUP, MACHINES, MachineSpec, Transition, build
from fencepost_model.table import IllegalTransition, compiled, step

SPECS = list(MACHINES.values())
DOCS: Final = Path(__file__).parents[2] / "docs"
_SHOWN: Final = re.compile(r"<!-- fencepost diagram (\S+) -->\n```mermaid\n(.*?)```\n", re.DOTALL)
#: The diagrams in the docs, by machine. That of a position is a picture (tests/unit/reader/test_machine.py).
SHOWN: Final = [found for page in sorted(DOCS.glob("*.md")) for found in _SHOWN.findall(page.read_text("utf-8"))]


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


def test_the_docs_show_each_machine_once() -> None:
    assert sorted(name for name, _ in SHOWN) == sorted(set(MACHINES) - {"position"})


@pytest.mark.parametrize(("name", "diagram"), SHOWN, ids=[name for name, _ in SHOWN])
def test_the_diagrams_in_the_docs_are_current(name: str, diagram: str) -> None:
    assert diagram == mermaid(MACHINES[name]), f"replace it by the output of: fencepost diagram {name}"


def test_a_classic_group_of_the_core_has_the_transitions_of_its_machine() -> None:
    """The core removes a group instead of making it Dead."""
    table = {(source.value, dest.value) for dest, sources in VALID_PREVIOUS_STATES.items() for source in sources}
    assert table == {(source, dest) for source, _, dest, _ in CLASSIC_GROUP.expand() if dest != "Dead"}


def test_a_member_of_the_core_has_the_transitions_of_its_machine() -> None:
    """Staying in a state is always legal (N-ST-30)."""
    table = {(source.name, dest.name) for source, dests in LEGAL.items() for dest in dests}
    arrows = {(source, dest) for source, _, dest, _ in MACHINES["consumer-client"].expand()}
    assert table == {(source, dest) for source, dest in arrows if source != dest}
