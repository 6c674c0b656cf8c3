"""What the explorer asks of a model.

A *plain* model has four functions: initial states, enabled actions, step, properties. Its states are any hashable
values. ``plain.as_system`` makes a system of it.

A *system* says more about itself, which is what makes it fast. Its state is a tuple of **components** (a group, each
member, what is under way to it, the log, …). An action names the components it *reads*; its outcomes name those they
*write*, and those they *update* by a small token ("this reply is now under way to m2") without having read them. An
action's effect is therefore a function of a few component values, worked out once for each combination by the model
itself and then looked up for millions of states.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Value: TypeAlias = Hashable
State: TypeAlias = tuple[Value, ...]
#: Name of the action, then its parameters.
Label: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way in which an action may go.

    ``writes``: (component, new value). ``updates``: (component, token), turned into the new value by
    ``System.update``. A component stands in at most one of the two. ``note`` is anything hashable that whoever
    follows the transition later wants to know of it; it is no part of the label.
    """

    label: Label
    writes: tuple[tuple[int, Value], ...] = ()
    updates: tuple[tuple[int, Value], ...] = ()
    note: Value = None


@dataclass(frozen=True, slots=True)
class View:
    """What some action wants to know of a component, which is less than its value.

    Actions read views like components: view number j has the number ``len(components) + j``.
    """

    component: int
    of: Callable[[Any], Value]


@dataclass(frozen=True, slots=True)
class Action:
    """``outcomes`` gets the values of the components and views in ``reads``, in order; no outcome: not enabled."""

    name: str
    reads: tuple[int, ...]
    outcomes: Callable[..., Iterable[Outcome]]


@dataclass(frozen=True, slots=True)
class Invariant:
    """Holds in every reachable state. ``holds`` gets the values of ``reads``. Named as a short sentence."""

    name: str
    reads: tuple[int, ...]
    holds: Callable[..., bool]


@dataclass(frozen=True, slots=True)
class StepInvariant:
    """Holds for every transition: ``holds(label, before, after)``, both tuples of the values of ``reads``.

    ``actions`` limits it to labels that begin with one of these words; empty: every transition. ``changed`` limits it
    to transitions that change one of these components or views: for a property that says nothing of the others, and
    so holds of them. Empty: every transition.
    """

    name: str
    reads: tuple[int, ...]
    holds: Callable[[Label, tuple[Any, ...], tuple[Any, ...]], bool]
    actions: frozenset[str] = frozenset()
    changed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LeadsTo:
    """Whenever ``premise`` holds, ``goal`` holds then or later (``P ~> Q``), under the system's fairness.

    With a premise that always holds it says that the goal holds again and again (``[]<> Q``).
    """

    name: str
    reads: tuple[int, ...]
    premise: Callable[..., bool]
    goal: Callable[..., bool]


@dataclass(frozen=True, slots=True)
class Settles:
    """From some point on ``goal`` holds for ever (``<>[] P``), under the system's fairness."""

    name: str
    reads: tuple[int, ...]
    goal: Callable[..., bool]


@dataclass(frozen=True, slots=True)
class Witness:
    """Some reachable state is like this: guards against a model in which nothing happens."""

    name: str
    reads: tuple[int, ...]
    holds: Callable[..., bool]


@dataclass(frozen=True, slots=True)
class Fairness:
    """The steps with these labels are not put off for ever.

    Weak: if they stay enabled, one is taken. Strong: if they are enabled again and again, one is taken. Only steps
    that change the state count, as in TLA+.
    """

    name: str
    covers: Callable[[Label], bool]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Properties:
    """What to check. ``reads`` are components and views; several entries may share a name and are one property then."""

    invariants: tuple[Invariant, ...] = ()
    steps: tuple[StepInvariant, ...] = ()
    leads_to: tuple[LeadsTo, ...] = ()
    settles: tuple[Settles, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    fairness: tuple[Fairness, ...] = ()
    #: None: any state may be the last one. Otherwise the components read, and whether such a state may be the last.
    may_end: tuple[tuple[int, ...], Callable[..., bool]] | None = None


@dataclass(frozen=True, slots=True)
class Permutation:
    """One renaming under which the system is symmetric.

    ``source[i]`` is the component whose renamed value becomes component i; ``rename(i, value)`` renames a value that
    comes from component i.
    """

    source: tuple[int, ...]
    rename: Callable[[int, Value], Value]


class System(Protocol):
    """A model made of components."""

    @property
    def components(self) -> Sequence[str]: ...

    def initial(self) -> Iterable[State]: ...

    @property
    def views(self) -> Sequence[View]: ...

    @property
    def actions(self) -> Sequence[Action]: ...

    def update(self, component: int, value: Any, token: Any) -> Value | None:
        """The component's value after the update, None where it is impossible (then the whole outcome is)."""

    @property
    def properties(self) -> Properties: ...

    @property
    def symmetry(self) -> Sequence[Permutation]:
        """All renamings but the identity; empty: no symmetry."""


class Model(Protocol):
    """The plain interface: four functions."""

    def initial(self) -> Iterable[Value]: ...

    def actions(self, state: Any) -> Iterable[Label]: ...

    def step(self, state: Any, action: Label) -> Value: ...

    def properties(self) -> Properties:
        """``reads`` of each property is ``(0,)``: the whole state."""


@dataclass(frozen=True, slots=True)
class PlainSystem:
    """A plain model as a system of one component."""

    model: Model
    components: Sequence[str] = ("state",)
    views: Sequence[View] = ()
    symmetry: Sequence[Permutation] = field(default=())

    def initial(self) -> Iterable[State]:
        return ((state,) for state in self.model.initial())

    @property
    def actions(self) -> Sequence[Action]:
        def outcomes(state: Value) -> Iterable[Outcome]:
            return (Outcome(label, ((0, self.model.step(state, label)),)) for label in self.model.actions(state))

        return (Action("step", (0,), outcomes),)

    def update(self, component: int, value: Value, token: Value) -> Value | None:
        raise ValueError(f"a plain model has no updates (component {component}, {token!r} to {value!r})")

    @property
    def properties(self) -> Properties:
        return self.model.properties()


def visible(system: System, state: State) -> tuple[Any, ...]:
    """What actions and properties can read: the components, then the views."""
    return (*state, *(view.of(state[view.component]) for view in system.views))


def successors(system: System, state: State) -> Iterator[tuple[Outcome, State]]:
    """The outcomes and successors of one state, straight from the model: what the tables are held equal to."""
    seen = visible(system, state)
    for action in system.actions:
        for outcome in action.outcomes(*(seen[component] for component in action.reads)):
            after = list(state)
            for component, value in outcome.writes:
                after[component] = value
            for component, token in outcome.updates:
                updated = system.update(component, after[component], token)
                if updated is None:
                    break
                after[component] = updated
            else:
                yield outcome, tuple(after)
