"""The pinned verdicts of findings agree with Kafka's own coordinator, for the oldest and the newest release."""

from __future__ import annotations

from pathlib import Path

import pytest
from jvm_traces import require_harness

from fencepost_conformance.judge.findings.catalogue import FINDINGS
from fencepost_conformance.judge.findings.run import judge_all, opened
from fencepost_conformance.judge.findings.table import changed, read_pinned
from fencepost_conformance.targets.jvm.releases import RELEASES

pytestmark = pytest.mark.jvm

FOLDER = Path(__file__).parents[2] / "docs" / "findings"


@pytest.mark.parametrize("release", [RELEASES[0], RELEASES[-1]])
def test_kafka_has_the_faults_that_are_pinned(release: str) -> None:
    require_harness(release)
    with opened(f"kafka:{release}") as run:
        found = judge_all(FINDINGS, FOLDER, run, advance=lambda: None)
    assert changed(read_pinned(FOLDER)[release], found) == []
