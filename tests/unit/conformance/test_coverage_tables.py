"""For each step only the tables that can apply are evaluated; evaluating all of them finds no further rule."""

from __future__ import annotations

import pytest

from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.coverage import rules, rules_of_group
from fencepost_conformance.judge.coverage.features import features_of


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_every_row_of_a_table_is_needed(protocol: GroupProtocol, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [generate(seed, KAFKA_4_3, 60, protocol, offsets=None) for seed in range(100)]
    found = [features_of(trace.settings, trace.events, trace.observations) for trace in traces]
    for module in (rules, rules_of_group):
        monkeypatch.setattr(module, "parts_of", lambda _: 63)
    for trace, reached in zip(traces, found, strict=True):
        assert features_of(trace.settings, trace.events, trace.observations) == reached, trace.seed
