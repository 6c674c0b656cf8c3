"""A consumer that reads, in any stream of events: each step holds against a ledger, and in the end all is read.

The ledger (``simulate/reading/ledger.py``) says: positions never move but by what is handed out, by a seek, a reset or
a truncation; what is handed out is each record once, in order, from the position on; nothing is handed out of what is
revoked, about to be, paused, or of a topic that was dropped; commits say what was handed out; callbacks of
asynchronous commits come in the order of the calls.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.reader import Client, Reader, step
from fencepost_conformance.simulate.reading import World, walk
from fencepost_conformance.simulate.reading import world as worlds


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_stream_holds_against_the_ledger(data: st.DataObject) -> None:
    world = World(lambda options: data.draw(st.sampled_from(options)))
    for _ in range(data.draw(st.integers(0, 40))):
        world.happen()
    world.settle()


def test_walks_read_and_are_of_every_kind() -> None:
    """Else their silence would say nothing."""
    clients, handed, moved = set(), 0, set()
    for seed in range(1_000, 1_030):
        world = walk(seed)
        clients.add(world.client)
        handed += world.ledger.handed
        moved |= {kind.name for kind in world.thrown}
    assert clients == set(Client)
    assert handed > 150
    assert {"TIMEOUT", "WAKEUP", "NO_OFFSET"} <= moved


@pytest.mark.all
@pytest.mark.parametrize("first", range(2_000, 12_000, 500))
def test_many_walks(first: int) -> None:
    for seed in range(first, first + 500):
        walk(seed)


def test_a_step_is_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same arguments give the same result, and the state that was given stays as it was."""

    def twice(reader: Reader, event: object) -> object:
        before = repr(reader)
        result = step(reader, event)  # type: ignore[arg-type]
        assert step(reader, event) == result  # type: ignore[arg-type]
        assert repr(reader) == before
        return result

    monkeypatch.setattr(worlds, "step", twice)
    for seed in range(6):
        world = World(Random(f"reading {seed}").choice)
        for _ in range(60):
            world.happen()
