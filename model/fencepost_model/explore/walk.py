"""Random behaviours of a system that is too large to explore.

A behaviour begins in an initial state. Each step first chooses an action among those that are enabled, by weight, and
then one of its outcomes. So an action with one outcome is as likely as one with many. Every state and step is checked
as in an exploration. A behaviour that breaks a property is shortened by delta debugging: parts of its actions are left
out as long as the rest, replayed, breaks the same property.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .graph import Step
from .interface import Label, State, System, Value
from .search import Violation

#: Results of actions and properties are kept by what they read, up to so many.
_KEPT: Final = 200_000
#: A replay follows at most so many states at once, where labels do not determine the next one.
_WIDTH: Final = 400


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """``seconds``: the time budget; ``behaviours``: the most behaviours; ``depth``: the most steps of one. ``weights``:
    how likely an action is, by its name; 1 if not given, and 0 excludes it."""

    seconds: float = 10.0
    behaviours: int | None = None
    depth: int = 100
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Walked:
    """The result of a simulation. ``taken``: how often each action was taken, by the first word of its label; a step
    that changes nothing counts in each state that has it.
    ``found``: the length of the counter-example before it was shortened."""

    seed: int
    behaviours: int = 0
    steps: int = 0
    seconds: float = 0.0
    taken: Counter[str] = field(default_factory=Counter)
    violation: Violation | None = None
    found: int = 0
    stopped: str | None = None


class Stepper:
    """A system one state at a time: its steps, and the properties that a state or a step breaks."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._width = len(system.components)
        self._memo: dict[tuple[Any, ...], Any] = {}
        self._properties = system.properties

    def initial(self) -> list[State]:
        return list(self.system.initial())

    def steps(self, state: State) -> Iterator[tuple[Label, State]]:
        """Each label with the state after the step."""
        for number, action in enumerate(self.system.actions):
            seen = self._read(state, action.reads)
            for outcome in self._kept(("outcomes", number, *seen), lambda: tuple(action.outcomes(*seen))):  # noqa: B023
                after = list(state)
                for component, value in outcome.writes:
                    after[component] = value
                for component, token in outcome.updates:
                    after[component] = self.system.update(component, after[component], token)
                    if after[component] is None:
                        break
                else:
                    yield outcome.label, tuple(after)

    def broken_in(self, state: State) -> Iterator[str]:
        """The invariants that the state breaks."""
        for number, each in enumerate(self._properties.invariants):
            seen = self._read(state, each.reads)
            if not self._kept(("invariant", number, *seen), lambda: bool(each.holds(*seen))):  # noqa: B023
                yield each.name

    def broken_by(self, before: State, label: Label, after: State) -> Iterator[str]:
        """The step properties that the step breaks."""
        for number, each in enumerate(self._properties.steps):
            if each.actions and label[0] not in each.actions:
                continue
            if each.changed and self._read(before, each.changed) == self._read(after, each.changed):
                continue
            then, now = self._read(before, each.reads), self._read(after, each.reads)
            key = ("step", number, label, *then, *now)
            if not self._kept(key, lambda: bool(each.holds(label, then, now))):  # noqa: B023
                yield each.name

    def may_end(self, state: State) -> bool:
        """Whether a behaviour may end in this state."""
        if self._properties.may_end is None:
            return True
        reads, allowed = self._properties.may_end
        return bool(allowed(*self._read(state, reads)))

    def _read(self, state: State, reads: Sequence[int]) -> tuple[Value, ...]:
        views = self.system.views
        return tuple(
            state[each] if each < self._width else self._view(views[each - self._width], state, each) for each in reads
        )

    def _view(self, view: Any, state: State, number: int) -> Value:
        value = state[view.component]
        seen: Value = self._kept(("view", number, value), lambda: view.of(value))
        return seen

    def _kept(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        if key not in self._memo:
            if len(self._memo) >= _KEPT:
                self._memo.clear()
            self._memo[key] = make()
        return self._memo[key]


def walk(system: System, seed: int, limits: WalkLimits, watch: Callable[[int, int], None] | None = None) -> Walked:
    """Take random behaviours until a property is broken or a limit is reached. ``watch`` gets (behaviours, steps). The
    behaviours depend on the seed and the limits, apart from their number. A keyboard interrupt ends the simulation and
    returns what was done."""
    began = time.monotonic()
    stepper, chance, result = Stepper(system), random.Random(seed), Walked(seed)
    try:
        while time.monotonic() - began < limits.seconds and result.behaviours != limits.behaviours:
            result.violation = _behaviour(stepper, chance, limits, result)
            result.behaviours += 1
            if result.violation is not None:
                result.found = len(result.violation.trace)
                break
            if watch is not None:
                watch(result.behaviours, result.steps)
    except KeyboardInterrupt:
        result.stopped = "interrupted"
    result.seconds = time.monotonic() - began
    return result


def _behaviour(stepper: Stepper, chance: random.Random, limits: WalkLimits, result: Walked) -> Violation | None:
    state = chance.choice(stepper.initial())
    trace = [Step(None, state)]
    for name in stepper.broken_in(state):
        return Violation(name, "invariant", trace)
    for _ in range(limits.depth):
        options: dict[str, list[tuple[Label, State]]] = {}
        enabled = False
        for label, after in stepper.steps(state):
            enabled = True
            if after != state:
                options.setdefault(label[0], []).append((label, after))
                continue
            result.taken[label[0]] += 1  # such as a commit: checked, but it leads nowhere
            for name in stepper.broken_by(state, label, after):
                return Violation(name, "step", [*trace, Step(label, after)])
        if not options:
            return None if enabled or stepper.may_end(state) else Violation("deadlock", "deadlock", trace)
        names = list(options)
        weights = [limits.weights.get(name, 1.0) for name in names]
        if not any(weights):
            return None
        label, after = chance.choice(options[chance.choices(names, weights)[0]])
        result.taken[label[0]] += 1
        result.steps += 1
        trace.append(Step(label, after))
        for name in stepper.broken_by(state, label, after):
            return Violation(name, "step", trace)
        for name in stepper.broken_in(after):
            return Violation(name, "invariant", trace)
        state = after
    return None


def replay(stepper: Stepper, broken: str, words: Sequence[Label]) -> list[Step] | None:
    """Take steps with these labels, one after the other, from any initial state. Return the trace to the first step
    that breaks the property; None if none does or a step is not enabled. A label of one word stands for every step of
    that action."""
    paths: dict[State, list[Step]] = {state: [Step(None, state)] for state in stepper.initial()}
    for word in words:
        following: dict[State, list[Step]] = {}
        for state, path in paths.items():
            for label, after in stepper.steps(state):
                if label[: len(word)] != word:
                    continue
                trace = [*path, Step(label, after)]
                if broken in stepper.broken_by(state, label, after) or broken in stepper.broken_in(after):
                    return trace
                if len(following) < _WIDTH:
                    following.setdefault(after, trace)
        paths = following
    return None


def shortened(system: System, violation: Violation, seconds: float = 30.0) -> Violation:
    """Return the violation with a shorter trace if delta debugging finds one in the time. No further single action can
    be left out, unless the time was over first."""
    if violation.kind not in ("invariant", "step"):
        return violation
    stepper, ends = Stepper(system), time.monotonic() + seconds
    words = [step.label for step in violation.trace if step.label is not None]
    trace = violation.trace
    parts = 2
    while len(words) > 1 and time.monotonic() < ends:
        for rest in _without_a_part(words, parts):
            if time.monotonic() >= ends:
                break
            found = replay(stepper, violation.property, rest)
            if found is not None:
                trace, words = found, [step.label for step in found if step.label is not None]
                parts = max(parts - 1, 2)
                break
        else:
            if parts >= len(words):
                break
            parts = min(2 * parts, len(words))
    return Violation(violation.property, violation.kind, trace)


def _without_a_part(words: Sequence[Label], parts: int) -> Iterable[list[Label]]:
    """The sequence without each of so many parts of about the same length, from the first part on."""
    size = -(-len(words) // parts)
    for first in range(0, len(words), size):
        yield [*words[:first], *words[first + size :]]
