"""The comparison with Kafka's own client finds members with a planted fault.

Each fault has the seed of a schedule that shows it. A fault that no schedule can show has a reason.
"""

from collections.abc import Iterator

import pytest

from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.judge.client.judge import Judge
from fencepost_conformance.judge.client.kinds import MemberProtocol
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import Side, planted
from fencepost_conformance.targets.jvm.builds import Build
from fencepost_conformance.targets.jvm.releases import NEWEST

CLASSIC = {
    "rejoin-forgotten-at-join": 0,
    "generation-checked-too-late": 8,
    "join-kept-after-failure": 3,
    "prepare-not-repeated": 71,
    "late-error-resets": 523,
    "id-dropped-on-retriable-error": 3,
    "id-dropped-with-generation": 19,
    "poll-interval-not-watched": 1,
    "stall-only-resets": 1,
    "static-member-leaves": 1,
    "lost-partitions-not-reported": 1,
    "eager-keeps-partitions": 1,
    "no-rejoin-after-revoking": 16,
    "fenced-not-fatal": 187,
    "rebalance-in-heartbeat-ignored": 232,
    "metadata-not-watched": 12,
}
CONSUMER = {
    "joins-while-fenced": 10,
    "old-reconciliation-after-rejoin": 67,
    "equal-sets-are-the-same": 426,
    "leave-skipped-while-in-flight": 0,
    "consumer-poll-interval-not-watched": 0,
    "unreleased-instance-retried": 78,
    "fenced-keeps-its-epoch": 10,
    "joins-at-its-last-epoch": 0,
    "leaves-before-callback": 0,
    "static-consumer-leaves-permanently": 6,
    "full-heartbeat-not-repeated": 7,
    "acknowledged-before-revoked": 11,
    "late-answers-count": 0,
    "full-heartbeat-after-join": 0,
    "subscription-not-repeated": 0,
}
UNSEEN = {
    "commit-not-awaited": "schedules commit nothing",
    "revoked-before-committed": "schedules commit nothing",
    "added-partitions-unreported": "it is what Kafka does, whose profile the judge takes",
}
LENGTH = 40


def judging(protocol: MemberProtocol) -> Judge:
    profile = PROFILES[f"kafka-{'.'.join(NEWEST.split('.')[:2])}"]
    return Judge(Build(NEWEST), profile, protocol, LENGTH)


@pytest.fixture(scope="module")
def judges() -> Iterator[dict[MemberProtocol, Judge]]:
    with judging(MemberProtocol.CLASSIC) as classic, judging(MemberProtocol.CONSUMER) as consumer:
        yield {MemberProtocol.CLASSIC: classic, MemberProtocol.CONSUMER: consumer}


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("protocol", "name", "seed"),
    [(MemberProtocol.CLASSIC, *each) for each in CLASSIC.items()]
    + [(MemberProtocol.CONSUMER, *each) for each in CONSUMER.items()],
)
def test_the_fault_shows(judges: dict[MemberProtocol, Judge], protocol: MemberProtocol, name: str, seed: int) -> None:
    assert judges[protocol].judge(seed).difference is None
    with planted(MUTANTS[name]):
        assert judges[protocol].judge(seed).difference is not None


def test_every_fault_of_members_is_shown_or_has_its_reason() -> None:
    faults = {name for name, each in MUTANTS.items() if each.side in (Side.MEMBER, Side.CONSUMER_MEMBER)}
    assert {*CLASSIC, *CONSUMER, *UNSEEN} == faults
