"""TLC itself on a small module: verdicts, traces, counts, dumps."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost_model.explore.interface import Label, PlainSystem, Properties
from fencepost_model.explore.search import explore
from fencepost_model.tlc.compare import compare
from fencepost_model.tlc.dump import LabelledGraph, read_dump
from fencepost_model.tlc.run import UNNAMED, TlcBroke, TlcMissing, TlcSlow, find_jar, find_java, run_tlc

MODULE = """---- MODULE Cups ----
EXTENDS Integers
VARIABLES full, hand
Init == full = {} /\\ hand = 0
Take(c) == hand = 0 /\\ c \\notin full /\\ hand' = c /\\ UNCHANGED full
Fill == hand # 0 /\\ full' = full \\cup {hand} /\\ hand' = 0
Next == Fill \\/ \\E c \\in 1..3 : Take(c)
Spec == Init /\\ [][Next]_<<full, hand>>
FairSpec == Spec /\\ WF_<<full, hand>>(Fill)
NeverTwo == \\A c, d \\in full : c = d
Grows == [][full \\subseteq full']_<<full, hand>>
Shrinks == [][full' \\subseteq full]_<<full, hand>>
AllFull == <>(full = 1..3)
====
"""


@pytest.fixture
def cups(tmp_path: Path, tlc: None) -> Path:
    (tmp_path / "Cups.tla").write_text(MODULE)
    return tmp_path / "Cups.tla"


def cfg(module: Path, text: str) -> Path:
    path = module.with_name("Case.cfg")
    path.write_text(text)
    return path


class Cups:
    def initial(self) -> list[tuple[frozenset[int], int]]:
        return [(frozenset(), 0)]

    def actions(self, state: tuple[frozenset[int], int]) -> list[Label]:
        full, hand = state
        return [("Fill",)] if hand else [("Take", str(cup)) for cup in (1, 2, 3) if cup not in full]

    def step(self, state: tuple[frozenset[int], int], action: Label) -> tuple[frozenset[int], int]:
        full, hand = state
        return (full | {hand}, 0) if action[0] == "Fill" else (full, int(action[1]))

    def properties(self) -> Properties:
        return Properties()


@pytest.mark.tlc
def test_the_explorer_has_tlcs_graph(cups: Path) -> None:
    dump = cups.with_name("graph.dot")
    run = run_tlc(cups, cfg(cups, "SPECIFICATION Spec\nPROPERTY Grows\n"), workers=2, dump=dump, coverage=True)
    assert (run.violated, run.distinct, run.depth) == (None, 20, 7)
    assert run.coverage["Fill"] == 12
    left = read_dump(dump, ("full", "hand"))
    found = explore(PlainSystem(Cups()), transitions=True)
    states = [
        (left.numbers.number(0, full), left.numbers.number(1, hand))
        for ((full, hand),) in map(found.graph.state, range(found.states))
    ]
    edges = {(source, label[0], target) for source, label, _, target in found.graph.transitions()}
    comparison = compare(left, LabelledGraph(left.numbers, states, {0}, edges))
    assert comparison.equal
    assert (comparison.states, comparison.transitions) == (20, 24)


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("text", "violated", "kind", "steps"),
    [
        ("SPECIFICATION Spec\nINVARIANT NeverTwo\n", "NeverTwo", "invariant", 5),
        ("SPECIFICATION Spec\nPROPERTY Shrinks\n", "Shrinks", "step", 3),
        ("SPECIFICATION FairSpec\nPROPERTY AllFull\n", UNNAMED, "liveness", 1),
    ],
)
def test_violations_come_with_their_trace(cups: Path, text: str, violated: str, kind: str, steps: int) -> None:
    run = run_tlc(cups, cfg(cups, text))
    assert (run.violated, run.kind) == (violated, kind)
    assert len(run.trace) >= steps
    assert run.trace[0].action is None
    assert run.trace[0].state == {"full": frozenset(), "hand": 0}


@pytest.mark.tlc
def test_a_deadlock_is_found_when_asked_for(cups: Path) -> None:
    run = run_tlc(cups, cfg(cups, "SPECIFICATION Spec\n"), deadlock=True)
    assert (run.violated, len(run.trace)) == ("deadlock", 7)


@pytest.mark.tlc
def test_a_wrong_configuration_is_reported_in_tlcs_words(cups: Path) -> None:
    with pytest.raises(TlcBroke, match="Nothing"):
        run_tlc(cups, cfg(cups, "SPECIFICATION Spec\nINVARIANT Nothing\n"))


def test_a_missing_jar_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TLA2TOOLS", str(tmp_path / "none.jar"))
    with pytest.raises(TlcMissing, match="TLA2TOOLS names"):
        find_jar()
    monkeypatch.delenv("TLA2TOOLS")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TlcMissing, match="pip install"):
        find_jar()


def test_a_missing_java_names_the_runtime_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(TlcMissing, match="Java runtime"):
        find_java()


@pytest.mark.tlc
def test_a_run_that_takes_too_long_is_stopped(cups: Path) -> None:
    with pytest.raises(TlcSlow, match=r"no verdict after 0\.05 s"):
        run_tlc(cups, cfg(cups, "SPECIFICATION Spec\n"), short=True, seconds=0.05)
