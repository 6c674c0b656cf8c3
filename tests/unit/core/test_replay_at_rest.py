"""``replay`` is for a state that does not serve its partition: the log of an active one grows by its own steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost import coordinator
from fencepost.coordinator import CoordinatorState
from fencepost.coordinator.kernel.state import Status
from fencepost.protocol.errors import MisuseError, WrongState
from fencepost.protocol.events import Appended, Load, LoadFailed, LoadStarted, Unload
from fencepost.protocol.profiles import INTENDED

from .offset_scene import OffsetScene, without_places
from .scene import GROUP, FirstOf

MOVES = ("commit", "transact", "end", "join", "replicate", "unload", "start", "load", "fail")


def moved(scene: OffsetScene, move: str) -> None:
    """Make one step in any state; the partition is loaded at growing epochs."""
    scene.now += 1
    match move:
        case "commit":
            scene.commit({("a", 0): scene.now})
        case "transact":
            scene.transact({("a", 1): scene.now})
        case "end":
            scene.end()
        case "join":
            scene.join(group="other")
        case "replicate":
            scene.feed(Appended(scene.now, offset=scene.state.end))
        case "unload":
            scene.feed(Unload(scene.now, leader_epoch=None))
        case "start":
            scene.feed(LoadStarted(scene.now, leader_epoch=scene.now))
        case "load":
            if scene.state.status is not Status.ACTIVE:
                scene.records.clear()
            scene.feed(Load(scene.now, leader_epoch=scene.now, records=()))
        case "fail":
            scene.feed(LoadFailed(scene.now, leader_epoch=scene.now))


def require_coherent(state: CoordinatorState) -> None:
    """Check that the fields about the log agree (F-RT-04, F-RT-06, F-RT-11)."""
    assert 0 <= state.committed <= state.base <= state.end
    assert list(state.ends) == sorted(state.ends)
    assert all(state.committed < end <= state.end for end in state.ends)
    assert bool(state.ends) is (state.committed < state.end)
    for change in (*state.changes, *state.offset_changes):
        assert state.committed < change.offset <= state.end
    assert all(state.committed < operation.offset <= state.end for operation in state.operations.values())
    held = {number for group in state.groups.values() for number in group.parked()}
    assert held == set(state.parked)


@settings(max_examples=150, derandomize=True)
@given(st.lists(st.sampled_from(MOVES), max_size=12), st.sampled_from(["later", "at once"]))
def test_a_state_is_replayed_onto_only_at_rest(moves: list[str], log: str) -> None:
    """Any reachable state either serves, and ``replay`` raises, or gives a coherent state that a step accepts
    (F-RT-11)."""
    scene = OffsetScene()
    scene.log = log
    written = OffsetScene()
    written.commit({("a", 0): 7})
    for move in moves:
        moved(scene, move)
        require_coherent(scene.state)
    records = written.records
    if scene.state.status is Status.ACTIVE:
        with pytest.raises(WrongState, match=r"does not serve its partition.*Load\(records="):
            coordinator.replay(scene.state, records)
        return
    after = coordinator.replay(scene.state, records)
    require_coherent(after)
    assert after.end == after.committed == scene.state.end + len(records)
    assert coordinator.replay(after, []) == after
    again, _ = coordinator.step(after, Load(scene.now, leader_epoch=1_000, records=tuple(records)), FirstOf())
    assert without_places(again) == without_places(after)


def test_open_writes_are_the_reason() -> None:
    """Once ``replay`` accepted such a state: it marked records as replicated while their changes were still pending."""
    scene = OffsetScene()
    scene.log = "later"
    scene.commit({("a", 0): 5})
    state, records = scene.state, scene.records
    with pytest.raises(MisuseError, match="log ends at 1, replicated up to 0"):
        coordinator.replay(state, records)
    assert scene.state is state
    scene.replicate()
    assert scene.read({"a": (0,)}) == {("a", 0): 5}


def test_a_replayed_state_serves_after_its_log_is_loaded() -> None:
    """The error names this legal alternative."""
    scene = OffsetScene()
    scene.commit({("a", 0): 5})
    state = coordinator.replay(coordinator.initial_state(scene.state.settings, INTENDED), scene.records)
    assert coordinator.offsets_view(state, GROUP).committed[0].offset == 5
    state, _ = coordinator.step(state, Load(1, leader_epoch=1, records=tuple(scene.records)), FirstOf())
    require_coherent(state)
    with pytest.raises(WrongState):
        coordinator.replay(state, scene.records)
