"""The change that each switch makes to the model: a small script that shows it, and the rules that decide there.

``tests/kept/switches.jsonl.gz`` has a script for each switch of a coordinator, ``tests/kept/members.json`` one for each
switch of a member. At the last step, and not before, the model with the switch behaves differently from the model
without it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from fencepost.functions import KafkaFunctions
from fencepost.member import MemberSettings
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.consumer import ConsumerSettings
from fencepost.protocol.events import Event
from fencepost.protocol.profile import SWITCHES, Part, Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.rulebook.book import citations
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.generate.simulate.consumer_pair import ConsumerPair
from fencepost_conformance.generate.simulate.pair import Pair
from fencepost_conformance.judge.rulebook.texts import rule_book
from fencepost_conformance.targets.core import CoreSession
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder
from fencepost_conformance.traces.files import EventTrace, read_traces
from fencepost_model.classic import switches as classic
from fencepost_model.consumer import switches as consumer
from fencepost_model.member import variant as member
from fencepost_model.member.consumer import switches as client
from fencepost_model.mixed import switches as mixed
from fencepost_model.offsets import switches as offsets
from fencepost_model.trace import Follower

KEPT: Final = Path(__file__).parents[1] / "kept"
SCRIPTS: Final = {
    trace.name: trace for trace in read_traces(KEPT / "switches.jsonl.gz") if isinstance(trace, EventTrace)
}
MEMBERS: Final[dict[str, Any]] = json.loads((KEPT / "members.json").read_text(encoding="utf-8"))
FAMILIES: Final = {
    classic.ClassicVariant: classic.DIFFERENCES,
    consumer.ConsumerVariant: consumer.DIFFERENCES,
    mixed.MixedVariant: mixed.DIFFERENCES,
    offsets.OffsetsVariant: offsets.DIFFERENCES,
    member.MemberVariant: member.DIFFERENCES,
    client.ClientVariant: client.DIFFERENCES,
}
OF_COORDINATORS: Final = [each.name for each in SWITCHES if each.part not in (Part.MEMBER, Part.HOST)]
OF_MEMBERS: Final = [*member.DIFFERENCES, *client.DIFFERENCES]
_MATCHER: Final = KafkaFunctions().matcher


def rules_of(switch: str) -> set[str]:
    """Return the rules of a switch: its own, those that its rules about releases (V-…) name, and those of the fields
    that it changes."""
    own = next(each for each in SWITCHES if each.name == switch).rules
    found = {cited for rule in own for cited in (rule, *_named(rule))}
    for family, differences in FAMILIES.items():
        for field in fields(family):
            if field.name in differences.get(switch, ()):
                found |= set(field.metadata["rules"])
    return found


def _named(rule: str) -> list[str]:
    return [*citations(rule_book()[rule].text, rule_book())] if rule.startswith("V-") else []


def first_difference(
    settings: Settings, base: Profile, switch: str, events: Sequence[Event]
) -> tuple[int, set[str]] | None:
    """Return the first event after which a model without the switch rejects what one with it allows, and the rules that
    decide in either; None if there is no such event. A coordinator with the switch takes the events.

    An earlier step may have decided an answer that waits for the log (F-RT-14), so its rules count too."""
    profile = replace(base, **{switch: True})
    session = CoreSession(settings, profile, JavaOrder(MemberIds()))
    with_it, without = Follower(settings, profile, _MATCHER), Follower(settings, base, _MATCHER)
    earlier: set[str] = set()
    for place, event in enumerate(events):
        seen = session.feed(event)
        allowed = with_it.feed(event, seen)
        assert allowed.ok, f"the model with {switch}: {allowed}"
        other = without.feed(event, seen)
        if not other.ok:
            decided = {*allowed.rules, *other.rules}
            return place, decided | earlier if "F-RT-14" in decided else decided
        earlier.update(allowed.rules)
    return None


def test_every_switch_has_a_script() -> None:
    assert [*SCRIPTS] == OF_COORDINATORS
    assert [*MEMBERS] == OF_MEMBERS


@pytest.mark.parametrize("switch", OF_COORDINATORS)
def test_a_switch_shows_under_its_rules(switch: str) -> None:
    script = SCRIPTS[switch]
    found = first_difference(script.settings, script.profile, switch, script.events)
    assert found is not None
    assert found[0] == len(script.events) - 1
    assert found[1] & rules_of(switch)


@pytest.mark.parametrize("protocol", GroupProtocol)
@pytest.mark.parametrize("seed", [71_000, *(pytest.param(seed, marks=pytest.mark.all) for seed in (71_001, 71_002))])
def test_random_scripts_differ_under_the_rules_of_a_switch(protocol: GroupProtocol, seed: int) -> None:
    made = generate(seed, INTENDED, 80, protocol, offsets=None)
    for switch in Random(f"{protocol} {seed}").sample(OF_COORDINATORS, 12):
        try:
            found = first_difference(made.settings, INTENDED, switch, made.events)
        except ValueError:  # the events were made for the coordinator without the switch
            continue
        assert found is None or found[1] & rules_of(switch), f"{switch}: {sorted(found[1])}"


# ---- the core and the model under each switch -----------------------------------------------------------------------


def first_rejection(protocol: GroupProtocol, seed: int, switch: str, steps: int = 80) -> str | None:
    """Return the first step of a random script of the core with this switch that the model with it does not allow.

    The script is made for the profile, so the model must follow it to its end. No release of Kafka has one switch
    alone: there the rules of the switch decide."""
    profile = replace(INTENDED, **{switch: True})
    made = generate(seed, profile, steps, protocol, offsets=None)
    session = CoreSession(made.settings, profile, JavaOrder(MemberIds()))
    follower = Follower(made.settings, profile, _MATCHER)
    for place, event in enumerate(made.events):
        verdict = follower.feed(event, session.feed(event))
        if not verdict.ok:
            return f"{protocol.value} {seed} {switch}: event {place}, {type(event).__name__}"
    return None


def test_the_model_follows_the_core_with_each_switch() -> None:
    """Each switch under one protocol, so that the three share the switches."""
    protocols = [*GroupProtocol]
    found = [
        first_rejection(protocols[number % len(protocols)], 71_010, switch, steps=40)
        for number, switch in enumerate(OF_COORDINATORS)
    ]
    assert [each for each in found if each is not None] == []


@pytest.mark.parametrize(
    ("protocol", "seed", "switch"),
    [
        # the first operation of a deletion times out: every row has the error (C-ADM-09)
        (GroupProtocol.CLASSIC, 71_003, "fault_deletion_waits_twice"),
        # a static member joins again with its own id: without M-FENCE-07 its epoch is checked (V-32)
        (GroupProtocol.CONSUMER, 71_005, "old_known_member_at_zero_fenced"),
        # an upgrade in the first rebalance: the waiting members are answered before it is refused (X-UP-03, X-UP-07)
        (GroupProtocol.MIXED, 71_009, "fault_upgrade_answers_before_checks"),
    ],
)
def test_the_model_follows_the_core_where_it_once_did_not(protocol: GroupProtocol, seed: int, switch: str) -> None:
    assert first_rejection(protocol, seed, switch) is None


#: The write of a group's first member times out. Core and model agree with both switches, as the releases have them,
#: and with neither. With one of them alone they disagree on whether the JoinGroup is answered (F-RT-09, C-JOIN-16).
DISAGREE: Final = [
    f"classic 71008 {switch}: event 4, TimerFired"
    for switch in ("fault_parked_fail_early", "fault_timeout_undoes_memory")
]


@pytest.mark.all
@pytest.mark.parametrize("protocol", GroupProtocol)
@pytest.mark.parametrize("seed", range(71_000, 71_010))
def test_the_model_follows_the_core_with_each_switch_under_every_protocol(protocol: GroupProtocol, seed: int) -> None:
    found = [first_rejection(protocol, seed, switch) for switch in OF_COORDINATORS]
    expected = DISAGREE if (protocol, seed) == (GroupProtocol.CLASSIC, 71_008) else []
    assert [each for each in found if each is not None] == expected


# ---- members --------------------------------------------------------------------------------------------------------


class Both:
    """The model of a member with a switch, and beside it the model without."""

    def __init__(self, model: Any, other: Any, state: Any) -> None:
        self.model, self.other, self.state = model, other, state
        self.config = model.config
        self.same, self.rules = True, set[str]()

    def successors(self, state: Any, step: Any) -> Any:
        """Return the result with the switch; note whether the other model does the same."""
        (one,) = self.model.successors(state, step)
        if self.same:
            (other,) = self.other.successors(self.state, step)
            self.same, self.state = one[1:3] == other[1:3], other.state  # state and outputs
            self.rules = {*one.rules, *other.rules}
        return (one,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def pair_of(switch: str, settings: dict[str, Any], profile: Profile) -> Pair | ConsumerPair:
    if switch in member.DIFFERENCES:
        return Pair(MemberSettings("g", assignors=(RangeAssignor(),), profile=profile), (("t", 2), ("u", 1)))
    return ConsumerPair(ConsumerSettings("g", profile=profile, **settings))


def named_inputs(pair: Pair | ConsumerPair) -> dict[str, Any]:
    """Return the inputs that are possible now by their text; equal texts are numbered."""
    found: dict[str, Any] = {}
    times: dict[str, int] = {}
    for each in pair.inputs():
        times[str(each)] = times.get(str(each), 0) + 1
        found[str(each) if times[str(each)] == 1 else f"{each} #{times[str(each)]}"] = each
    return found


@pytest.mark.parametrize("switch", OF_MEMBERS)
def test_a_switch_of_a_member_shows_under_its_rules(switch: str) -> None:
    """The member of the core has the switch, so the pair also checks that the model does what that member does."""
    kept = MEMBERS[switch]
    base = replace(INTENDED, **{kept["beside"]: True}) if "beside" in kept else INTENDED
    pair = pair_of(switch, kept["settings"], replace(base, **{switch: True}))
    plain = pair_of(switch, kept["settings"], base)
    both: Any = Both(pair.model, plain.model, plain.state)
    pair.model = both
    for each in kept["inputs"]:
        assert both.same
        pair = pair.after(named_inputs(pair)[each])
    assert not both.same
    assert both.rules & rules_of(switch)
