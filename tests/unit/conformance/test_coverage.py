"""The catalogue names every rule of the classic protocol, and a rule counts as reached only if it was."""

from __future__ import annotations

import re
from pathlib import Path

from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.coverage import catalogue
from fencepost_conformance.judge.coverage.features import features_of
from fencepost_conformance.judge.coverage.rules import RULES, UNREACHED_RULES

BOOK = Path(__file__).resolve().parents[3] / "docs" / "rules" / "02-classic.md"


def test_each_classic_rule_is_in_the_catalogue_or_has_a_reason() -> None:
    found = set()
    for line in BOOK.read_text().splitlines():
        rule = re.match(r"\| (C-[A-Z]+-\d+[a-z]?) \||- \*\*(C-[A-Z]+-\d+[a-z]?)\*\*", line)
        if rule and "dropped:" not in line:
            found.add(rule[1] or rule[2])
    assert found == {*RULES, *UNREACHED_RULES}
    assert not {*RULES} & {*UNREACHED_RULES}


def test_bitmaps() -> None:
    some = [catalogue.FEATURES[0], catalogue.FEATURES[9], catalogue.FEATURES[-1]]
    bits = catalogue.bitmap(some)
    assert catalogue.names(bits) == some
    assert catalogue.names(catalogue.union([bits, catalogue.bitmap([catalogue.FEATURES[1]])])) == [
        some[0],
        catalogue.FEATURES[1],
        *some[1:],
    ]
    assert catalogue.names(catalogue.union([])) == []


def test_a_few_hundred_traces_reach_nearly_everything_and_nothing_that_cannot_be() -> None:
    reached: set[str] = set()
    for seed in range(150):
        trace = generate(seed, KAFKA_4_3, offsets=None)
        reached |= features_of(trace.settings, trace.events, trace.observations)
    reasons = catalogue.REASONS[GroupProtocol.CLASSIC]
    assert not reached & reasons.keys()
    of_classic = catalogue.OF_PROTOCOL[GroupProtocol.CLASSIC]
    assert reached <= {*of_classic}
    missing = [name for name in of_classic if name not in reached and name not in reasons]
    assert len(missing) <= 20, missing
