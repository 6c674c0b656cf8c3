"""Rules of the coordinator count as compared only in traces that the other coordinator ends alike."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.events import Event
from fencepost.protocol.profiles import KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_conformance.targets.core import Core
from fencepost_conformance.traces.observation import Observation
from tools.evidence.core import Observed, observe


def same(many: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
    return [Core().run(settings, KAFKA_4_4, events) for settings, events in many]


def silent(many: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
    return [[Observation() for _ in events] for _, events in many]


def test_rules_that_ran_count_where_the_other_side_agrees() -> None:
    done: list[int] = []
    observed = Observed([])
    found = observe(range(2), same, KAFKA_4_4, observed, done.append)
    assert (found["traces"], found["differing"], sum(done)) == (6, 0, 6)
    assert found["steps"] > 300
    assert len(observed.agreed) == 6
    assert all(0 < count <= 6 for count in observed.ran.values())
    assert "O-COMMIT-09" in observed.ran
    assert not any(each.differs() for each in observed.agreed)  # the core is restored


def test_nothing_counts_where_the_other_differs() -> None:
    observed = Observed([])
    found = observe(range(1), silent, KAFKA_4_4, observed, lambda _: None)
    assert found["differing"] == 3
    assert not observed.ran
    assert not observed.agreed
