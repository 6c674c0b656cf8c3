"""The checker accepts the core's answers to its generated clients, also where requests overlap.

The generator's clients break every rule, and the core has the faults of its profile. If such a trace is rejected, the
checker is certain of something that is not certain.
"""

from __future__ import annotations

from random import Random

import pytest

from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.search import Limits
from fencepost_conformance.run.falsify.overlaps import widened

from .generated import steady, wire_trace

LIMITS = Limits(steps=5_000)
#: This share of the lines of a copy moves.
SHARES = (0.05, 0.3, 1.0)


def accepted(profile: str, protocol: GroupProtocol, seeds: range, copies: int) -> int:
    """Return the number of lines that were checked."""
    judged = 0
    for seed in seeds:
        trace = wire_trace(generate(seed, PROFILES[profile], protocol=protocol, adapted=steady))
        if not trace.lines:
            continue
        wider = [widened(trace, Random(f"{seed} {n}"), SHARES[n % len(SHARES)]) for n in range(copies)]
        for n, each in enumerate([trace, *wider]):
            verdict = check_trace(each, limits=LIMITS)
            assert verdict.outcome in {"accepted", "undecided"}, (seed, n, verdict.reason, verdict.refusals)
        judged += len(trace.lines)
    return judged


@pytest.mark.parametrize("protocol", GroupProtocol)
@pytest.mark.parametrize("profile", ["kafka-4.3", "kafka-4.4"])
def test_answers_of_the_core_are_accepted(profile: str, protocol: GroupProtocol) -> None:
    assert accepted(profile, protocol, range(12), copies=2) > 300


def test_a_member_of_a_removed_group_is_unknown() -> None:
    """In one of these traces a heartbeat finds no group, and the next group of that name is a classic one."""
    assert accepted("kafka-4.3", GroupProtocol.MIXED, range(11_047, 11_048), copies=3) == 71


@pytest.mark.parametrize(("profile", "seed"), [("kafka-4.0", 175), ("kafka-4.0", 383), ("kafka-4.3", 204)])
def test_an_answer_may_come_long_after_its_request(profile: str, seed: int) -> None:
    """In some copy, the answer to a DeleteGroups or Heartbeat comes more than ``slack_ms`` after it was sent."""
    assert accepted(profile, GroupProtocol.CLASSIC, range(seed, seed + 1), copies=3) > 20


def test_a_late_new_member_id_does_not_delay_the_rebalance() -> None:
    """In some copy, a JoinGroup gets a member id after the rebalance during which it was sent."""
    assert accepted("kafka-4.0", GroupProtocol.CLASSIC, range(604, 605), copies=3) > 100


def test_a_rejected_heartbeat_grants_no_partitions() -> None:
    """A topic grows while the only member repeats its join, which Kafka 4.0 answers FENCED_MEMBER_EPOCH."""
    assert accepted("kafka-4.0", GroupProtocol.CONSUMER, range(261, 262), copies=3) > 80


def test_a_member_may_join_again_under_another_instance_id() -> None:
    """It has partitions to revoke, and the instance id may still be another member's."""
    assert accepted("intended", GroupProtocol.MIXED, range(957, 958), copies=3) > 100


@pytest.mark.all
@pytest.mark.parametrize("protocol", GroupProtocol)
@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_answers_of_the_core_are_accepted_for_any_seed(profile: str, protocol: GroupProtocol) -> None:
    assert accepted(profile, protocol, range(100, 400), copies=3)
