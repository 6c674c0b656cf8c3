"""The TLA+ specification meets its manifest: TLC checks small configurations, and the text of all is checked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_model.system.checking import explore_entry
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.tlc.run import TlcMissing, TlcRun, run_tlc

SPEC: Final = Path(__file__).resolve().parents[2] / "spec"
CONFIGURATIONS: Final[list[dict[str, Any]]] = json.loads((SPEC / "manifest.json").read_text())["configurations"]
ENTRIES: Final = {entry.name: entry for entry in read_manifest(SPEC)}
BY_NAME: Final = {each["name"]: each for each in CONFIGURATIONS}
SMALL: Final = [each["name"] for each in CONFIGURATIONS if each["size"] == "small"]


def sampled() -> set[str]:
    """Return the small configurations that TLC checks in every run: of each module, the first of each expectation.

    The model explores all of them in every run; TLC does in ``make test-all``.
    """
    chosen: dict[tuple[str, str], str] = {}
    for name in SMALL:
        chosen.setdefault((BY_NAME[name]["module"], BY_NAME[name]["expected"]), name)
    return {*chosen.values()}


#: Type invariants: they guard the specification, not the protocol, and have no sibling that fails.
TYPES: Final = frozenset({"EveryVariableHasItsType", "EveryLeaseHasItsType"})
#: An invariant that says that the bound of a configuration cuts nothing off.
BOUNDS: Final = {"EveryJoinFindsAnId"}

#: The configuration whose graph has every action of the closed system but one, which a counter-example shows.
ALL_ACTIONS: Final = "StaticCommits"
ONE_MORE: Final = {"UnfencedCommit": "JoinTimerFiresEarly"}


def properties(name: str) -> set[str]:
    """Return the invariants and properties that the configuration checks."""
    text = (SPEC / BY_NAME[name]["cfg"]).read_text()
    found: set[str] = set()
    for block in re.findall(r"^(?:INVARIANTS|PROPERTIES)\n((?:  \w+\n)+)", text, re.MULTILINE):
        found |= set(block.split())
    return found


def run(name: str) -> TlcRun:
    entry = BY_NAME[name]
    try:
        module, short = SPEC / f"{entry['module']}.tla", entry["size"] == "small"
        return run_tlc(module, SPEC / entry["cfg"], workers=entry["workers"], short=short)
    except TlcMissing as missing:
        pytest.skip(str(missing))


def assert_as_pinned(name: str, found: TlcRun) -> None:
    entry = BY_NAME[name]
    match entry["expected"]:
        case "holds":
            assert found.violated is None
            assert (found.distinct, found.generated) == (entry["distinct"], entry["generated"])
            assert entry["depth"] in (None, found.depth)
        case "violates":
            assert found.violated == entry["property"]
            assert len(found.trace) == entry["trace"]
        case "refinement":
            assert found.kind == "step"
            assert re.search(r"of module (Ownership|Durable) is violated", found.output)
            assert len(found.trace) == entry["trace"]
        case "temporal":
            assert found.kind == "liveness"
            assert found.loop is not None
        case other:
            pytest.fail(f"unknown expectation {other}")


@pytest.mark.tlc
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in sampled() else pytest.mark.all) for name in SMALL if name != ALL_ACTIONS],
)
def test_a_small_configuration_gives_the_pinned_result(name: str) -> None:
    assert_as_pinned(name, run(name))


@pytest.mark.tlc
@pytest.mark.slow
def test_every_action_is_reached() -> None:
    """The model explores the configuration here; ``test_e1`` compares this graph with TLC's, labels included."""
    assert BY_NAME[ALL_ACTIONS]["e1"]
    reached = {
        label[0] for _, label, _, _ in explore_entry(ENTRIES[ALL_ACTIONS], transitions=True)[1].graph.transitions()
    }
    for name, action in ONE_MORE.items():
        assert action in {step.action for step in run(name).trace}
        reached.add(action)
    assert reached == actions()


def actions() -> set[str]:
    """Return the disjuncts of System and Environment."""
    text = (SPEC / "ClassicGroup.tla").read_text()
    parts = re.findall(r"^(?:System|Environment) ==\n((?:  \\/ .*\n)+)", text, re.MULTILINE)
    assert len(parts) == 2
    return set(re.findall(r"(?:\\/|:) (\w+)(?:\(\w\))?$", "".join(parts), re.MULTILINE))


def test_every_configuration_file_is_in_the_manifest_and_states_its_expected_result() -> None:
    assert {f"cfg/{path.name}" for path in (SPEC / "cfg").glob("*.cfg")} == {each["cfg"] for each in CONFIGURATIONS}
    outcome = {
        "holds": "HOLDS",
        "violates": "VIOLATES {}",
        "temporal": "VIOLATES-TEMPORAL {}",
        "refinement": "VIOLATES-REFINEMENT {}",
    }
    for each in CONFIGURATIONS:
        spec, expected, guard = (SPEC / each["cfg"]).read_text().splitlines()[:3]
        assert spec == rf"\* Spec:     {each['module']}. {each['about']}", each["name"]
        assert expected == rf"\* Expected: {outcome[each['expected']].format(each['property'])}", each["name"]
        assert guard == rf"\* Guard:    {each['guard']}", each["name"]


def family(module: str) -> str:
    """Return the family of a module. A property of one family does not count for the same name in another."""
    found = re.search("Consumer|Mixed|GroupLog|Durable|Offset", module)
    return found[0] if found else "Ownership" if module == "MCOwnership" else "Classic"


def without_sibling(configurations: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return (family, property) pairs that some configuration says hold, and that none says fail without a guard."""
    held, failing = set(), set()
    for each in configurations:
        if each["expected"] == "holds":
            held |= {(family(each["module"]), name) for name in properties(each["name"]) - TYPES - BOUNDS}
        else:
            failing.add((family(each["module"]), each["property"]))
    return held - failing


def test_every_property_that_holds_in_a_family_fails_there_with_a_guard_removed() -> None:
    assert without_sibling(CONFIGURATIONS) == set()


@pytest.mark.parametrize(
    ("lacking", "name"),
    [
        ("Classic", "EveryWaitEnds"),
        ("Consumer", "NoPartitionHasTwoCommitters"),
        ("Mixed", "OnlyHoldersCommit"),
        ("Offset", "NoAcknowledgedWriteIsLost"),
    ],
)
def test_a_property_that_lacks_a_sibling_in_one_family_is_noticed(lacking: str, name: str) -> None:
    """A sibling of the same name in another family must not count."""

    def is_sibling(each: dict[str, Any]) -> bool:
        return each["property"] == name and family(each["module"]) == lacking

    rest = [each for each in CONFIGURATIONS if not is_sibling(each)]
    assert len(rest) < len(CONFIGURATIONS)
    assert any(each["property"] == name for each in rest)
    assert without_sibling(rest) == {(lacking, name)}


def test_a_configuration_that_must_fail_checks_one_promise_only() -> None:
    for each in CONFIGURATIONS:
        if each["expected"] != "holds":
            assert properties(each["name"]) - TYPES == {each["property"]}, each["name"]


def test_the_sample_has_every_module_and_every_expectation() -> None:
    kinds = {(BY_NAME[name]["module"], BY_NAME[name]["expected"]) for name in SMALL}
    assert {(BY_NAME[name]["module"], BY_NAME[name]["expected"]) for name in sampled()} == kinds
    assert len(kinds) <= len(sampled()) < len(SMALL) / 2


def test_every_pin_is_there() -> None:
    for each in CONFIGURATIONS:
        match each["expected"]:
            case "holds":
                assert each["distinct"], each["name"]
                assert each["generated"] >= each["distinct"], each["name"]
            case "violates" | "refinement":
                assert each["trace"] > 1, each["name"]


def test_the_graph_of_a_compared_configuration_is_not_folded() -> None:
    for each in CONFIGURATIONS:
        if each["e1"]:
            text = (SPEC / each["cfg"]).read_text()
            assert not re.search(r"^(VIEW|SYMMETRY|CONSTRAINT|ACTION_CONSTRAINT)", text, re.MULTILINE), each["name"]
            replaced = {mutant.split()[0] for mutant in read_problem(ENTRIES[each["name"]]).mutants}
            named = set(re.findall(r"^  (\w+) (?:=|<-) ", text, re.MULTILINE))
            assert set(each["constants"]) == named - replaced, each["name"]
