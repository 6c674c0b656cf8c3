"""Each check that the catalogue lists asks its predicates: it reports one that refuses on purpose."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

import fencepost_conformance
import fencepost_model
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import (
    JoinGroupResponse,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_conformance.cli import main
from fencepost_conformance.generate.simulate import simulate
from fencepost_conformance.generate.simulate.consumer_plan import draw_consumer_plan
from fencepost_conformance.generate.simulate.plan import draw_plan
from fencepost_conformance.generate.simulate.product import Bounds, Client, explore
from fencepost_conformance.generate.simulate.product.classic_moves import classic_moves
from fencepost_conformance.generate.simulate.product.consumer_moves import consumer_moves
from fencepost_conformance.judge.findings.catalogue import FINDINGS
from fencepost_conformance.judge.findings.judge import Verdict
from fencepost_conformance.judge.findings.run import core, judge_all
from fencepost_conformance.judge.promise_checks import ASKED, ASKED_ALONE, PARTIAL
from fencepost_model.classic import invariants as classic_invariants
from fencepost_model.classic.state import Group as ClassicGroup
from fencepost_model.classic.state import Member as ClassicMember
from fencepost_model.consumer import invariants
from fencepost_model.consumer.state import ConsumerGroup, Member
from fencepost_model.machines import C_UNREVOKED, COMPLETING, EMPTY, PREPARING, STABLE
from fencepost_model.promises import (
    PROMISES,
    ClassicGroupStep,
    ClassicGroupView,
    ClassicMemberView,
    GroupStep,
    GroupView,
    HeartbeatView,
    JoinAnswerView,
    MemberView,
    SyncAnswerView,
    broken_promises,
)
from fencepost_model.system.checking import check_python
from fencepost_model.system.families import FAMILIES
from fencepost_model.system.manifest import read_manifest, read_problem

SPEC: Final = Path(__file__).parents[3] / "spec"
ENTRIES: Final = {entry.name: entry for entry in read_manifest(SPEC)}
ROOTS: Final = [Path(package.__file__).parent for package in (fencepost_model, fencepost_conformance)]
#: The modules of the closed systems that state promises as properties, by family.
STATING: Final = {
    "classic": ("properties",),
    "consumer": ("consumer.properties", "consumer.steps"),
    "mixed": ("mixed.properties",),
}


ANSWERS: Final = (JoinAnswerView, SyncAnswerView, HeartbeatView)


@pytest.fixture(params=PROMISES)
def spoilt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the predicates of one promise refuse every group that has a member."""
    name = str(request.param)

    def how(seen: Any) -> str:
        if isinstance(seen, ANSWERS):
            return "on purpose"
        group = getattr(seen, "after", seen)
        return "on purpose" if group.members else ""

    monkeypatch.setitem(PROMISES, name, replace(PROMISES[name], how=how, remains=how))
    return name


def importing() -> set[str]:
    """Return the modules of model and suite that ask the catalogue."""
    names = r"promises import (\([^)]*|.*)\b(PROMISES|broken_promises)\b"
    model = re.compile(rf"^from \.\.+{names}", re.MULTILINE)
    suite = re.compile(rf"^from fencepost_model\.{names}", re.MULTILINE)
    return {
        ".".join((root.name, *path.relative_to(root).with_suffix("").parts))
        for root, line in zip(ROOTS, (model, suite), strict=True)
        for path in root.rglob("*.py")
        if line.search(path.read_text(encoding="utf-8"))
    }


def test_each_module_that_asks_the_catalogue_is_listed() -> None:
    listing = {f"fencepost_conformance.{name}" for name in ("judge.promise_checks", "run.commands.promises")}
    stating = {f"fencepost_model.system.{name}" for names in STATING.values() for name in names}
    asking = {module for module, *_ in (*ASKED, *ASKED_ALONE)}
    assert importing() - listing == asking | stating
    assert {family for promise in PROMISES.values() for family in promise.properties} == STATING.keys()


def test_the_closed_systems_ask_it(spoilt: str) -> None:
    for family in (family for family in FAMILIES if family.name in PROMISES[spoilt].properties):
        stated = PROMISES[spoilt].properties[family.name]
        checked = {*read_problem(ENTRIES[family.base]).properties}
        assert {*check_python(ENTRIES[family.base]).violated} == checked.intersection(stated)


def is_about_classic_groups(promise: str) -> bool:
    return PROMISES[promise].about in (ClassicGroupView, ClassicGroupStep, JoinAnswerView, SyncAnswerView)


def test_machines_of_the_model_ask_it(spoilt: str) -> None:
    about = PROMISES[spoilt].about
    one = ClassicMember("m1", None, "c", "/h", 1, 1, (Protocol("range", b""),))
    classic = ClassicGroup(STABLE, protocol_name="range", leader="m1", members=(one,))
    sync = SyncGroupRequest("g", generation_id=0, member_id="m1")
    if about is JoinAnswerView:
        joined = JoinGroupResponse(ErrorCode.NONE, member_id="m1")
        assert classic_invariants.broken_by_answer(sync, joined, classic) == [spoilt]
    elif about is SyncAnswerView:
        synced = SyncGroupResponse(ErrorCode.NONE)
        assert classic_invariants.broken_by_answer(sync, synced, classic) == [spoilt]
    elif is_about_classic_groups(spoilt):
        assert classic_invariants.broken(classic, classic) == [spoilt]
    elif about is HeartbeatView:
        group = ConsumerGroup(epoch=1, assignment_epoch=1, members=(Member("m1", epoch=1),))
        request = ConsumerGroupHeartbeatRequest("g", member_id="m1", member_epoch=1)
        answer = ConsumerGroupHeartbeatResponse(ErrorCode.NONE, member_id="m1", member_epoch=1)
        assert invariants.broken_by_answer(request, answer, group, group) == [spoilt]
    else:
        group = ConsumerGroup(epoch=1, assignment_epoch=1, members=(Member("m1", epoch=0),))
        assert invariants.broken(group, group) == [spoilt]


def test_product_exploration_asks_it(spoilt: str) -> None:
    if PROMISES[spoilt].about in ANSWERS:
        return  # it sees groups only
    bounds, moves = Bounds(ids=1, transitions=200), classic_moves
    if not is_about_classic_groups(spoilt):
        settings = Settings(group_consumer_assignment_interval_ms=0)
        images = ((Topic("t", b"T" * 16, 1),),)
        bounds = replace(bounds, clients=(Client("k1"),), settings=settings, images=images)
        moves = consumer_moves
    problem = explore(bounds, (moves,)).problem
    assert problem is not None
    assert problem.startswith(spoilt)


def test_simulation_asks_it(spoilt: str) -> None:
    report = simulate(draw_plan(1) if is_about_classic_groups(spoilt) else draw_consumer_plan(7))
    assert report.broken is not None
    assert spoilt in str(report.broken)


def test_findings_ask_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (finding,) = [each for each in FINDINGS if each.name == "sync-waits-for-removed-member"]

    def verdict() -> Verdict:
        found = judge_all([finding], SPEC.parent / "docs" / "findings", core(KAFKA_4_3), advance=lambda: None)
        return found[finding.name].verdict

    assert verdict() is Verdict.PRESENT
    monkeypatch.setitem(PROMISES, "INV-MEM-07", replace(PROMISES["INV-MEM-07"], how=lambda _: ""))
    assert verdict() is not Verdict.PRESENT


# ---- the predicates --------------------------------------------------------------------------------------------------


def member(
    number: int, epoch: int = 5, has: Sequence[int] = (), revokes: Sequence[int] = (), **more: Any
) -> MemberView:
    return MemberView(f"m{number}", epoch, {*has}, {*revokes}, **more)


def group(*members: MemberView, epoch: int = 5, assigned: int = 5, **more: Any) -> GroupView:
    """Return a group; each member has the target that it is assigned, unless ``target`` says otherwise."""
    target = more.pop("target", {each.member_id: each.assigned for each in members})
    return GroupView(epoch, assigned, members, target, **more)


@pytest.mark.parametrize(
    ("view", "broken"),
    [
        (group(), []),
        (group(member(1, 5, [1]), member(2, 5, [3])), []),
        (group(member(1, 5, [1]), member(2, 4, [], [2], state=C_UNREVOKED)), []),
        (group(member(1, 5, [1]), member(2, 4, [1]), target={}), ["INV-KIP-01", "INV-KIP-06"]),
        (group(member(1, 4, [1]), member(2, 4, [], [1], state=C_UNREVOKED)), ["INV-KIP-01"]),
        (group(member(1, 4, [1, 2], [2], state=C_UNREVOKED)), ["INV-KIP-02"]),
        (group(member(1, -2, [1]), member(2, 0)), []),
        (group(member(1, 6)), ["INV-KIP-03"]),
        (group(epoch=4), ["INV-KIP-03"]),
        (group(member(1, 6), epoch=6, assigned=5), ["INV-KIP-03"]),
        (group(member(1), member(2), target={"m1": [1], "m2": [1]}), ["INV-KIP-05"]),
        (group(member(1), target={"m1": [1, 1]}), []),
        (group(member(1), target={"m1": [1], "m2": [2]}), ["INV-KIP-05"]),
        (group(member(1, 5, [1]), target={"m1": [2]}), ["INV-KIP-06"]),
        (group(member(1, 4, [1]), target={"m1": [2]}), []),
        (group(member(1, 5, [], [1])), ["INV-KIP-06", "INV-KIP-07"]),
        (group(member(1, 4, [], [1])), ["INV-KIP-07"]),
        (group(member(1, 4, state=C_UNREVOKED)), ["INV-KIP-07"]),
        (group(member(1, -2, state=C_UNREVOKED)), []),
        (group(member(1, instance="i"), instances=[("i", "m1")]), []),
        (group(member(1, instance="i")), ["INV-KIP-14"]),
        (group(member(1), instances=[("i", "m1")]), ["INV-KIP-14"]),
        (group(member(1, instance="i"), instances=[("i", "m1"), ("i", "m2")]), ["INV-KIP-14"]),
        (
            group(member(1, instance="i"), member(2, instance="i"), instances=[("i", "m1"), ("i", "m2")]),
            ["INV-KIP-14"],
        ),
        (group(member(1, 5, [1, 2], assignment_epochs=[0, 5])), []),
        (group(member(1, 5, [1], assignment_epochs=[6])), ["INV-KIP-16"]),
        (group(member(1, 5, [1], assignment_epochs=[-1])), ["INV-KIP-16"]),
        (group(member(1, -2, [1], assignment_epochs=[1])), ["INV-KIP-16"]),
        (group(member(1, 0, [1], assignment_epochs=[3])), []),
        (group(member(1, regex="t.*"), regexes={"t.*"}), []),
        (group(member(1, regex="t.*"), regexes={"t.*", "u.*"}), ["INV-KIP-18"]),
    ],
)
def test_a_predicate_refuses_exactly_what_breaks_it(view: GroupView, broken: list[str]) -> None:
    assert [promise for promise, _ in broken_promises(view)] == broken


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [
        (group(member(1, 4, [1])), group(member(1, 5, [1])), []),
        (group(epoch=6), group(), ["INV-KIP-04"]),
        (group(assigned=5), group(assigned=4), ["INV-KIP-04"]),
        (group(member(1, 5)), group(member(1, 4)), ["INV-KIP-04"]),
        (group(member(1, 5)), group(member(1, 0)), ["INV-KIP-04"]),
        (group(member(1, 5)), group(member(1, -2)), []),
        (group(member(1, -2)), group(member(1, 0)), []),
        (group(member(1, 5, is_classic=True)), group(member(1, 0)), []),
        (group(member(1, 5, [1])), group(member(2, 5, [1])), ["INV-KIP-09"]),
        (group(member(1, 5, [], [1])), group(member(2, 5, [1])), ["INV-KIP-09"]),
        (group(member(1, 5, [], [1])), group(member(1, 5, [1])), []),
        (group(member(1, 5, [1], instance="i")), group(member(2, 0, [1], instance="i")), []),
        (
            group(member(1, 5, [1], instance="i")),
            group(member(1, 5, instance="i"), member(2, 5, [1], instance="i")),
            ["INV-KIP-09"],
        ),
    ],
)
def test_a_predicate_refuses_exactly_the_steps_that_break_it(
    before: GroupView, after: GroupView, broken: list[str]
) -> None:
    assert [promise for promise, _ in broken_promises(GroupStep(before, after))] == broken


def classic(*members: ClassicMemberView, state: str = STABLE, **more: Any) -> ClassicGroupView:
    """Return a classic group that keeps all promises, unless ``more`` says otherwise."""
    leader = more.pop("leader", members[0].member_id if members else None)
    generation, previous = more.pop("generation", 1), more.pop("previous", PREPARING)
    instances = more.pop("instances", [(each.instance, each.member_id) for each in members if each.instance])
    return ClassicGroupView(state, previous, generation, "p", leader, members, instances=instances, **more)


def one(
    number: int = 1, instance: str | None = None, protocols: Sequence[str] = ("p",), **more: Any
) -> ClassicMemberView:
    return ClassicMemberView(f"m{number}", instance, protocols, **more)


@pytest.mark.parametrize(
    ("view", "broken"),
    [
        (classic(state=EMPTY), []),
        (classic(one(), one(2), pending_sync={"m2"}, pending_join={"m3"}), []),
        (classic(one(), pending_join={"m1"}), ["INV-MEM-01"]),
        (classic(one(1, "i")), []),
        (classic(one(1, "i"), one(2, "i")), ["INV-MEM-02"]),
        (classic(one(1, "i"), instances=[]), ["INV-MEM-02"]),
        (classic(one(), instances=[("i", "m1")]), ["INV-MEM-02"]),
        (classic(one(), state=EMPTY), ["INV-MEM-03"]),
        (classic(), ["INV-MEM-03"]),
        (classic(state=COMPLETING), ["INV-MEM-03"]),
        (classic(state=PREPARING, previous=STABLE), ["INV-MEM-03"]),
        (classic(state=PREPARING, previous=STABLE, pending_join={"m1"}), []),
        (classic(state=PREPARING, previous=EMPTY), []),
        (classic(one(), leader="m2"), ["INV-MEM-04"]),
        (classic(one(), leader=None, state=PREPARING), []),
        (classic(state=EMPTY, leader="m1"), ["INV-MEM-04"]),
        (classic(one(waits_to_join=True), state=PREPARING), []),
        (classic(one(waits_to_join=True)), ["INV-MEM-05"]),
        (classic(one(1, "i", waits_to_join=True)), []),
        (classic(one(1, "i", waits_to_join=True), state=COMPLETING), ["INV-MEM-05"]),
        (classic(one(waits_to_sync=True), state=COMPLETING), []),
        (classic(one(waits_to_sync=True)), ["INV-MEM-06"]),
        (classic(one(), pending_sync={"m2"}), ["INV-MEM-07"]),
        (classic(one(), pending_sync={"m2"}, state=PREPARING), []),
        (classic(one(), one(2, protocols=["q"])), ["INV-PROTO-01"]),
        (classic(one(), one(2, protocols=["q"]), state=PREPARING), []),
    ],
)
def test_a_predicate_about_classic_groups_refuses_exactly_what_breaks_it(
    view: ClassicGroupView, broken: list[str]
) -> None:
    assert [promise for promise, _ in broken_promises(view)] == broken


@pytest.mark.parametrize(
    ("before", "after", "is_broken"),
    [
        (classic(one()), classic(one()), False),
        (classic(one()), classic(one(), state=PREPARING, previous=STABLE), False),
        (classic(one(), state=PREPARING), classic(one(), state=COMPLETING, generation=2), False),
        (classic(one(), state=COMPLETING), classic(one(), state=COMPLETING, generation=2), False),
        (classic(one(), state=PREPARING), classic(one(), state=COMPLETING, generation=3), True),
        (classic(one(), generation=2), classic(one()), True),
        (classic(one(), state=PREPARING), classic(one(), state=COMPLETING), True),
        (classic(one(), state=PREPARING), classic(state=EMPTY), True),
        (classic(one()), classic(one(), generation=2), True),
        (classic(one()), classic(one(), state=COMPLETING, previous=STABLE, generation=2), True),
    ],
)
def test_a_generation_begins_exactly_when_a_join_phase_ends(
    before: ClassicGroupView, after: ClassicGroupView, is_broken: bool
) -> None:
    found = [promise for promise, _ in broken_promises(ClassicGroupStep(before, after))]
    assert found == (["INV-GEN-01"] if is_broken else [])


@pytest.mark.parametrize(
    ("seen", "broken"),
    [
        (JoinAnswerView("m1", {"m1", "m2"}, classic(one(), one(2))), []),
        (JoinAnswerView("m1", set(), classic(one(), one(2))), []),
        (JoinAnswerView("m1", {"m1"}, classic(one(), one(2))), ["INV-JOIN-02"]),
        (JoinAnswerView("m1", {"m1", "m2"}, classic(one())), ["INV-JOIN-02"]),
        (JoinAnswerView("m2", set(), classic(one())), ["INV-JOIN-03"]),
        (JoinAnswerView("m2", set(), None), ["INV-JOIN-03"]),
        (SyncAnswerView(1, classic(one())), []),
        (SyncAnswerView(0, classic(one())), ["INV-SYNC-03"]),
        (SyncAnswerView(1, None), ["INV-SYNC-03"]),
        (HeartbeatView(4, "NONE", 5, True, 5, ((1,), (2,))), []),
        (HeartbeatView(4, "NONE", 4, True, 5), ["INV-KIP-10"]),
        (HeartbeatView(4, "NONE", 5, True, None), ["INV-KIP-10"]),
        (HeartbeatView(-1, "NONE", -1, False, None), []),
        (HeartbeatView(5, "NONE", 5, False, 5, ((1,), (1,))), []),
        (HeartbeatView(5, "NONE", 5, False, 5, ((1,), (1, 2)), changed=True), ["INV-KIP-15"]),
        (HeartbeatView(-2, "NONE", -2, False, -2, ((1, 2), (1,))), []),
        (HeartbeatView(4, "FENCED_MEMBER_EPOCH", 0, False, 5), []),
        (HeartbeatView(4, "FENCED_MEMBER_EPOCH", 0, False, 5, changed=True), ["INV-KIP-17"]),
    ],
)
def test_a_predicate_about_answers_refuses_exactly_what_breaks_it(seen: object, broken: list[str]) -> None:
    assert [promise for promise, _ in broken_promises(seen)] == broken


#: Member m1 was instance i and is j; both map to it.
RELABELLED: Final = group(member(1, 5, [1], instance="j"), instances=[("i", "m1"), ("j", "m1")])


@pytest.mark.parametrize(
    ("promise", "view", "remaining"),
    [
        ("INV-KIP-14", group(member(1), instances=[("i", "m1")]), []),
        ("INV-KIP-14", group(member(1, instance="i"), member(2, instance="i")), ["INV-KIP-14"]),
        ("INV-KIP-18", group(regexes={"t.*"}), []),
        ("INV-KIP-09", GroupStep(RELABELLED, group(member(2, 5, [1], instance="i"))), []),
        ("INV-KIP-09", GroupStep(RELABELLED, group(member(2, 5, [1], instance="k"))), ["INV-KIP-09"]),
        ("INV-MEM-07", classic(one(), pending_sync={"m2"}), []),
        ("INV-PROTO-01", classic(one(protocols=["q"])), []),
        ("INV-GEN-01", ClassicGroupStep(classic(one()), classic(one(), generation=2)), []),
        ("INV-GEN-01", ClassicGroupStep(classic(one()), classic(one(), generation=3)), ["INV-GEN-01"]),
    ],
)
def test_a_fault_of_kafka_leaves_what_remains(promise: str, view: object, remaining: list[str]) -> None:
    assert [each for each, _ in broken_promises(view)] == [promise]
    for fault in PROMISES[promise].faults:
        faulty = replace(INTENDED, name="faulty", **{fault: True})
        assert [each for each, _ in broken_promises(view, faulty)] == remaining


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_lists_what_the_manifest_says(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["promises", "--json"])
    assert ended.value.code == 0
    listing = json.loads(capsys.readouterr().out)
    assert [each["id"] for each in listing["promises"]] == list(PROMISES)
    for each in listing["promises"]:
        broken, checked = each["broken_by"], each["checked"]
        systems = checked["closed_systems"]
        names = {name for form in ("properties", "restated") for stated in systems[form].values() for name in stated}
        assert {ENTRIES[name].breaks for name in broken["configurations"]} == names
        for name in checked["closed_systems"]["configurations"]:
            assert ENTRIES[name].expected == "holds"
            assert names & {*read_problem(ENTRIES[name]).properties}
        for files in checked["partial"].values():
            assert all(each["id"] in (ROOTS[1] / file).read_text(encoding="utf-8") for file in files)
    assert not set(listing["not_in_the_catalogue"]) & PROMISES.keys()


#: Modules that cite promises and check none: the listing, an example for help, planted faults, and named
#: cases, which are listed by their rules.
NO_CHECKS: Final = (
    "judge/promise_checks.py", "run/commands/promises.py", "run/mutants/", "judge/cases/", "judge/client_cases/"
)  # fmt: skip
CITED: Final = re.compile(rf"\b({'|'.join(PROMISES)})\b")


def test_each_own_form_of_the_suite_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["promises", "--json"])
    promises = json.loads(capsys.readouterr().out)["promises"]
    partial = [each["checked"]["partial"] for each in promises]
    listed = {file for kinds in partial for files in kinds.values() for file in files}
    citing = {
        path.relative_to(ROOTS[1]).as_posix()
        for path in ROOTS[1].rglob("*.py")
        if CITED.search(path.read_text(encoding="utf-8"))
    }
    assert {file for file in citing if not file.startswith(NO_CHECKS)} == listed
    assert {kind for kinds in partial for kind in kinds} == {*PARTIAL.values()}


def test_each_own_form_of_a_closed_system_is_listed() -> None:
    """A property that states a promise in its own form says so in its docstring."""
    stated = {
        (promise, family.name, name)
        for family in FAMILIES
        for name, made in family.catalogue.items()
        for promise in CITED.findall(made.__doc__ or "")
    }
    assert stated == {
        (promise.id, family, name)
        for promise in PROMISES.values()
        for family, names in promise.restated.items()
        for name in names
    }


def test_the_command_says_what_nothing_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["promises", "--json"])
    promises = json.loads(capsys.readouterr().out)["promises"]
    unbroken = [each["id"] for each in promises if not any(each["broken_by"].values())]
    with pytest.raises(SystemExit):
        main(["promises"])
    shown = capsys.readouterr().out
    assert shown.count("no configuration and no") == len(unbroken)
    assert 0 < len(unbroken) < len(promises)


def test_an_unknown_promise_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["promises", "INV-KIP-1"])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fencepost promises: no promise 'INV-KIP-1'; did you mean INV-KIP-01")
