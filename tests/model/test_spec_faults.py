"""The faults planted in the specification, at two times: each breaks a property by name, or changes nothing.

A pinned count notices a fault, but does not say what is wrong. So each fault has a configuration that contains it and
that must break one named property. A fault that changes no graph has a configuration that TLC compares with the model
without the fault (link E1). The table in ``docs/spec.md`` is that of the manifest.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from test_spec import ENTRIES, family

from fencepost_model.explore.search import explore
from fencepost_model.system.checking import check_tlc, explore_entry
from fencepost_model.system.families import family_of
from fencepost_model.system.manifest import read_problem

ROOT: Final = Path(__file__).parents[2]
PLANTED: Final[list[dict[str, Any]]] = [
    each
    for each in json.loads((ROOT / "spec" / "manifest.json").read_text(encoding="utf-8"))["configurations"]
    if "fault" in each
]
HARMLESS: Final = [each["name"] for each in PLANTED if each["expected"] == "holds"]
HEADING: Final = "## Faults planted in the specification"
NONE: Final = "none; its graph is that of the model"


def table(planted: list[dict[str, Any]]) -> list[str]:
    """Return the table of these configurations, one row for each family and fault."""
    rows: dict[tuple[int, str, str], list[dict[str, Any]]] = {}
    for each in planted:
        rows.setdefault((each.get("set", 1), family(each["module"]), each["fault"]), []).append(each)
    lines = ["| Set | Groups | Fault | Property that it breaks | Configuration |", "|---|---|---|---|---|"]
    for number, group in product((1, 2), ("Classic", "Consumer", "Mixed")):
        for fault, found in ((fault, found) for (*of, fault), found in rows.items() if of == [number, group]):
            properties = ", ".join(dict.fromkeys(map(broken, found)))
            names = ", ".join(f"`{each['name']}`" for each in found)
            lines.append(f"| {number} | {group.lower()} | {fault} | {properties} | {names} |")
    return lines


def broken(entry: dict[str, Any]) -> str:
    return f"`{entry['property']}`" if entry["property"] else NONE


def test_every_planted_fault_breaks_a_named_property_or_changes_no_graph() -> None:
    for each in PLANTED:
        assert each["module"].endswith("Mutants"), each["name"]
        if each["expected"] == "holds":
            assert each["e1"], f"{each['name']} must be compared with the model, which lacks the fault"
        else:
            assert each["expected"] in ("violates", "temporal"), each["name"]
            assert each["property"], each["name"]


def test_every_fault_of_the_second_set_breaks_a_named_property() -> None:
    """The first set has 32 faults, of which three are harmless; the second has twenty."""
    sets = [{each["fault"] for each in PLANTED if each.get("set", 1) == number} for number in (1, 2)]
    assert [len(faults) for faults in sets] == [32, 20]
    assert {each["set"] for each in PLANTED if "set" in each} == {2}
    assert [each["name"] for each in PLANTED if each.get("set") == 2 and not each["property"]] == []


def test_the_table_of_planted_faults_is_that_of_the_manifest() -> None:
    """If this fails, replace the table by the one in the assertion's left side."""
    section = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8").split(HEADING)[1].split("\n## ")[0]
    assert "\n".join(table(PLANTED)) == "\n".join(line for line in section.splitlines() if line.startswith("|"))


def test_a_row_that_is_not_measured_is_noticed() -> None:
    (first, *_) = PLANTED
    assert table([{**first, "property": "EveryWaitEnds"}]) != table([first])


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_fault_changes_no_count_of_the_model(name: str) -> None:
    problem = read_problem(ENTRIES[name])
    assert problem.mutants
    without = explore(family_of(problem.config).build(problem.config))
    faulty = explore_entry(ENTRIES[name])[1]
    assert (faulty.states, faulty.generated) == (without.states, without.generated)


@pytest.mark.tlc
@pytest.mark.all
@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_fault_leaves_the_graph_of_the_specification_as_it_is(name: str, tlc: None) -> None:
    """TLC explores the specification with the fault; the model, with which its graph is compared, does not have it."""
    row = check_tlc(ENTRIES[name], workers=2)
    assert row.compared
    assert row.as_expected, row
