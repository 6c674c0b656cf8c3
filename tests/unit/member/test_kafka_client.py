"""Kafka's own classic member takes the schedules that the core's took, and does the same at every event."""

import pytest

from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.clientside.judge import judge
from fencepost_conformance.clientside.schedule import schedule
from fencepost_conformance.jvm.builds import Build
from fencepost_conformance.jvm.releases import NEWEST

PROFILE = PROFILES[f"kafka-{'.'.join(NEWEST.split('.')[:2])}"]
#: Among them: who led and follows (12), a look-up that failed for good (51), a fenced instance that polls (135).
SEEDS = (*range(23), *range(50, 60), 78, 84, 135, 149)


@pytest.mark.jvm
def test_kafkas_member_does_the_same() -> None:
    judged = list(judge(Build(NEWEST), PROFILE, SEEDS, 40))
    assert [each.difference for each in judged if each.difference] == []
    assert sum(each.steps for each in judged) > 1_000


def test_a_schedule_is_made_the_same_twice() -> None:
    one, other = (schedule(7, 40, PROFILE) for _ in range(2))
    assert one.events == other.events
    assert one.outcomes == other.outcomes
