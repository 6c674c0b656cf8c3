"""A rule decides if the core's outcome differs without it; a rule that a function merely cites does not decide."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import fencepost
from fencepost.coordinator.classic.join import _join_new
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Event
from fencepost.protocol.profiles import KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.coverage.catalogue import CANNOT_OCCUR
from fencepost_conformance.judge.rulebook.standing import OBSERVED, evidence_folder
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.targets.core import Core
from fencepost_conformance.traces.observation import Observation
from tools.evidence import core as core_evidence
from tools.evidence.core import Observed, observe
from tools.evidence.deletion import Agreed, Deletion, altered, deciding, deletions, of_mutants
from tools.evidence.places import Citations
from tools.evidence.running import Ran, levels

ROOT = Path(__file__).parents[3]
CLASSIC = Path(fencepost.__file__).parent / "coordinator" / "classic"
#: Rules that are planted in the core, with the text of the line that cites each.
PLANTED = {
    "P-DECIDES-01": "with_element(group.pending_join, member_id)  # C-JOIN-34",
    "P-NEVER-01": "raise InternalError  # C-JOIN-38c",  # in a function that runs; the line does not run
    "P-CITED-01": "Check capacity, then protocols, then identity",  # the docstring of a function with branches
    "C-JOIN-56": "Whether the group has room",  # likewise; and it cannot occur
}


def same(many: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
    """A coordinator that behaves like the core."""
    return [Core().run(settings, KAFKA_4_4, events) for settings, events in many]


def planted(*rules: str) -> Citations:
    def cited(text: str) -> Iterator[tuple[str, int]]:
        for number, line in enumerate(text.splitlines(), 1):
            yield from ((rule, number) for rule in rules if PLANTED[rule] in line)

    return cited


def compared(monkeypatch: pytest.MonkeyPatch, *rules: str) -> tuple[Counter[str], Counter[str]]:
    """Return the counts of planted rules that decided, and of those that ran."""
    monkeypatch.setattr(core_evidence, "citations", lambda: planted(*rules))
    observed = Observed(deletions([CLASSIC], planted(*rules)))
    observe(range(2), same, KAFKA_4_4, observed, lambda _: None)
    return deciding(observed.changes, observed.agreed, most=5, enough=1), observed.ran


def test_a_planted_rule_that_never_decides_only_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    decided, ran = compared(monkeypatch, *PLANTED)
    assert set(decided) == {"P-DECIDES-01"}
    assert set(ran) == set(PLANTED)
    found = levels(decided, ran)
    assert set(found["rules"]) == {"P-DECIDES-01"}
    assert set(found["ran"]) == {"P-DECIDES-01", "P-NEVER-01", "P-CITED-01"}  # an impossible rule counts nowhere


def test_a_rule_that_cannot_occur_and_decides_is_a_contradiction() -> None:
    with pytest.raises(CannotRun, match=r"C-JOIN-56 decided in steps that agreed, but .* it cannot occur"):
        levels(Counter({"C-JOIN-56": 1}), Counter())


def test_no_evidence_counts_a_rule_that_cannot_occur() -> None:
    for _, file, part, _ in OBSERVED:
        counts = json.loads((evidence_folder(ROOT) / file).read_text(encoding="utf-8"))[part]
        assert counts
        assert not CANNOT_OCCUR.keys() & counts.keys(), file


def test_the_core_is_whole_again_afterwards() -> None:
    before = _join_new.__code__
    for each in deletions([CLASSIC], planted("P-DECIDES-01")):
        with each.plant():
            assert _join_new.__code__ is not before
        assert _join_new.__code__ is before


def test_a_mutant_of_one_rule_counts_for_the_rule() -> None:
    mutants = [each for each in MUTANTS.values() if each.side in core_evidence.SIDES]
    found = of_mutants(mutants)
    assert {each.rule for each in found} == {each.rules[0] for each in mutants if len(each.rules) == 1}
    assert all(each.functions for each in found)


# --- which runs count ---

HERE, ELSEWHERE = ("file.py", 1), ("file.py", 9)


@contextmanager
def nothing() -> Iterator[None]:
    yield


def deletion(rule: str = "K-HB-01", *, line: int | None = None) -> Deletion:
    lines = frozenset() if line is None else frozenset([("file.py", line)])
    return Deletion(rule, frozenset([HERE]), lines, nothing)


def run(differs: bool, *, function: tuple[str, int] = HERE, unshown: tuple[str, ...] = ()) -> Agreed:
    return Agreed(Ran({function}, {("file.py", 2)}), lambda: differs, unshown)


def broken() -> bool:
    raise KeyError("left")


def endless() -> bool:
    while True:
        pass


@pytest.mark.parametrize(
    ("change", "runs", "count"),
    [
        (deletion(), [run(True)], 1),
        (deletion(), [run(False), run(True), run(True)], 2),
        (deletion(), [run(False)], 0),
        (deletion(), [run(True, function=ELSEWHERE)], 0),
        (deletion(line=2), [run(True)], 1),
        (deletion(line=3), [run(True)], 0),
        (deletion(), [run(True, unshown=("K-HB-",))], 0),
        (deletion(), [run(True, unshown=("N-",))], 1),
        (deletion(), [Agreed(Ran({HERE}), broken), run(True)], 1),
        (deletion(), [run(False)] * 3 + [run(True)], 0),  # only ``most`` are tried
        (deletion(), [run(True)] * 3, 2),  # ``enough`` is found
    ],
)
def test_a_run_counts_if_it_reaches_the_place_and_comes_out_differently(
    change: Deletion, runs: list[Agreed], count: int
) -> None:
    assert deciding([change], runs, most=3, enough=2) == (Counter({"K-HB-01": count}) if count else Counter())


def test_a_run_that_does_not_end_without_the_statement_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.evidence.deletion._MOST_SECONDS", 0.05)
    assert not deciding([deletion()], [Agreed(Ran({HERE}), endless), run(True)], most=3, enough=1)


@pytest.mark.parametrize(
    ("value", "other"),
    [(True, False), (3, 4), ("a", "a?"), ((1, 2), ()), ({1: 2}, {}), (frozenset("a"), frozenset())],
)
def test_another_value_is_of_the_same_kind(value: object, other: object) -> None:
    assert altered(value) == other
    assert altered(ErrorCode.NONE) is not ErrorCode.NONE


@pytest.mark.parametrize("value", [None, (), Agreed(Ran(), broken), object()])
def test_values_without_an_alternative(value: object) -> None:
    with pytest.raises(Exception, match=type(value).__name__):
        altered(value)
