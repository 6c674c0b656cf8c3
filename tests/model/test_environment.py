"""The environment of the closed systems: budgets for each kind of fault, and what may happen to messages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_model.explore.search import explore
from fencepost_model.system import config as classic
from fencepost_model.system.cfg import BadConfiguration
from fencepost_model.system.consumer import config as consumer
from fencepost_model.system.consumer.closed import COUNTERS, ConsumerSystem
from fencepost_model.system.environment import ANY, KINDS, Counters, Environment, Left
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.system.mixed import config as mixed
from fencepost_model.system.offsets import config as offsets
from fencepost_model.system.user_model import read_model, user_entry

SPEC: Final = Path(__file__).parents[2] / "spec"
ENTRIES: Final = {entry.name: entry for entry in read_manifest(SPEC)}
LOST: Final = {"RequestLost", "ReplyLost"}
SLOW: Final = "SessionTimerFiresEarly"


def kinds_of_specification() -> dict[str, set[str]]:
    """Return the cases of ``KindOf``: kind, and its actions."""
    body = (SPEC / "Environment.tla").read_text().split("KindOf(name) ==")[1].split("[] OTHER")[0]
    cases = re.findall(r"name (?:= |\\in )(\{[^}]*\}|\"\w+\") -> \"(\w+)\"", body)
    return {kind: set(re.findall(r'"(\w+)"', actions)) for actions, kind in cases}


def test_the_kinds_are_those_of_the_specification() -> None:
    found = kinds_of_specification()
    ordinary = found.pop("ordinary")
    assert found == {kind: {*actions} for kind, actions in KINDS.items()}
    every = {*classic.ENVIRONMENT, *consumer.ENVIRONMENT, *mixed.ENVIRONMENT, *offsets.ENVIRONMENT}
    assert every == ordinary.union(*found.values())


def faults_in(system: ConsumerSystem) -> dict[tuple[Left, Left], set[str]]:
    """Return the steps that use budgets: what was left before and after, and the actions."""
    graph = explore(system, transitions=True).graph
    found: dict[tuple[Left, Left], set[str]] = {}
    for source, label, _, target in graph.transitions():
        before, after = (graph.state(each)[COUNTERS].faults_left for each in (source, target))
        if before != after:
            found.setdefault((before, after), set()).add(label[0])
    return found


def test_a_separate_budget_is_not_taken_from_another() -> None:
    """One client is slow and one message is lost in the same run, in either order; nothing happens twice."""
    small = read_problem(ENTRIES["ConsumerSlowAndLossy"]).config
    assert isinstance(small, consumer.ConsumerConfig)
    system = ConsumerSystem(replace(small, member_ids=("m1",), clients=("c1",)))
    assert system.environment.names == (ANY, "delays", "losses")
    assert faults_in(system) == {
        ((0, 1, 1), (0, 0, 1)): {SLOW},
        ((0, 1, 1), (0, 1, 0)): LOST,
        ((0, 0, 1), (0, 0, 0)): LOST,
        ((0, 1, 0), (0, 0, 0)): {SLOW},
    }


def test_kinds_without_a_budget_share_one() -> None:
    environment = Environment(consumer.ConsumerConfig(faults=2, budgets=(("losses", 1),)), 2)
    assert environment.full == (2, 1)
    assert environment.after((2, 1), "ClientCrashes") == environment.after((2, 1), "TopicGrows") == (1, 1)
    assert environment.after((1, 1), "ReplyLost") == (1, 0)
    assert environment.after((1, 0), "RequestLost") is None
    assert environment.after((0, 1), "ClientCrashes") is None
    assert environment.count(Counters(0, (0, 1)), "ClientLeaves") is None
    assert environment.by_name((1, 0)) == {ANY: 1, "losses": 0}
    assert not environment.has_types((3, 1))
    assert not environment.has_types((1,))


@pytest.mark.parametrize(
    ("budgets", "why"),
    [((("loss", 1),), "not a kind of fault: loss; there are losses, copies"), ((("losses", -1),), "less than 0")],
)
def test_a_budget_that_cannot_be_is_rejected(budgets: tuple[tuple[str, int], ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        classic.Config(budgets=budgets)


def test_a_user_may_set_budgets(tmp_path: Path) -> None:
    (tmp_path / "own.cfg").write_text("\\* Family: classic\nCONSTANTS Budgets <- OneDelayAndOneLoss\n")
    (tmp_path / "own.py").write_text('based_on = "EagerQuiet"\nbudgets = {"losses": 1, "delays": 1}\n')
    (tmp_path / "wrong.py").write_text('based_on = "EagerQuiet"\nbudgets = {"loss": 1}\n')
    for name in ("own.cfg", "own.py"):
        config: Any = read_model(user_entry(tmp_path / name, SPEC)).problem.config
        assert config.budgets == (("delays", 1), ("losses", 1))
    with pytest.raises(BadConfiguration, match="not a kind of fault: loss"):
        read_model(user_entry(tmp_path / "wrong.py", SPEC))
