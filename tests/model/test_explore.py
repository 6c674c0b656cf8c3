"""The explorer on small systems whose graphs are known."""

from __future__ import annotations

import _thread
import signal
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples_explore import Counters, TwoPhase

from fencepost_model.explore.index import Index
from fencepost_model.explore.interface import (
    Invariant,
    PlainSystem,
    Properties,
    StepInvariant,
    Witness,
    successors,
)
from fencepost_model.explore.search import Limits, explore


@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 20), max_size=200), max_size=8))
def test_index_numbers_keys_in_order_of_first_occurrence(batches: list[list[int]]) -> None:
    index, known = Index(4), {}
    for batch in batches:
        numbers, new = index.number(np.array(batch, dtype=np.uint64))
        fresh = [place for place, key in enumerate(batch) if key not in known and key not in batch[:place]]
        for key in batch:
            known.setdefault(key, len(known))
        assert new.tolist() == fresh
        assert numbers.tolist() == [known[key] for key in batch]
    assert index.count == len(known)
    assert index.find(np.array([2**63 + 7], dtype=np.uint64)).tolist() == [known.get(2**63 + 7, -1)]


@pytest.mark.parametrize(("members", "states"), [(2, 56), (3, 288), (5, 8832)])
def test_two_phase_commit_has_the_known_number_of_states(members: int, states: int) -> None:
    found = explore(TwoPhase(members))
    assert (found.states, found.complete, found.violations, found.unseen) == (states, True, [], [])


@pytest.mark.parametrize("block", [1, 7, 1 << 14])
def test_results_do_not_depend_on_the_block(block: int) -> None:
    one, other = explore(TwoPhase(3), transitions=True, block=block), explore(TwoPhase(3), transitions=True)
    assert (one.states, one.generated, one.depth, one.taken) == (
        other.states,
        other.generated,
        other.depth,
        other.taken,
    )
    graphs = [
        {(e.graph.state(a), label, e.graph.state(b)) for a, label, _, b in e.graph.transitions()} for e in (one, other)
    ]
    assert graphs[0] == graphs[1]


def test_tables_take_exactly_the_models_own_steps() -> None:
    system = TwoPhase(3)
    graph = explore(system, transitions=True).graph
    taken = {state: set() for state in range(graph.states)}
    for source, label, _, target in graph.transitions():
        taken[source].add((label, graph.state(target)))
    for number, steps in taken.items():
        assert steps == {(outcome.label, after) for outcome, after in successors(system, graph.state(number))}


def test_a_broken_invariant_gives_a_shortest_trace() -> None:
    found = explore(TwoPhase(3, careless=True))
    (violation,) = found.violations
    assert (violation.property, violation.kind) == ("nobody_aborts_what_another_commits", "invariant")
    assert [step.label for step in violation.trace] == [None, ("ChooseAbort", "1"), ("Commit",), ("RcvCommit", "0")]
    assert not found.complete
    system = TwoPhase(3, careless=True)
    for before, after in pairwise(violation.trace):
        assert (after.label, after.state) in {(o.label, s) for o, s in successors(system, before.state)}


def test_all_broken_properties_are_found_if_the_search_continues() -> None:
    properties = Properties(
        invariants=(Invariant("below_three", (0,), lambda n: n < 3), Invariant("below_six", (0,), lambda n: n < 6)),
        witnesses=(Witness("reaches_nine", (0,), lambda n: n == 9), Witness("reaches_ten", (0,), lambda n: n == 10)),
    )
    found = explore(PlainSystem(Counters(9, given=properties)), stop_at_violation=False)
    assert [(each.property, len(each.trace)) for each in found.violations] == [("below_three", 4), ("below_six", 7)]
    assert (found.states, found.complete, found.unseen) == (10, True, ["reaches_ten"])


def test_a_broken_step_property_shows_the_step() -> None:
    never_back = StepInvariant("never_back", (0,), lambda label, before, after: after[0] > before[0])
    properties = Properties(steps=(never_back,))
    (violation,) = explore(PlainSystem(Counters(3, may_reset=True, given=properties))).violations
    assert [(step.label, step.state) for step in violation.trace] == [(None, (0,)), (("Up",), (1,)), (("Reset",), (0,))]


def test_a_state_without_successor_is_a_deadlock_unless_it_may_be_the_last() -> None:
    for may_end, expected in ((lambda n: n == 3, []), (lambda n: n == 4, [("deadlock", 4)])):
        system = PlainSystem(Counters(3, given=Properties(may_end=((0,), may_end))))
        assert [(each.property, len(each.trace)) for each in explore(system).violations] == expected


def test_symmetry_keeps_verdicts_and_gives_real_traces() -> None:
    for members in (3, 4):
        whole, folded = explore(TwoPhase(members)), explore(TwoPhase(members), symmetry=True)
        assert folded.states < whole.states
        assert (folded.violations, folded.unseen) == (whole.violations, whole.unseen)
    system = TwoPhase(3, careless=True)
    (violation,) = explore(system, symmetry=True).violations
    assert len(violation.trace) == 4
    for before, after in pairwise(violation.trace):
        assert (after.label, after.state) in {(o.label, s) for o, s in successors(system, before.state)}


def test_symmetry_counts_classes() -> None:
    def representative(state: tuple[object, ...]) -> frozenset[tuple[object, ...]]:
        orbit = {state}
        for permutation in TwoPhase(3).symmetry:
            orbit.add(tuple(permutation.rename(source, state[source]) for source in permutation.source))
        return frozenset(orbit)

    graph = explore(TwoPhase(3)).graph
    classes = {representative(graph.state(number)) for number in range(graph.states)}
    assert explore(TwoPhase(3), symmetry=True).states == len(classes)


def test_limits_end_the_search_and_say_so() -> None:
    found = explore(TwoPhase(5), limits=Limits(states=1000), block=256)
    assert not found.complete
    assert found.stopped == "more than 1,000 states"
    assert 1000 < found.states < 8832
    assert not explore(TwoPhase(5), limits=Limits(bytes=1 << 16)).complete


def test_an_interruption_keeps_the_results_so_far() -> None:
    def interrupt(found: int, expanded: int, generated: int) -> None:
        if found > 1000:
            _thread.interrupt_main()
            threading.Event().wait(0.05)

    # a shell that starts this test in the background makes it ignore SIGINT
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = explore(TwoPhase(5), watch=interrupt, block=64)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.stopped == "interrupted"
    assert 1000 < found.states <= 8832
