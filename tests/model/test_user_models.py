"""Models and properties that a user writes: the examples of the page, both engines, and every kind of bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_conformance.cli import main
from fencepost_model.system.changes import changes
from fencepost_model.system.checking import check_python, check_tlc, explore_with
from fencepost_model.system.families import FAMILIES
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.system.user_model import check_values, read_model, user_entry
from fencepost_model.tlc.run import TlcMissing
from fencepost_model.tlc.values import parse_state

ROOT: Final = Path(__file__).parents[2]
SPEC: Final = ROOT / "spec"
EXAMPLES: Final = ROOT / "examples" / "models"
PAGE: Final = (ROOT / "docs" / "own-models.md").read_text(encoding="utf-8")
ENTRIES: Final = {entry.name: entry for entry in read_manifest(SPEC)}


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Run ``check --json`` and return its exit status and its result."""
    with pytest.raises(SystemExit) as ended:
        main(["check", "--json", *words])
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run ``check``, which must print one line and exit with status 2. Returns the line."""
    with pytest.raises(SystemExit) as ended:
        main(["check", *words])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


# ---- the page --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_the_page_shows_each_example(path: Path) -> None:
    blocks = re.findall(r"```(?:python)?\n(.*?)```", PAGE, re.DOTALL)
    assert path.read_text(encoding="utf-8") in blocks


@pytest.mark.parametrize(
    ("name", "broken", "states"),
    [("quiet.cfg", [], 461), ("stalled.cfg", ["NoTwoClientsEverBelieveToOwnAPartition"], 4_377),
     ("stalled.py", ["no_partition_has_two_owners"], 4_377)],
)  # fmt: skip
def test_an_example_gives_the_result_on_the_page(
    name: str, broken: list[str], states: int, capsys: pytest.CaptureFixture[str]
) -> None:
    status, result = checked(capsys, "--config", str(EXAMPLES / name))
    (row,) = result["configurations"]
    assert (status, row["violated"], row["states"]) == (bool(broken), broken, states)
    if broken:
        assert len(row["steps"]) - 1 == 22
        assert "22 steps" in PAGE


def test_properties_are_added_to_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    status, result = checked(capsys, "EagerFaults", "--property", str(EXAMPLES / "generations.py"))
    (row,) = result["configurations"]
    assert (status, row["violated"], len(row["steps"]) - 1) == (1, ["owners_are_members"], 15)


@pytest.mark.tlc
def test_tlc_explores_the_same_file() -> None:
    try:
        row = check_tlc(user_entry(EXAMPLES / "stalled.cfg", SPEC))
    except TlcMissing as missing:
        pytest.skip(str(missing))
    assert (row.violated, len(row.trace)) == (["NoTwoClientsEverBelieveToOwnAPartition"], 23)
    assert row.steps[0].state == check_python(user_entry(EXAMPLES / "stalled.cfg", SPEC)).steps[0].state


# ---- what a configuration means --------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_configuration_that_assigns_nothing_is_the_base(family: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.cfg"
    path.write_text(f"\\* Family: {family.name}\n")
    assert read_model(user_entry(path, SPEC)).problem.config == read_problem(ENTRIES[family.base]).config


def test_our_configurations_can_be_given_as_files() -> None:
    """Each of our files names its module in a comment, so it is a user's file too."""
    for entry in (entry for entry in ENTRIES.values() if entry.has_model):
        problem = read_problem(entry)
        assert read_model(user_entry(entry.cfg, SPEC)).problem == problem, entry.name
        check_values(problem.config)


def test_a_mutant_may_be_assigned(tmp_path: Path) -> None:
    path = tmp_path / "mine.cfg"
    name = "EveryJoinPhaseEndsInANewGeneration"
    path.write_text(f"\\* Family: classic\nCONSTANTS NextGeneration <- SameGeneration\nPROPERTIES\n{name}")
    assert check_python(user_entry(path, SPEC)).violated == [name]


@pytest.mark.tlc
def test_a_module_beside_the_file_defines_more(tmp_path: Path) -> None:
    (tmp_path / "mine.tla").write_text(
        '---- MODULE mine ----\nEXTENDS MCClassicGroup\nMine == {"c1"}\nOne == <<"m7">>\n====\n'
    )
    path = tmp_path / "mine.cfg"
    path.write_text("\\* Family: classic\nCONSTANTS Clients <- Mine MemberIds <- One\nINVARIANTS TheGroupIsNeverStable")
    row = check_python(user_entry(path, SPEC))
    assert row.violated == ["TheGroupIsNeverStable"]
    try:
        other = check_tlc(user_entry(path, SPEC))
    except TlcMissing as missing:
        pytest.skip(str(missing))
    assert (other.violated, len(other.trace)) == (row.violated, len(row.trace))


# ---- bad input -------------------------------------------------------------------------------------------------------

FAMILY: Final = "\\* Family: classic\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: no family; begin with \\* Family: and one of classic, consumer, mixed, log, offsets"),
        ("\\* Family: classical\n", ":1: no family 'classical'; did you mean classic?"),
        (f"{FAMILY}CONSTANTS\n  Fault = 1", ":3: no constant of the classic family 'Fault'; did you mean Faults"),
        (f"{FAMILY}CONSTANTS Faults = TRUE", ":2: Faults: TRUE is not a number"),
        (f"{FAMILY}CONSTANTS Faults = -1", ":2: Faults: -1 is less than 0"),
        (f"{FAMILY}CONSTANTS Faults =\nINVARIANTS X", ":2: Faults has no value"),
        (f"{FAMILY}CONSTANTS Faults = {{1", ":2: Faults: "),
        (f'{FAMILY}CONSTANTS\nAssignor = "rang"', ":3: Assignor: 'rang' is none of range, any"),
        (f'{FAMILY}CONSTANTS\nAllowed = {{"Crash"}}', ":3: Allowed: not an environment action: Crash"),
        (f"{FAMILY}CONSTANTS Clients <- Two", ":2: no definition 'Two'; did you mean TwoClients"),
        (f'{FAMILY}CONSTANTS Partitions = <<"p2">>', ":2: Partitions: p2: partitions are p1, p2"),
        (f'{FAMILY}CONSTANTS InstanceOf = [c1 |-> "i1"]', ":2: InstanceOf: no value for c2"),
        (f"{FAMILY}INVARIANTS\n\nNoPartitionHasTwoComitters", ":4: no property of the classic family"),
        (f"{FAMILY}SPECIFICATION Spek", ":2: no specification 'Spek'; did you mean Spec"),
        (f"{FAMILY}SYMMETRY S", ":2: SYMMETRY is not supported; remove it"),
        (f"{FAMILY}Faults = 1\nCONSTANTS", ":2: 'Faults = 1' comes before any of"),
        (FAMILY, ": nothing to check; add INVARIANTS or PROPERTIES, or give --property FILE.py"),
    ],
)
def test_a_bad_configuration_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.cfg"
    path.write_text(text)
    assert refused(capsys, "--config", str(path)).startswith(f"fencepost check: {path}{message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ': no base; begin with based_on = "EagerQuiet", or another configuration'),
        ('based_on = "EagerQiet"', ": no configuration 'EagerQiet'; did you mean EagerQuiet"),
        ('based_on = "EagerQuiet"\nfault = 1', ": no constant of the classic family 'fault'; did you mean faults"),
        ('based_on = "EagerQuiet"\nfaults = "1"', ": faults: '1' is not of the type int"),
        ('based_on = "EagerQuiet"\nprofile = "kafka-9"', ": no profile 'kafka-9'"),
        ('based_on = "EagerQuiet"\ninstance_of = {"c9": "i1"}', ": instance_of: no client 'c9'"),
        ('based_on = "EagerQuiet"\nproperties = ["X"]', ": no property of the classic family 'X'"),
        ('based_on = "EagerQuiet"\nallowed = {"Crash"}', ": not an environment action: Crash"),
        ("x = 1\ny = 1 / 0", ":2: ZeroDivisionError: division by zero"),
        ("x = 1\ny =", ":2: SyntaxError: invalid syntax"),
    ],
)
def test_a_bad_python_file_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    assert refused(capsys, "--config", str(path)).startswith(f"fencepost check: {path}{message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", ": no property; write a function whose parameters are variables: def p(group)"),
        (
            "\ndef p(grup):\n    return True",
            ":2: property p: no variable of a classic system 'grup'; did you mean group",
        ),
    ],
)
def test_a_bad_file_of_properties_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    line = refused(capsys, "EagerQuiet", "--property", str(path))
    assert line.startswith(f"fencepost check: {path}{message}")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('group["leeder"] == ""', "property p raised: {}:4: KeyError: 'leeder'"),
        ('group.leeder == ""', "property p raised: {}:4: AttributeError: no field 'leeder'; there is delaysLeft"),
        ("None", "property p gave no answer: {}:1: it returned None, neither True nor False"),
    ],
)
def test_a_property_that_raises_is_broken_with_the_steps_to_the_state(
    answer: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"def p(group):\n    if not group.members:\n        return True\n    return {answer}\n")
    status, result = checked(capsys, "EagerQuiet", "QuietSettles", "--property", str(path))
    assert status == 2
    for row in result["configurations"]:
        assert row["verdict"] == "broken"
        assert row["states"] > 20
        assert len(row["steps"]) - 1 == 6
    assert result["broken"][0]["why"].startswith(why.format(path))


def test_the_limit_of_states_keeps_what_was_explored(capsys: pytest.CaptureFixture[str]) -> None:
    status, result = checked(capsys, "--config", str(EXAMPLES / "stalled.py"), "--limit-states", "1000")
    (row,) = result["configurations"]
    assert (status, row["verdict"]) == (2, "undecided")
    assert row["states"] > 1_000
    assert "more than 1,000 states" in result["error"]


# ---- states ----------------------------------------------------------------------------------------------------------


def test_changes_lead_from_each_state_to_the_next(tmp_path: Path) -> None:
    """Each field that differs is named once, with both values."""
    entry = user_entry(EXAMPLES / "stalled.py", SPEC)
    row = check_python(entry)
    explored = explore_with(entry)
    assert [step.action for step in row.steps] == [each.label or () for each in explored.found.violations[0].trace]
    for before, after in zip(row.steps, row.steps[1:], strict=False):
        found = changes(before.state, after.state)
        assert {each.path.replace("[", ".").split(".")[0] for each in found} == {
            name for name in after.state if before.state[name] != after.state[name]
        }


def test_a_change_is_as_deep_as_both_states_have_it() -> None:
    before = parse_state('group = [state |-> "Empty", members |-> [m1 |-> [epoch |-> 1], m2 |-> 2], ids |-> {1}]')
    after = parse_state('group = [state |-> "Empty", members |-> [m1 |-> [epoch |-> 2], m3 |-> 3], ids |-> {2}]')
    assert [str(each) for each in changes(before, after)] == [
        "group.ids: {1} -> {2}",
        'group.members["m1"].epoch: 1 -> 2',
        'group.members["m2"]: 2 -> (absent)',
        'group.members["m3"]: (absent) -> 3',
    ]


def test_a_number_that_becomes_a_truth_value_is_a_change() -> None:
    assert [str(each) for each in changes({"x": 1}, {"x": True})] == ["x: 1 -> TRUE"]


def test_itf_has_each_state_and_the_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    itf, html = tmp_path / "trace.itf.json", tmp_path / "trace.html"
    status, result = checked(capsys, "KafkaStarves", "--states", "--itf", str(itf), "--html", str(html))
    assert status == 0
    (row,) = result["configurations"]
    written = json.loads(itf.read_text(encoding="utf-8"))
    assert written["loop"] == row["loop"]
    assert written["#meta"]["fencepost"]["configuration"] == "KafkaStarves"
    assert [{name: value for name, value in state.items() if name != "#meta"} for state in written["states"]] == [
        step["state"] for step in row["steps"]
    ]
    page = html.read_text(encoding="utf-8")
    assert all(change["path"].replace('"', "&quot;") in page for step in row["steps"] for change in step["changes"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["EagerQuiet", "--itf", "{}/x.itf.json"], "an ITF file has one counter-example, but there are 0"),
        (["EagerQuiet", "--html", "{}/none/x.html"], "none/x.html: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_written_loses_no_result(
    words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, result = checked(capsys, *(word.format(tmp_path) for word in words))
    assert (status, result["counts"]["passed"]) == (2, 1)
    assert why in result["error"]
