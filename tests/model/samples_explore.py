"""Small systems with known state graphs, for the tests of the explorer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from fencepost_model.explore.interface import (
    Action,
    Fairness,
    Invariant,
    Label,
    LeadsTo,
    Outcome,
    Permutation,
    Properties,
    State,
    Value,
    View,
    Witness,
)


@dataclass(frozen=True)
class Counters:
    """A plain system: a counter goes from 0 to ``top`` in steps of one; if it ``may_reset``, it may jump to 0."""

    top: int
    may_reset: bool = False
    given: Properties = field(default_factory=Properties)

    def initial(self) -> Iterable[int]:
        return [0]

    def actions(self, state: int) -> Iterable[Label]:
        if state < self.top:
            yield ("Up",)
        if self.may_reset and state:
            yield ("Reset",)

    def step(self, state: int, action: Label) -> int:
        return state + 1 if action == ("Up",) else 0

    def properties(self) -> Properties:
        return self.given


@dataclass(frozen=True)
class TwoPhase:
    """Two-phase commit (Gray & Lamport): components are the manager with its messages, then each resource manager.

    TLC and Stateright count 288 states for three resource managers, 8,832 for five.
    """

    members: int
    views: Sequence[View] = ()
    careless: bool = False  #: commit without waiting for all

    @property
    def components(self) -> Sequence[str]:
        return ("manager", *(f"rm{number}" for number in range(self.members)))

    def initial(self) -> Iterable[State]:
        return [(("init", frozenset[int](), frozenset[Any]()), *["working"] * self.members)]

    @property
    def actions(self) -> Sequence[Action]:
        def manager(value: Any) -> Iterable[Outcome]:
            state, prepared, messages = value
            if state != "init":
                return
            for number in range(self.members):
                if number in messages:
                    yield Outcome(("RcvPrepared", str(number)), ((0, (state, prepared | {number}, messages)),))
            if self.careless or len(prepared) == self.members:
                yield Outcome(("Commit",), ((0, ("committed", prepared, messages | {"commit"})),))
            yield Outcome(("Abort",), ((0, ("aborted", prepared, messages | {"abort"})),))

        def resource(number: int) -> Callable[..., Iterable[Outcome]]:
            def outcomes(value: Any, own: str) -> Iterable[Outcome]:
                _, _, messages = value
                if own == "working":
                    yield Outcome(("Prepare", str(number)), ((number + 1, "prepared"),), ((0, number),))
                    yield Outcome(("ChooseAbort", str(number)), ((number + 1, "aborted"),))
                if "commit" in messages:
                    yield Outcome(("RcvCommit", str(number)), ((number + 1, "committed"),))
                if "abort" in messages:
                    yield Outcome(("RcvAbort", str(number)), ((number + 1, "aborted"),))

            return outcomes

        each = [Action(f"rm{number}", (0, number + 1), resource(number)) for number in range(self.members)]
        return (Action("manager", (0,), manager), *each)

    def update(self, component: int, value: Any, token: Any) -> Value | None:
        state, prepared, messages = value
        return (state, prepared, messages | {token})

    @property
    def properties(self) -> Properties:
        everyone = tuple(range(1, self.members + 1))
        return Properties(
            invariants=(
                Invariant(
                    "nobody_aborts_what_another_commits", everyone, lambda *own: not {"aborted", "committed"} <= {*own}
                ),
            ),
            witnesses=(Witness("all_commit", everyone, lambda *own: {*own} == {"committed"}),),
            leads_to=(
                LeadsTo("everybody_ends", everyone, lambda *own: True, lambda *own: {*own} <= {"committed", "aborted"}),
            ),
            fairness=(Fairness("progress", lambda label: label[0] != "ChooseAbort"),),
        )

    @property
    def symmetry(self) -> Sequence[Permutation]:
        def permutation(order: tuple[int, ...]) -> Permutation:
            where = {old: new for new, old in enumerate(order)}

            def rename(component: int, value: Any) -> Value:
                if component:
                    return str(value)
                state, prepared, messages = value
                return state, frozenset(where[each] for each in prepared), frozenset(where.get(e, e) for e in messages)

            return Permutation((0, *(old + 1 for old in order)), rename)

        return [permutation(order) for order in permutations(range(self.members)) if order != tuple(sorted(order))]
