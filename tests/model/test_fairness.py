"""The model assumes the same fairness as the specification. E1 compares graphs, so it cannot see a difference there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
from graphs import SPEC

from fencepost_model.system.families import CLASSIC, CONSUMER, MIXED, OFFSETS, Family, system_of
from fencepost_model.system.manifest import read_manifest, read_problem

FAIR: Final = {"ClassicGroup": CLASSIC, "ConsumerGroup": CONSUMER, "MixedGroup": MIXED, "Offsets": OFFSETS}
ENTRIES: Final = [entry for entry in read_manifest(SPEC) if entry.has_model]


def disjuncts(module: str, of: str) -> frozenset[str]:
    text = Path(SPEC, f"{module}.tla").read_text(encoding="utf-8")
    (part,) = re.findall(rf"^{of} ==\n((?:  \\/ .*\n)+)", text, re.MULTILINE)
    return frozenset(re.findall(r"(?:\\/|:) (\w+)(?:\([\w, ]+\))?$", part, re.MULTILINE))


def fair_system(family: Family) -> Any:
    """Return the system of the family's first configuration that checks liveness."""
    for entry in ENTRIES:
        if entry.module.stem in family.modules and (problem := read_problem(entry)).fair:
            return system_of(problem)
    raise AssertionError(f"{family.modules} has no configuration about liveness")


@pytest.mark.parametrize("module", FAIR)
def test_fairness_is_weak_and_of_the_whole_disjunction_system(module: str) -> None:
    (fairness,) = fair_system(FAIR[module]).properties.fairness
    assert not fairness.strong
    system, environment = disjuncts(module, "System"), disjuncts(module, "Environment")
    assert len(system) >= 10
    assert {action for action in system | environment if fairness.covers((action,))} == system
