"""Fair cycles: which systems are live, which are not, and the lasso that shows it."""

from __future__ import annotations

import pytest
from samples_explore import Counters, TwoPhase

from fencepost_model.explore.interface import Fairness, LeadsTo, PlainSystem, Properties, Settles, successors
from fencepost_model.explore.liveness import check_liveness
from fencepost_model.explore.search import Violation, explore

TOP = LeadsTo("reaches_the_top", (0,), lambda n: True, lambda n: n == 3)
STAYS = Settles("stays_at_the_top", (0,), lambda n: n == 3)
WEAK = Fairness("up", lambda label: label == ("Up",))
STRONG = Fairness("up", lambda label: label == ("Up",), strong=True)


def verdicts(system: PlainSystem | TwoPhase) -> dict[str, Violation]:
    return {each.property: each for each in check_liveness(explore(system, transitions=True))}


def counters(may_reset: bool, *fairness: Fairness) -> PlainSystem:
    return PlainSystem(Counters(3, may_reset, Properties(leads_to=(TOP,), settles=(STAYS,), fairness=fairness)))


def test_without_fairness_nothing_need_happen() -> None:
    found = verdicts(counters(False))
    assert {*found} == {"reaches_the_top", "stays_at_the_top"}
    assert found["reaches_the_top"].loop == len(found["reaches_the_top"].trace) - 1


def test_weak_fairness_drives_a_counter_up() -> None:
    assert verdicts(counters(False, WEAK)) == {}


@pytest.mark.parametrize("fairness", [WEAK, STRONG])
def test_a_reset_again_and_again_is_fair(fairness: Fairness) -> None:
    found = verdicts(counters(True, fairness))
    lasso = found["reaches_the_top"]
    assert [step.label for step in lasso.trace] == [None, ("Up",), ("Reset",)]
    assert lasso.loop == 0


class Door:
    """A door opens and shuts by itself; while it is open, one may walk through."""

    def __init__(self, fairness: Fairness) -> None:
        self.fairness = fairness

    def initial(self) -> list[str]:
        return ["shut"]

    def actions(self, state: str) -> list[tuple[str]]:
        return {"shut": [("Open",)], "open": [("Shut",), ("Go",)], "through": []}[state]

    def step(self, state: str, action: tuple[str]) -> str:
        return {"Open": "open", "Shut": "shut", "Go": "through"}[action[0]]

    def properties(self) -> Properties:
        through = LeadsTo("goes_through", (0,), lambda s: s == "open", lambda s: s == "through")
        swings = Fairness("swings", lambda label: label[0] in ("Open", "Shut"))
        return Properties(leads_to=(through,), fairness=(self.fairness, swings))


def test_only_strong_fairness_takes_an_action_that_is_enabled_now_and_then() -> None:
    go = {strong: Fairness("go", lambda label: label == ("Go",), strong) for strong in (False, True)}
    assert "goes_through" in verdicts(PlainSystem(Door(go[False])))
    assert verdicts(PlainSystem(Door(go[True]))) == {}


def test_two_phase_commit_ends_under_fairness_and_only_then() -> None:
    assert verdicts(TwoPhase(3)) == {}

    class Unfair(TwoPhase):
        @property
        def properties(self) -> Properties:
            return Properties(leads_to=super().properties.leads_to)

    assert {*verdicts(Unfair(3))} == {"everybody_ends"}


def test_a_lasso_is_a_run_of_the_model_and_closes() -> None:
    system = counters(True, WEAK)
    for violation in verdicts(system).values():
        for before, after in zip(violation.trace, violation.trace[1:], strict=False):
            assert (after.label, after.state) in {(o.label, s) for o, s in successors(system, before.state)}
        assert violation.trace[-1].state == violation.trace[violation.loop].state


def test_an_incomplete_exploration_is_refused() -> None:
    with pytest.raises(ValueError, match="complete exploration"):
        check_liveness(explore(counters(False)))
