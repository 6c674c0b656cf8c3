"""What the core answers its generated clients is accepted over the wire, also where the requests overlap.

The generator's clients break every rule, and the core has the faults of its profile. So a trace that is refused shows
that the checker takes something for certain that is not.
"""

from __future__ import annotations

from random import Random

import pytest

from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.checker.check import check_trace
from fencepost_conformance.checker.search import Limits
from fencepost_conformance.falsify.overlaps import widened
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol

from .generated import steady, wire_trace

LIMITS = Limits(steps=5_000)
#: Of the lines of a copy so many move.
SHARES = (0.05, 0.3, 1.0)


def accepted(profile: str, protocol: GroupProtocol, seeds: range, copies: int) -> int:
    """The number of lines that were judged."""
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
def test_what_the_core_answers_is_accepted(profile: str, protocol: GroupProtocol) -> None:
    assert accepted(profile, protocol, range(12), copies=2) > 300


def test_a_member_whose_group_went_is_gone() -> None:
    """In this one a heartbeat finds no group, and the next group of the name is a classic one."""
    assert accepted("kafka-4.3", GroupProtocol.MIXED, range(11_047, 11_048), copies=3) == 71


@pytest.mark.all
@pytest.mark.parametrize("protocol", GroupProtocol)
@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_whatever_the_seed(profile: str, protocol: GroupProtocol) -> None:
    assert accepted(profile, protocol, range(100, 400), copies=3)
