"""Kafka's own consumers run the schedules of the core's consumers, and read and commit alike at every event."""

import pytest

from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.judge.client import reading_schedule
from fencepost_conformance.judge.client.judge import judge
from fencepost_conformance.judge.client.kinds import Half, MemberProtocol
from fencepost_conformance.targets.jvm.builds import Build
from fencepost_conformance.targets.jvm.releases import NEWEST

PROFILE = PROFILES[f"kafka-{'.'.join(NEWEST.split('.')[:2])}"]
#: Among them: positions that are looked up while others are found (156, 281, 1330, 1908), a preferred replica that is
#: lost (20, 479), a denied topic in a good answer (249, 376), an answer about partitions that were away (1184), a
#: look-up that is shared (69) or has a permanent error (11, 284, 1684), a close without callbacks (35, 1995), an error
#: that loses records (2340).
CLASSIC_SEEDS = (*range(60), 69, 156, 249, 281, 284, 376, 479, 1184, 1330, 1684, 1833, 1908, 1995, 2340)

#: Among them: callbacks that wait for the last asynchronous commit (27, 69, 94, 96), a former coordinator that still
#: answers (33, 104), a look-up with a permanent error (56, 341, 354), an interval that is kept (258).
CONSUMER_SEEDS = (*range(40), 56, 69, 94, 96, 104, 258, 341, 354)


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("protocol", "seeds"), [(MemberProtocol.CLASSIC, CLASSIC_SEEDS), (MemberProtocol.CONSUMER, CONSUMER_SEEDS)]
)
def test_kafkas_reader_does_the_same(protocol: MemberProtocol, seeds: tuple[int, ...]) -> None:
    judged = list(judge(Build(NEWEST), PROFILE, seeds, 60, protocol, Half.READER))
    assert [each.difference for each in judged if each.difference] == []
    assert sum(each.steps for each in judged) > 2_000


def test_a_schedule_is_made_the_same_twice() -> None:
    one, other = (reading_schedule.schedule(7, 40, PROFILE) for _ in range(2))
    assert one.events == other.events
    assert one.outcomes == other.outcomes
