"""The TLA+ specification meets its manifest: TLC checks small configurations, and the text of all is checked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_model.system.checking import explore_entry
from fencepost_model.system.kafka_faults import FAULTS
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.tlc.run import TlcBroke, TlcMissing, TlcRun, run_tlc

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


def comments(text: str, begin: str = "\\*") -> list[str]:
    """Return the line comments of a module; the lines of one comment are joined."""
    found: list[str] = []
    follows = False
    for line in text.splitlines():
        code, mark, words = line.partition(begin)
        if mark and follows and not code.strip():
            found[-1] += f" {words.strip()}"
        elif mark:
            found.append(words.strip())
        follows = bool(mark) and not code.strip()
    return found


def lacks_words(comment: str) -> bool:
    """Return whether a comment cites a rule before it says what the rule is, or says nothing else."""
    rule = r"[A-Z]+(-[A-Z]+)*-\d+[a-z]?"
    return bool(re.match(rf"\(?{rule}", comment)) or (
        bool(re.search(rule, comment)) and len(re.findall(r"[a-z]{2,}", comment)) < 2
    )


def test_a_comment_says_a_rule_in_words_before_its_id() -> None:
    found = [(path.name, each) for path in SPEC.glob("*.tla") for each in comments(path.read_text(encoding="utf-8"))]
    assert len(found) > 700
    assert [(name, each) for name, each in found if lacks_words(each)] == []


def test_a_comment_of_a_closed_system_says_a_rule_in_words_before_its_id() -> None:
    files = (SPEC.parent / "model" / "fencepost_model" / "system").rglob("*.py")
    found = [(path.name, each) for path in files for each in comments(path.read_text(encoding="utf-8"), "# ")]
    assert len(found) > 60
    assert [(name, each) for name, each in found if lacks_words(each)] == []


@pytest.mark.parametrize("comment", ["C-JOIN-47, C-ST-14", "(M-MS-01..03)", "INV-KIP-09: given up", "fatal (N-ERR-04)"])
def test_a_bare_rule_id_is_noticed(comment: str) -> None:
    (found,) = comments(f"F == TRUE  \\* {comment}\n")
    assert lacks_words(found)


def unassumed(text: str) -> set[str]:
    """Return the constants of a module about which it assumes nothing."""
    code = re.sub(r"\\\*[^\n]*|\(\*.*?\*\)", "", text, flags=re.DOTALL)
    blocks = re.findall(r"^CONSTANTS?\s+((?:\w+(?:\(_\))?,\s*)*\w+)", code, re.MULTILINE)
    constants = {name for block in blocks for name in re.findall(r"\w+", block)} - {"_"}
    assumptions = re.findall(r"^ASSUME (.*(?:\n .*)*)", code, re.MULTILINE)
    # An assumption may use a definition, such as the set of all ids.
    used = {name for each in assumptions for name in re.findall(r"\w+", each)}
    bodies = dict(re.findall(r"^(\w+) +== (.*(?:\n .*)*)", code, re.MULTILINE))
    for name in [name for name in used if name in bodies]:
        used |= {*re.findall(r"\w+", bodies[name])}
    return constants - used


def test_a_module_assumes_something_about_each_of_its_constants() -> None:
    """TLC checks the assumptions first, so that a configuration with a wrong value fails at once."""
    found = {path.stem: unassumed(path.read_text(encoding="utf-8")) for path in SPEC.glob("*.tla")}
    assert {module: names for module, names in found.items() if names} == {}


def test_a_constant_without_an_assumption_is_noticed() -> None:
    text = (
        "CONSTANTS\n  Faults,  \\* how many\n  Allowed\n\nCONSTANT Reorder\n\nASSUME Faults \\in Nat\n  /\\ Reorder\n"
    )
    assert unassumed(text) == {"Allowed"}


@pytest.mark.tlc
@pytest.mark.all
def test_a_configuration_with_an_unknown_fault_is_rejected(tmp_path: Path, tlc: None) -> None:
    text = (SPEC / BY_NAME["EagerQuiet"]["cfg"]).read_text().replace("Allowed <- StartsOnly", 'Allowed = {"Starts"}')
    (tmp_path / "Changed.cfg").write_text(text)
    with pytest.raises(TlcBroke, match="Assumption"):
        run_tlc(SPEC / "MCClassicGroup.tla", tmp_path / "Changed.cfg", short=True)


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
            lines = [line.strip() for line in text.splitlines()]
            named = {FAULTS.get(line) or line.split()[0] for line in lines if re.match(r"\w+ (=|<-) ", line)}
            assert set(each["constants"]) == named - replaced, each["name"]
