"""Of the tables of rules only those are asked for that a step can show: asking for all of them finds nothing more."""

from __future__ import annotations

import pytest

from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.coverage import rules, rules_of_group
from fencepost_conformance.coverage.features import features_of
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_what_a_table_needs_is_needed(protocol: GroupProtocol, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [generate(seed, KAFKA_4_3, 60, protocol, offsets=None) for seed in range(100)]
    found = [features_of(trace.settings, trace.events, trace.observations) for trace in traces]
    for module in (rules, rules_of_group):
        monkeypatch.setattr(module, "parts_of", lambda _: 63)
    for trace, reached in zip(traces, found, strict=True):
        assert features_of(trace.settings, trace.events, trace.observations) == reached, trace.seed
