"""The core repeats every finding as Kafka 4.3.1 showed it, and the intended protocol has the fix."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, KAFKA_4_4
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.compare.lockstep import as_far_as_recorded, first_difference
from fencepost_conformance.judge.compare.model import follow
from fencepost_conformance.targets.core import Core, CoreSession
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.files import EventTrace, read_traces
from fencepost_conformance.traces.observation import Observation

DOCS = Path(__file__).parents[3] / "docs"
FILES = sorted((DOCS / "findings").glob("**/*.jsonl"))
#: a fault of the member, which a coordinator cannot prevent; a fault that ``intended`` shares with Kafka
NOT_FIXED = {"unreported-partitions", "downgrade-rebalance-lost-by-fail-over"}


def read(path: Path) -> EventTrace:
    (trace,) = read_traces(path)
    assert isinstance(trace, EventTrace)
    return trace


def seen(trace: EventTrace) -> list[Observation]:
    return [observation for observation in trace.observations if observation is not None]


def run(trace: EventTrace, profile: Profile) -> Sequence[Observation]:
    return Core().run(trace.settings, profile, trace.events)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_core_does_as_kafka_did(path: Path) -> None:
    trace = read(path)
    assert len(seen(trace)) == len(trace.events)
    assert first_difference(as_far_as_recorded(run(trace, trace.profile), seen(trace)), seen(trace)) is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_model_follows(path: Path) -> None:
    """The model, written from the rules, allows each step of Kafka's."""
    trace = read(path)
    followed = follow(trace.settings, trace.profile, trace.events, seen(trace))
    assert followed.refused is None


@pytest.mark.parametrize("path", [path for path in FILES if path.stem not in NOT_FIXED], ids=lambda path: path.stem)
def test_the_intended_protocol_does_not(path: Path) -> None:
    trace = read(path)
    session = CoreSession(trace.settings, INTENDED, JavaOrder(MemberIds()))
    observed: list[Observation] = []
    with contextlib.suppress(ValueError):  # the log with the fix may be shorter than Kafka's
        for event in trace.events:
            observed.append(session.feed(event))  # recorded up to the event that is impossible
    recorded = seen(trace)
    assert first_difference(as_far_as_recorded(observed, recorded), recorded[: len(observed)]) is not None


@pytest.mark.jvm
def test_kafka_still_does_it() -> None:
    for release, profile in (("4.3.1", KAFKA_4_3), ("4.4.0", KAFKA_4_4)):
        traces = [trace for trace in map(read, FILES) if trace.profile == profile]
        assert traces
        try:
            with KafkaJvm(release) as kafka:
                answers = kafka.run_many([(trace.settings, trace.events) for trace in traces])
        except CannotRun as reason:
            pytest.skip(str(reason).splitlines()[0])
        for trace, answer in zip(traces, answers, strict=True):
            assert first_difference(as_far_as_recorded(answer, seen(trace)), seen(trace)) is None, trace.name


@pytest.mark.parametrize(
    "part", ["01-data", "02-classic", "03-offsets", "04-consumer", "06-mixed", "07-assignors", "08-runtime"]
)
def test_every_marked_rule_has_a_row(part: str) -> None:
    """Each rule of a coordinator or an assignor that is marked as a Kafka fault is in the tables of its tests; the
    rules of clients have other tables."""
    page = (DOCS / "divergences.md").read_text()
    begin = page.index("## Traces and tests of each Kafka bug")
    rows = page[begin : page.index("\n## ", begin)]
    lines = (DOCS / "rules" / f"{part}.md").read_text().splitlines()
    found = [re.match(r"(?:\| |- \*\*)([A-Z]+-[A-Z0-9]+-\d+)\b", line) for line in lines if "Kafka fault" in line]
    marked = {rule[1] for rule in found if rule is not None}
    assert marked
    assert not {rule for rule in marked if rule not in rows}


def test_the_page_names_every_trace() -> None:
    page = (DOCS / "findings.md").read_text()
    assert FILES
    for path in FILES:
        assert f"[`{path.stem}`]({path.relative_to(DOCS)})" in page
