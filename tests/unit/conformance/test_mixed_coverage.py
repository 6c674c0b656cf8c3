"""The catalogue names every rule of mixed groups, and a step counts for the rules of the kind of group that it met."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pytest

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Request
from fencepost.protocol.messages import HeartbeatRequest, JoinGroupRequest
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.coverage import catalogue
from fencepost_conformance.judge.coverage.features import Watcher, features_of
from fencepost_conformance.judge.coverage.rules import UNREACHED_RULES
from fencepost_conformance.judge.coverage.rules_consumer import UNREACHED_CONSUMER_RULES
from fencepost_conformance.judge.coverage.rules_of_group import MIXED_RULES, UNREACHED_MIXED_RULES

BOOK = Path(__file__).resolve().parents[3] / "docs" / "rules" / "06-mixed.md"


def test_each_rule_is_in_the_catalogue_or_has_a_reason() -> None:
    found = set(re.findall(r"^(?:\| |- \*\*)(X-[A-Z]+-\d+)", BOOK.read_text(), re.MULTILINE))
    ours = {rule for rule in (*MIXED_RULES, *UNREACHED_MIXED_RULES) if rule.startswith("X-")}
    assert found == ours
    assert not {*MIXED_RULES} & {*UNREACHED_MIXED_RULES}


def test_rules_of_the_other_parts_have_a_reason_where_groups_are_of_one_kind() -> None:
    others = {rule for rule in MIXED_RULES if not rule.startswith("X-")}
    assert others <= {*UNREACHED_RULES, *UNREACHED_CONSUMER_RULES}
    mixed = catalogue.REASONS[GroupProtocol.MIXED]
    assert not {f"rule {rule}" for rule in others} & mixed.keys()


def test_reasons_are_of_features() -> None:
    for protocol, features in catalogue.OF_PROTOCOL.items():
        assert {*catalogue.REASONS[protocol]} <= {*features}
    assert {name for features in catalogue.OF_PROTOCOL.values() for name in features} == catalogue.INSIDE


@lru_cache(maxsize=1)
def reached() -> frozenset[str]:
    found: set[str] = set()
    for seed in range(150):
        trace = generate(seed, KAFKA_4_3, 60, GroupProtocol.MIXED, offsets=None)
        found |= features_of(trace.settings, trace.events, trace.observations)
    return frozenset(found)


def test_a_few_hundred_traces_reach_most_and_nothing_that_cannot_be() -> None:
    reasons = catalogue.REASONS[GroupProtocol.MIXED]
    assert not reached() & reasons.keys()
    missing = [name for name in catalogue.INSIDE if name not in reached() and name not in reasons]
    assert len(missing) <= 80, missing
    assert len([name for name in missing if name.startswith("rule X-")]) <= 12, missing


@pytest.mark.parametrize(
    "feature",
    [
        *(f"timer CONSUMER_{kind} {what}" for kind in ("JOIN", "SYNC") for what in ("set", "cancelled", "fired")),
        "conversion Stable → consumer",
        "conversion consumer → PreparingRebalance",
        "tombstone GroupMetadata",
        *("rule X-UP-01", "rule X-UP-05", "rule X-JOIN-17", "rule X-HB-03", "rule X-DOWN-01", "rule X-TMR-03"),
    ],
)
def test_conversions_and_the_timers_of_classic_members_are_reached(feature: str) -> None:
    assert feature in reached()


def test_a_classic_request_to_a_consumer_group_counts_for_no_rule_of_classic_groups() -> None:
    """The same answer is C-HB-05 if there is no group, and X-HB-01 if there is a consumer group."""
    requests = 0
    for seed in range(60):
        trace = generate(seed, KAFKA_4_3, 60, GroupProtocol.MIXED, offsets=None)
        groups: dict[str, ConsumerGroupView] = {}
        watcher = Watcher(trace.settings)
        for event, seen in zip(trace.events, trace.observations, strict=True):
            before = {*watcher.reached}
            watcher.feed(event, seen)
            body = event.body if isinstance(event, Request) else None
            group = groups.get(body.group_id) if isinstance(body, JoinGroupRequest | HeartbeatRequest) else None
            if group is not None and group.members:
                requests += 1
                rules = {name.removeprefix("rule ") for name in watcher.reached - before}
                assert not {rule for rule in rules if re.match(r"C-(JOIN|HB)-", rule)} - {*MIXED_RULES}
            for name, view in seen.consumer_groups.items():
                if view is None:
                    groups.pop(name, None)
                else:
                    groups[name] = view
    assert requests > 100


def test_traces_of_consumer_groups_show_no_rule_of_the_others() -> None:
    for seed in range(60):
        trace = generate(seed, KAFKA_4_3, 60, GroupProtocol.CONSUMER, offsets=None)
        found = features_of(trace.settings, trace.events, trace.observations)
        others = {name for name in found if re.match(r"rule (C-(JOIN|SYNC|HB|LEAVE|TMR)|X)-", name)}
        assert others <= {"rule X-POL-05", "rule C-SYNC-30"}, seed  # rules of simple groups, which only offsets create
