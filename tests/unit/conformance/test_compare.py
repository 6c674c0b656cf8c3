"""Which observations differ, and the name of each difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.records import GroupMetadataKey, Record
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.judge.compare.choices import WatchedChoices
from fencepost_conformance.judge.compare.difference import compare_step
from fencepost_conformance.judge.compare.lockstep import compare
from fencepost_conformance.judge.rows.check import Checker
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.targets.core import Core, CoreSession
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder
from fencepost_conformance.targets.wire_form import wire_form
from fencepost_conformance.traces.observation import Observation

MEMBERS = (m.JoinGroupMember("b", group_instance_id="i", metadata=b"2"), m.JoinGroupMember("a", metadata=b"1"))
JOINED = m.JoinGroupResponse(
    ErrorCode.NONE,
    generation_id=3,
    protocol_type="consumer",
    protocol_name="range",
    leader="b",
    skip_assignment=True,
    member_id="b",
    members=MEMBERS,
)


def seen(*bodies: m.ResponseBody, **parts: object) -> Observation:
    return Observation(replies=tuple(ev.Reply(n, body) for n, body in enumerate(bodies)), **parts)  # type: ignore[arg-type]


def tombstone(group: str) -> Record:
    return Record(GroupMetadataKey(group), None)


SAME = {
    "rows of a join answer": (seen(JOINED), seen(replace(JOINED, members=MEMBERS[::-1]))),
    "null and empty protocol": (seen(replace(JOINED, protocol_name=None)), seen(replace(JOINED, protocol_name=""))),
    "order of answers": (
        seen(JOINED, m.HeartbeatResponse(ErrorCode.NONE)),
        Observation(replies=(ev.Reply(1, m.HeartbeatResponse(ErrorCode.NONE)), ev.Reply(0, JOINED))),
    ),
    "order of deleted groups": (
        seen(records=(tombstone("a"), tombstone("b"))),
        seen(records=(tombstone("b"), tombstone("a"))),
    ),
    "the name of an inner error": (seen(error="IllegalStateException"), seen()),
}
KEY = ev.TimerKey(ev.TimerKind.JOIN, "g")
DIFFERENT = {
    "replies[0].generation_id": (seen(JOINED), seen(replace(JOINED, generation_id=4))),
    "replies[0].members[1].metadata": (
        seen(JOINED),
        seen(replace(JOINED, members=(MEMBERS[1], replace(MEMBERS[0], metadata=b"")))),
    ),
    "replies[1]": (seen(JOINED), seen(JOINED, JOINED)),
    "records[0].key.group": (seen(records=(tombstone("a"),)), seen(records=(tombstone("b"),))),
    "records[1]": (seen(records=(tombstone("a"),)), seen(records=(tombstone("a"), tombstone("b")))),
    "groups[g]": (seen(groups={"g": None}), seen()),
    "timers[TimerKey(JOIN, g, \"\", 0)]": (seen(timers={KEY: 1}), seen(timers={KEY: None})),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_freely_chosen_values_are_not_differences(case: str) -> None:
    left, right = SAME[case]
    assert compare_step(0, left, right) is None


@pytest.mark.parametrize("field", DIFFERENT)
def test_a_difference_names_its_field(field: str) -> None:
    left, right = DIFFERENT[field]
    found = compare_step(5, left, right)
    assert found is not None
    assert (found.event, found.field) == (5, field)


def test_fields_that_a_version_lacks_are_not_compared() -> None:
    """G-WIRE-01, 12, 13, 20."""
    assert wire_form(replace(JOINED, protocol_name=""), 9) == replace(JOINED, protocol_name=None)
    old = wire_form(JOINED, 4)
    assert isinstance(old, m.JoinGroupResponse)
    assert (old.protocol_type, old.skip_assignment, old.members[0].group_instance_id) == (None, False, None)
    listed = m.ListGroupsResponse(
        ErrorCode.NONE, (m.ListedGroup("g", protocol_type="consumer", group_state="Stable", group_type="classic"),)
    )
    assert wire_form(listed, 3) == m.ListGroupsResponse(
        ErrorCode.NONE, (m.ListedGroup("g", protocol_type="consumer", group_state="", group_type=""),)
    )


class LastLeads(JavaOrder):
    """A coordinator that elects the last member rather than the first."""

    def leader(self, group_id: str, candidates: object) -> str:
        return list(candidates)[-1]  # type: ignore[call-overload, no-any-return]


def test_another_choice_of_leader_is_followed() -> None:
    """The choice of a leader is not a difference; its consequences are compared (NOT-10)."""
    followed = 0
    for seed in range(40):
        trace = generate(seed, KAFKA_4_3, 80)
        other, _ = Core(lambda: LastLeads(MemberIds())).run_until_raised(trace.settings, KAFKA_4_3, trace.events)
        found = compare(trace.settings, KAFKA_4_3, trace.events, trace.observations, other)
        assert found.difference is None, f"seed {seed}: {found.difference}"
        assert found.steps
        followed += found.followed
    assert followed


def test_choices_that_are_given_are_used() -> None:
    choices = WatchedChoices(JavaOrder(MemberIds()), {(4, 1): "b"})
    choices.event = 4
    assert [choices.leader("g", ["a", "b"]), choices.leader("g", ["a", "b"])] == ["a", "b"]
    assert [(call.number, call.answer) for call in choices.calls] == [(0, "a"), (1, "b")]


def test_a_difference_is_called_by_the_switch_that_explains_it() -> None:
    """The core under ``kafka-4.3`` beside the core under ``intended``: each difference has the name of a fault."""
    names: set[str] = set()
    for seed in range(60):
        trace = generate(seed, INTENDED)
        other, _ = Core().run_until_raised(trace.settings, KAFKA_4_3, trace.events)
        found = compare(trace.settings, INTENDED, trace.events, trace.observations, other)
        if found.difference is not None:
            assert found.divergence is not None, f"seed {seed}: {found.difference}"
            names.add(found.divergence)
    assert len(names) > 4
    assert {"fault_parked_fail_early", "fault_timeout_undoes_memory"} <= names


def test_a_difference_that_no_switch_explains_has_no_name() -> None:
    trace = generate(1, INTENDED, 40)
    place = next(n for n, step in enumerate(trace.observations) if step.replies)
    other = [*trace.observations]
    other[place] = replace(other[place], replies=())
    found = compare(trace.settings, INTENDED, trace.events, trace.observations, other)
    assert (found.steps, found.divergence) == (place, None)


def test_a_session_reports_net_changes() -> None:
    session = CoreSession(Settings(), KAFKA_4_3, JavaOrder(MemberIds()))
    session.feed(ev.Load(0, leader_epoch=0, records=()))
    body = m.JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=(m.Protocol("range", b""),),
    )
    first = session.feed(ev.Request(5, id=1, version=9, client_id="c", client_host="/h", body=body))
    pending = ev.TimerKey(ev.TimerKind.SESSION, "g", f"c-{MemberIds()('').removeprefix('-')}")
    assert first.timers[pending] == 10_005
    assert set(first.groups) == {"g"}
    fired = session.feed(ev.TimerFired(10_005, pending))
    assert fired.timers[pending] is None
    assert pending not in session.armed


def test_a_target_that_stops_in_the_middle_has_not_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stops:
        def run_each(self, traces: list[tuple[Settings, list[ev.Event]]]) -> list[list[Observation]]:
            return [Core().run(settings, KAFKA_4_3, events)[:30] for settings, events in traces]

    checker = Checker(Job("core", KAFKA_4_3.name, 50, False))
    monkeypatch.setattr(checker, "kafka", Stops())
    (row,) = checker.check(range(3, 4))
    assert (row.outcome, row.event, row.right) == ("differed", 30, "ends")
