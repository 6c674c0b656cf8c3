"""The state machine of positions agrees with the reader, and the picture in the docs is drawn from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost_conformance.generate.simulate.reading import walk
from fencepost_consumer.partition import ALLOWED, FetchState, Partition
from fencepost_model.diagram import svg
from fencepost_model.machines import POSITION

DOCS = Path(__file__).parents[3] / "docs"
ARROWS = {(source, dest) for source, _, dest, _ in POSITION.expand()}


def test_the_picture_is_the_machine() -> None:
    drawn = (DOCS / "consumer.svg").read_text(encoding="utf-8")
    assert drawn == svg(POSITION), "draw it again: fencepost diagram position --format svg -o docs/consumer.svg"


def test_the_machine_has_the_states_and_no_arrow_that_is_not_allowed() -> None:
    assert list(POSITION.states) == [state.value for state in FetchState]
    assert {(source.value, dest.value) for source, dests in ALLOWED.items() for dest in dests} >= ARROWS


def test_the_arrows_are_the_transitions_of_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All transitions of readers, and no others."""
    moves = set()
    go = Partition._go

    def watched(self: Partition, state: FetchState, **changes: object) -> Partition:
        after = go(self, state, **changes)
        if state in ALLOWED[self.state]:
            moves.add((self.state.value, after.state.value))
        return after

    monkeypatch.setattr(Partition, "_go", watched)
    for seed in range(40):
        walk(seed)
    assert moves == ARROWS
