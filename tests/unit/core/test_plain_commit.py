"""A commit whose records are created on first use is the same as one that creates them at once."""

from __future__ import annotations

import copy
import pickle

import pytest

from fencepost.codec import Codec
from fencepost.coordinator import initial_state, step
from fencepost.coordinator.offsets import commit
from fencepost.functions import KafkaFunctions
from fencepost.protocol.choices import Choices
from fencepost.protocol.events import Outcome
from fencepost.protocol.logged import PlainCommit
from fencepost.protocol.plain_commit import CommitOutcome
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_4
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder, WithoutHyphens

CODEC = Codec()
FIELDS = ("records", "replies", "timers", "tasks", "rebalances")


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_0, KAFKA_4_4], ids=lambda profile: profile.name)
@pytest.mark.parametrize("protocol", [GroupProtocol.CLASSIC, GroupProtocol.CONSUMER])
def test_states_and_outcomes_equal_those_with_records(
    protocol: GroupProtocol, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = commit._plain_rows
    cases = 0
    for seed in range(8):
        trace = generate(seed, profile, protocol=protocol, offsets=0.5)
        start = initial_state(trace.settings, profile, functions=KafkaFunctions())
        ids = MemberIds()
        one = other = start
        for event in trace.events:
            twin = copy.deepcopy(ids)
            monkeypatch.setattr(commit, "_plain_rows", plain)
            one, outcome = step(one, event, choices(profile, ids))
            monkeypatch.setattr(commit, "_plain_rows", lambda *_: None)
            other, expected = step(other, event, choices(profile, twin))
            assert type(expected) is Outcome
            assert (outcome, expected) == (expected, outcome)
            assert one == other
            if isinstance(outcome, CommitOutcome):
                cases += 1
                check(outcome, expected)
    assert cases > 5


def choices(profile: Profile, ids: MemberIds) -> Choices:
    return WithoutHyphens(JavaOrder(ids)) if profile.draws_no_hyphens else JavaOrder(ids)


def check(outcome: CommitOutcome, expected: Outcome) -> None:
    """It looks like the outcome with records, to whatever reads it."""
    assert [getattr(outcome, name) for name in FIELDS] == [getattr(expected, name) for name in FIELDS]
    assert (hash(outcome), repr(outcome)) == (hash(expected), repr(expected))
    assert pickle.loads(pickle.dumps(outcome)) == copy.copy(outcome) == expected
    written = outcome.written
    assert isinstance(written, PlainCommit)
    records = expected.records
    assert (len(written), tuple(written), written[0], written[-1:]) == (len(records), records, records[0], records[-1:])
    assert CODEC.encoded_all(written) == [CODEC.encode(record) for record in records]
    assert outcome != Outcome(records)
