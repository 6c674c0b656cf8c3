"""Each check of a finding returns "present" for the fault, "gone" for the fix, and neither if the probe did not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Event, Load, Reply, Request, TimerFired
from fencepost.protocol.messages import HeartbeatResponse
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_3, PROFILES
from fencepost.protocol.settings import Settings
from fencepost_conformance.judge.findings.catalogue import FINDINGS, Finding
from fencepost_conformance.judge.findings.judge import Judged, Verdict
from fencepost_conformance.judge.findings.play import play
from fencepost_conformance.judge.findings.run import core, judge_all
from fencepost_conformance.judge.findings.table import read_pinned
from fencepost_conformance.judge.findings.verdicts import verdict
from fencepost_conformance.traces.observation import Observation

FOLDER = Path(__file__).parents[3] / "docs" / "findings"
#: a fault of the member, which a coordinator cannot prevent; a fault that ``intended`` shares with Kafka
NOT_FIXED = {"unreported-partitions", "downgrade-rebalance-lost-by-fail-over"}


@cache
def judged(profile: str) -> dict[str, Judged]:
    return judge_all(FINDINGS, FOLDER, core(PROFILES[profile]), advance=lambda: None)


def test_every_trace_is_a_finding() -> None:
    files = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.glob("**/*.jsonl")}
    assert {each.path for each in FINDINGS} == files
    assert len({each.name for each in FINDINGS}) == len(FINDINGS) == len(files)


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda each: each.name)
def test_the_fault_is_present_as_kafka_does_it(finding: Finding) -> None:
    found = judged(finding.trace(FOLDER).profile.name)[finding.name]
    assert found.verdict is Verdict.PRESENT
    assert found.why


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda each: each.name)
def test_the_fault_is_gone_under_intended(finding: Finding) -> None:
    expected = Verdict.PRESENT if finding.name in NOT_FIXED else Verdict.GONE
    assert judged(INTENDED.name)[finding.name].verdict is expected


@pytest.mark.parametrize("profile", [KAFKA_4_0, KAFKA_4_1, KAFKA_4_3], ids=lambda each: each.name)
def test_the_core_has_the_faults_of_the_release_of_its_profile(profile: Profile) -> None:
    pinned = read_pinned(FOLDER)
    (release,) = [name for name in pinned if profile.name == f"kafka-{name.rpartition('.')[0]}"]
    assert {name: row.verdict for name, row in judged(profile.name).items()} == pinned[release]


def test_a_loaded_group_that_rebalances_after_its_downgrade_is_free_of_the_fault() -> None:
    """No profile of the core does so: its answers to heartbeats are replaced."""

    def answering(error: ErrorCode) -> Judged:
        def run(many: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
            return [[_heartbeats_answered(error, seen) for seen in each] for each in core(INTENDED)(many)]

        (finding,) = [each for each in FINDINGS if each.name == "downgrade-rebalance-lost-by-fail-over"]
        return judge_all([finding], FOLDER, run, advance=lambda: None)[finding.name]

    assert answering(ErrorCode.NONE).verdict is Verdict.PRESENT
    assert answering(ErrorCode.REBALANCE_IN_PROGRESS) == Judged(Verdict.GONE)
    assert answering(ErrorCode.UNKNOWN_MEMBER_ID).verdict is Verdict.DIFFERENT


def _heartbeats_answered(error: ErrorCode, seen: Observation) -> Observation:
    return replace(
        seen,
        replies=tuple(
            replace(reply, body=HeartbeatResponse(error)) if isinstance(reply.body, HeartbeatResponse) else reply
            for reply in seen.replies
        ),
    )


def test_no_verdict_on_a_coordinator_that_rejects_everything() -> None:
    """Neither "present" nor "gone": a property that no member used is not confirmed."""

    def refuses(many: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
        return [[_refused(event) for event in events] for _, events in many]

    found = judge_all(FINDINGS, FOLDER, refuses, advance=lambda: None)
    assert {name: row.verdict for name, row in found.items() if row.verdict is not Verdict.DIFFERENT} == {}
    assert all(row.why for row in found.values())


def _refused(event: Event) -> Observation:
    if not isinstance(event, Request):
        return Observation()
    return Observation(replies=(Reply(event.id, HeartbeatResponse(ErrorCode.UNSUPPORTED_VERSION)),))


def test_no_verdict_on_a_silent_coordinator() -> None:
    found = judge_all(FINDINGS, FOLDER, _silent, advance=lambda: None)
    # a coordinator that never answers a SyncGroup violates this property itself
    unanswered = {"forgotten-sync", "sync-of-removed-member", "sync-without-answer"}
    assert {name for name, row in found.items() if row.verdict is Verdict.PRESENT} == unanswered
    assert [name for name, row in found.items() if row.verdict is Verdict.GONE] == []


def _silent(many: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
    return [[Observation() for _ in events] for _, events in many]


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda each: each.name)
def test_no_verdict_on_a_probe_that_has_not_begun(finding: Finding) -> None:
    """Only the topics and the first load."""
    trace = finding.trace(FOLDER)
    first = next(place for place, event in enumerate(trace.events) if isinstance(event, Request))
    begun = replace(trace, events=trace.events[:first], observations=trace.observations[:first])
    (played,) = play([(begun, finding.probes)], core(INTENDED))
    assert verdict(finding, begun, played).verdict is Verdict.DIFFERENT


def test_nothing_is_gone_where_a_timer_was_never_set() -> None:
    """A trace whose timers cannot fire takes another course."""

    def timeless(many: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
        return [[replace(seen, timers={}) for seen in observations] for observations in core(INTENDED)(many)]

    found = judge_all(FINDINGS, FOLDER, timeless, advance=lambda: None)
    fires = {
        each.name
        for each in FINDINGS
        for place, event in enumerate(each.trace(FOLDER).events)
        if isinstance(event, TimerFired) and place not in each.needless
    }
    assert len(fires) > 20
    assert {name for name in fires if found[name].verdict is Verdict.GONE} == set()


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda each: each.name)
def test_loaded_records_are_those_that_the_target_wrote(finding: Finding) -> None:
    """The target is another release, with other epochs and records."""
    trace = finding.trace(FOLDER)
    (played,) = play([(trace, finding.probes)], core(KAFKA_4_0))
    for before, step in pairwise(played.steps):
        if isinstance(step.event, Load) and before.log:
            assert set(step.event.records) <= set(before.log)
            assert step.event.records
