"""The interface between explorer and model.

A *plain* model has four functions: initial states, enabled actions, step, properties. Its states are any hashable
values. ``PlainSystem`` makes a system of it.

A *system* declares more about itself, which makes it fast. Its state is a tuple of **components** (a group, each
member, the messages to it, the log, …). An action names the components that it *reads*. Its outcomes name those that
they *write*, and those that they *update* by a small token ("this reply is now on its way to m2") without reading them.
So an action's effect is a function of a few component values. The model computes it once for each combination; then it
is looked up for millions of states.
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
    """One possible outcome of an action.

    ``writes``: (component, new value). ``updates``: (component, token), turned into the new value by ``System.update``.
    A component is in at most one of the two. ``note`` is any hashable value for code that later follows the transition;
    it is not part of the label.
    """

    label: Label
    writes: tuple[tuple[int, Value], ...] = ()
    updates: tuple[tuple[int, Value], ...] = ()
    note: Value = None


@dataclass(frozen=True, slots=True)
class View:
    """The part of a component's value that some action needs.

    Actions read views like components: view number j has the number ``len(components) + j``.
    """

    component: int
    of: Callable[[Any], Value]


@dataclass(frozen=True, slots=True)
class Action:
    """An action. ``outcomes`` gets the values of the components and views in ``reads``, in order. Without an outcome it
    is not enabled."""

    name: str
    reads: tuple[int, ...]
    outcomes: Callable[..., Iterable[Outcome]]


@dataclass(frozen=True, slots=True)
class Invariant:
    """A property of every reachable state. ``holds`` gets the values of ``reads``. The name is a short sentence."""

    name: str
    reads: tuple[int, ...]
    holds: Callable[..., bool]


@dataclass(frozen=True, slots=True)
class StepInvariant:
    """A property of every transition: ``holds(label, before, after)``, both tuples of the values of ``reads``.

    ``actions`` limits it to labels that begin with one of these words; empty: every transition. ``changed`` limits it
    to transitions that change one of these components or views, for a property that all other transitions satisfy.
    Empty: every transition.
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
    """From some point on, ``goal`` holds for ever (``<>[] P``), under the system's fairness."""

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
    """The steps with these labels are not postponed for ever.

    Weak: if they stay enabled, one is taken. Strong: if they are enabled again and again, one is taken. Only steps that
    change the state count, as in TLA+.
    """

    name: str
    covers: Callable[[Label], bool]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties to check. ``reads`` are components and views. Several entries with the same name are one
    property."""

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
        """Return the component's value after the update, or None if the update, and so the whole outcome, is
        impossible."""

    @property
    def properties(self) -> Properties: ...

    @property
    def symmetry(self) -> Sequence[Permutation]:
        """All renamings except the identity; empty: no symmetry."""


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
    """Return everything that actions and properties can read: the components, then the views."""
    return (*state, *(view.of(state[view.component]) for view in system.views))


def successors(system: System, state: State) -> Iterator[tuple[Outcome, State]]:
    """Yield the outcomes and successors of one state, straight from the model. Tests compare the tables with these."""
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
