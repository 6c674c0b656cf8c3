"""Link E1 on graphs of more than a hundred thousand states: the largest of each family that the manifest compares."""

from __future__ import annotations

import resource
from typing import Final

import pytest
from graphs import SPEC

from fencepost_conformance.run.mainjob import GRAPHS
from fencepost_model.system.checking import check_tlc
from fencepost_model.system.families import FAMILIES, family_of_module
from fencepost_model.system.manifest import Entry, read_manifest

COMPARED: Final = {entry.name: entry for entry in read_manifest(SPEC) if entry.e1}
#: No configuration of classic groups counts as large; this is the one with the most states.
OF_CLASSIC: Final = "CooperativeFaults"
LARGE: Final = [*(entry for entry in COMPARED.values() if entry.size == "large"), COMPARED[OF_CLASSIC]]
MAX_RESIDENT_GIB: Final = 8


def _peak_gib() -> float:
    """Return the peak of resident memory in GiB, of this process plus the largest process that it started."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(each).ru_maxrss for each in whose) / (1 << 20)


@pytest.mark.tlc
@pytest.mark.slow
@pytest.mark.all
@pytest.mark.parametrize("entry", LARGE, ids=lambda entry: entry.name)
def test_the_two_graphs_are_the_same_beyond_a_hundred_thousand_states(entry: Entry, tlc: None) -> None:
    row = check_tlc(entry, workers=2)
    assert (row.compared, row.wrong) == (True, [])
    assert row.states == entry.distinct
    assert row.states > 100_000
    assert _peak_gib() < MAX_RESIDENT_GIB


def test_a_large_graph_of_every_family_is_compared() -> None:
    assert {family_of_module(entry.module.stem).modules for entry in LARGE} == {each.modules for each in FAMILIES}


def test_the_main_job_compares_a_graph_of_every_family() -> None:
    compared = [COMPARED[name] for name in GRAPHS if name in COMPARED]
    assert {family_of_module(entry.module.stem).modules for entry in compared} == {each.modules for each in FAMILIES}
