"""Each check that the catalogue lists asks its predicates: it reports one that refuses on purpose."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

import fencepost_conformance
import fencepost_model
from fencepost.protocol.events import Topic
from fencepost.protocol.settings import Settings
from fencepost_conformance.cli import main
from fencepost_conformance.generate.simulate import simulate
from fencepost_conformance.generate.simulate.consumer_plan import draw_consumer_plan
from fencepost_conformance.generate.simulate.product import Bounds, Client, explore
from fencepost_conformance.generate.simulate.product.consumer_moves import consumer_moves
from fencepost_conformance.judge.promise_checks import ASKED
from fencepost_model.consumer import invariants
from fencepost_model.consumer.state import ConsumerGroup
from fencepost_model.promises import PROMISES, GroupView, MemberView, broken_promises
from fencepost_model.system.checking import check_python
from fencepost_model.system.families import FAMILIES
from fencepost_model.system.manifest import read_manifest, read_problem

SPEC: Final = Path(__file__).parents[3] / "spec"
ENTRIES: Final = {entry.name: entry for entry in read_manifest(SPEC)}
ROOTS: Final = [Path(package.__file__).parent for package in (fencepost_model, fencepost_conformance)]
#: The modules of the closed systems that state promises as properties, by family.
STATING: Final = {
    "consumer": "fencepost_model.system.consumer.properties",
    "mixed": "fencepost_model.system.mixed.properties",
}


@pytest.fixture(params=PROMISES)
def spoilt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the predicate of one promise refuse every group that has a member."""
    name = str(request.param)
    refuses = replace(PROMISES[name], how=lambda group: "on purpose" if group.members else "")
    monkeypatch.setitem(PROMISES, name, refuses)
    return name


def importing() -> set[str]:
    """Return the modules of model and suite that import the catalogue."""
    model = re.compile(r"^from \.\.+promises import ", re.MULTILINE)
    suite = re.compile(r"^from fencepost_model\.promises import ", re.MULTILINE)
    return {
        ".".join((root.name, *path.relative_to(root).with_suffix("").parts))
        for root, line in zip(ROOTS, (model, suite), strict=True)
        for path in root.rglob("*.py")
        if line.search(path.read_text(encoding="utf-8"))
    }


def test_each_module_that_asks_the_catalogue_is_listed() -> None:
    listing = {f"fencepost_conformance.{name}" for name in ("judge.promise_checks", "run.commands.promises")}
    assert importing() - listing == {*ASKED, *STATING.values()}
    assert {family for promise in PROMISES.values() for family in promise.properties} == STATING.keys()


def test_the_closed_systems_ask_it(spoilt: str) -> None:
    for family in (family for family in FAMILIES if family.name in PROMISES[spoilt].properties):
        name = PROMISES[spoilt].properties[family.name]
        assert check_python(ENTRIES[family.base]).violated == [name]


def test_machines_of_the_model_ask_it(spoilt: str) -> None:
    group = ConsumerGroup(epoch=1, assignment_epoch=1, members=(invariants.Member("m1", epoch=0),))
    assert invariants.broken(None, group) == [spoilt]


def test_product_exploration_asks_it(spoilt: str) -> None:
    bounds = Bounds(
        ids=0, generation=None, transitions=50, prompt=True, clients=(Client("k1"),),
        settings=Settings(group_consumer_assignment_interval_ms=0), images=((Topic("t", b"T" * 16, 1),),),
    )  # fmt: skip
    problem = explore(bounds, (consumer_moves,)).problem
    assert problem is not None
    assert problem.startswith(spoilt)


def test_simulation_asks_it(spoilt: str) -> None:
    report = simulate(draw_consumer_plan(7))
    assert report.broken is not None
    assert spoilt in str(report.broken)


# ---- the predicates --------------------------------------------------------------------------------------------------


def group(*members: tuple[int, set[int], set[int]], epoch: int = 5, assigned: int = 5) -> GroupView:
    views = [MemberView(f"m{number}", *row) for number, row in enumerate(members, 1)]
    return GroupView(epoch, assigned, views)


@pytest.mark.parametrize(
    ("view", "broken"),
    [
        (group(), []),
        (group((5, {1}, {2}), (5, {3}, {4})), []),
        (group((5, {1}, set()), (5, {1}, set())), ["INV-KIP-01"]),
        (group((5, {1}, set()), (5, set(), {1})), ["INV-KIP-01"]),
        (group((5, set(), {1}), (5, set(), {2}), (5, set(), {1})), ["INV-KIP-01"]),
        (group((5, {1, 2}, {2})), ["INV-KIP-02"]),
        (group((5, {1}, {1}), (5, {1}, set())), ["INV-KIP-01", "INV-KIP-02"]),
        (group((-2, {1}, set()), (0, set(), set())), []),
        (group((6, set(), set())), ["INV-KIP-03"]),
        (group(epoch=4), ["INV-KIP-03"]),
        (group((6, set(), set()), epoch=6, assigned=5), ["INV-KIP-03"]),
    ],
)
def test_a_predicate_refuses_exactly_what_breaks_it(view: GroupView, broken: list[str]) -> None:
    assert [promise for promise, _ in broken_promises(view)] == broken


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_lists_what_the_manifest_says(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["promises", "--json"])
    assert ended.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["id"] for each in told["promises"]] == list(PROMISES)
    for each in told["promises"]:
        broken, checked = each["broken_by"], each["checked"]
        assert broken["configurations"], "no configuration shows that the property can fail"
        names = set(checked["closed_systems"]["properties"].values())
        assert {ENTRIES[name].breaks for name in broken["configurations"]} == names
        for name in checked["closed_systems"]["configurations"]:
            assert ENTRIES[name].expected == "holds"
            assert names & {*read_problem(ENTRIES[name]).properties}
        for files in checked["partial"].values():
            assert all(each["id"] in (ROOTS[1] / file).read_text(encoding="utf-8") for file in files)
    assert not set(told["not_in_the_catalogue"]) & PROMISES.keys()


def test_an_unknown_promise_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["promises", "INV-KIP-1"])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fencepost promises: no promise 'INV-KIP-1'; did you mean INV-KIP-01")
