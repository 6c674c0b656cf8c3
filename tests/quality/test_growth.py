"""The work of a step does not grow with the state that it does not touch. The tests count and do not measure time: the
lines of Python that run in a step (no loop may go through everything), and the peak of allocated bytes (nothing of that
size may be copied)."""

from __future__ import annotations

import sys
import tracemalloc
from itertools import islice

import pytest

from fencepost.coordinator import CoordinatorState, step
from fencepost.coordinator.consumer import draft
from fencepost.coordinator.kernel import persistent
from fencepost.protocol.events import Event
from fencepost_conformance.run.bench.offset_sizes import OFFSET_CASES
from fencepost_conformance.run.bench.sizes import CASES, Case, choices
from fencepost_model.collector import uncollected

#: Sizes from a shallow tree to a deep one. A map of at most 128 entries is not a tree, and is copied completely.
SMALL, LARGE = 300, 2_000
#: A deep tree has a few more branches on the way to an entry; a loop over all entries would take thousands of lines.
LINES, BYTES = 120, 12_000
FLAT = [case for case in (*CASES, *OFFSET_CASES) if not case.grows]


def counted(case: Case, size: int) -> tuple[int, int]:
    """Return the lines that a step runs and its peak of allocated bytes: the minimum over a few steps.

    The collector pauses meanwhile, so that nothing of it is counted. To run it before each step instead took ten times
    as long as the steps."""
    state, seen = case.made(size), []
    for event in islice(case.events(size), 2):
        with uncollected():
            seen.append((lines_of(state, event), bytes_of(state, event)))
    return min(lines for lines, _ in seen), min(held for _, held in seen)


def lines_of(state: CoordinatorState, event: Event) -> int:
    lines = 0

    def count(frame: object, what: str, argument: object) -> object:
        nonlocal lines
        lines += what == "line"
        return count

    sys.settrace(count)  # type: ignore[arg-type]
    try:
        step(state, event, choices())
    finally:
        sys.settrace(None)
    return lines


def bytes_of(state: CoordinatorState, event: Event) -> int:
    chooses = choices()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        step(state, event, chooses)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def grows(case: Case, large: int = LARGE) -> bool:
    (lines, held), (more_lines, more_held) = counted(case, SMALL), counted(case, large)
    return more_lines > lines + LINES or more_held > held + BYTES


@pytest.mark.parametrize("case", FLAT, ids=lambda case: f"{case.what}, {case.of}")
def test_the_cost_of_a_step_does_not_depend_on_the_size_of_the_state(case: Case) -> None:
    assert not grows(case), (counted(case, SMALL), counted(case, LARGE))


@pytest.mark.parametrize("case", [each for each in CASES if each.grows], ids=lambda case: f"{case.what}, {case.of}")
def test_growing_cases_grow(case: Case) -> None:
    assert grows(case, 2 * SMALL)


@pytest.mark.parametrize("of", sorted({case.of for case in FLAT} - {"topics"}))
def test_a_copy_of_all_is_noticed(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistent, "SMALL", 10**9)
    assert any(grows(case) for case in FLAT if case.of == of)


def test_a_scan_of_all_topics_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: to find whether all members subscribe to the same topics, the core looks at each topic at every
    record."""

    def type_of(by_regex, by_topic, members):  # type: ignore[no-untyped-def]
        assert all(named == members for named, _ in by_topic.counts.values()) is not None
        return original(by_regex, by_topic, members)

    original = draft.subscription_type_of
    monkeypatch.setattr(draft, "subscription_type_of", type_of)
    cases = [case for case in CASES if case.of == "topics" and "subscribed to all" in case.what]
    leaves = next(case for case in CASES if case.what == "departure")
    case = Case("topics", "departure", (), cases[0].made, lambda size: leaves.events(2))
    assert grows(case)
