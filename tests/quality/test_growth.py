"""What a step does and copies does not grow with what it does not touch: counted, not timed.

Counted are the lines of Python that run within a step, so that no loop goes through all there is, and the bytes that it
asks for at most, so that nothing of that size is copied.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from itertools import islice

import pytest

from fencepost.coordinator import step
from fencepost.coordinator.consumer import draft
from fencepost.coordinator.kernel import persistent
from fencepost_conformance.bench.offset_sizes import OFFSET_CASES
from fencepost_conformance.bench.sizes import CASES, Case, choices

#: From a tree of little depth to a deep one. Beneath it a mapping is copied whole, which is of 128 entries at most.
SMALL, LARGE = 300, 2_000
#: A few branches more are on the way to an entry; a loop through all there is would take thousands.
LINES, BYTES = 120, 12_000
FLAT = [case for case in (*CASES, *OFFSET_CASES) if not case.grows]


def counted(case: Case, size: int) -> tuple[int, int]:
    """Lines that a step runs, and bytes that it has asked for at its highest; the least of a few steps."""
    state, seen = case.made(size), []
    for event in islice(case.events(size), 2):
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
        gc.collect()
        chooses = choices()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            step(state, event, chooses)
            seen.append((lines, tracemalloc.get_traced_memory()[1] - before))
        finally:
            tracemalloc.stop()
    return min(lines for lines, _ in seen), min(held for _, held in seen)


def grows(case: Case, large: int = LARGE) -> bool:
    (lines, held), (more_lines, more_held) = counted(case, SMALL), counted(case, large)
    return more_lines > lines + LINES or more_held > held + BYTES


@pytest.mark.parametrize("case", FLAT, ids=lambda case: f"{case.what}, {case.of}")
def test_a_step_costs_the_same_however_much_there_is(case: Case) -> None:
    assert not grows(case), (counted(case, SMALL), counted(case, LARGE))


@pytest.mark.parametrize("case", [each for each in CASES if each.grows], ids=lambda case: f"{case.what}, {case.of}")
def test_what_is_said_to_grow_does(case: Case) -> None:
    assert grows(case, 2 * SMALL)


@pytest.mark.parametrize("of", sorted({case.of for case in FLAT} - {"topics"}))
def test_a_copy_of_all_is_noticed(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistent, "SMALL", 10**9)
    assert any(grows(case) for case in FLAT if case.of == of)


def test_a_look_at_all_topics_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core asked whether all members subscribe to the same by a look at each topic, with every record."""

    def type_of(by_regex, by_topic, members):  # type: ignore[no-untyped-def]
        assert all(named == members for named, _ in by_topic.counts.values()) is not None
        return original(by_regex, by_topic, members)

    original = draft.subscription_type_of
    monkeypatch.setattr(draft, "subscription_type_of", type_of)
    cases = [case for case in CASES if case.of == "topics" and "subscribed to all" in case.what]
    leaves = next(case for case in CASES if case.what == "departure")
    case = Case("topics", "departure", (), cases[0].made, lambda size: leaves.events(2))
    assert grows(case)
