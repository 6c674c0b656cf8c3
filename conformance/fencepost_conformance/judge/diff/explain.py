"""Explanations of a difference: the rules that decide at its step, and the profile switches that cause it.

The model follows each side under the profile of its release. Rules that explain the step of one side only point at the
cause; a step that the model does not allow departs from the rule book's description of that release. If the two
releases have their own profiles, the core runs with each switch in which those differ. A switch that alone makes the
same difference in the same trace explains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost.functions import KafkaFunctions
from fencepost.protocol import events as ev
from fencepost.protocol.profile import SWITCH_NAMES, SWITCHES, Profile
from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.settings import Settings
from fencepost_model.trace import Follower

from ...generate.generator import Generated
from ...traces.observation import Observation
from .job import Job
from .pair import Cause, Pair
from .side import CoreLive

_FUNCTIONS = KafkaFunctions()
_CITES = {each.name: ", ".join(each.rules) for each in SWITCHES}


@dataclass(frozen=True, slots=True)
class Followed:
    """The model's account of one side. ``rules``: of each step that the model could follow. ``refused``: why it does
    not allow the last step, that of the difference. None if it does, or if it could not follow that far: shrinking may
    leave records out of a log, so that no coordinator would write it."""

    rules: tuple[tuple[str, ...], ...]
    refused: str | None

    def whole(self, steps: Sequence[object]) -> bool:
        """Whether all of the given steps are allowed."""
        return self.refused is None and len(self.rules) == len(steps)

    def at(self, index: int) -> tuple[str, ...]:
        return self.rules[index] if index < len(self.rules) else ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """``switches``: the switches that together cause the difference, each with its citation. ``rules``: those that
    decide on one side only, if there are any, else all of the step. ``free``: profiles that allow both sides' steps;
    then the sides chose differently where Kafka promises nothing (M-TGT-02)."""

    one: Followed
    other: Followed
    rules: tuple[str, ...]
    switches: tuple[tuple[str, str], ...]
    free: tuple[str, ...] = ()

    def why(self) -> str:
        """The switches that cause it; else the side that departs from its profile, or a free choice."""
        if self.switches:
            return " + ".join(f"{name} ({cites})" for name, cites in self.switches)
        refused = [f"{name}: {side.refused}" for name, side in (("A", self.one), ("B", self.other)) if side.refused]
        if refused:
            return "; ".join(refused)
        if self.free:
            return f"a free choice: {' and '.join(self.free)} allows both"
        return f"each follows its profile; decided by {', '.join(self.rules)}" if self.rules else ""


def explain(job: Job, trace: Generated, pair: Pair, cause: Cause) -> Explanation:
    """Explain a difference. ``pair``: both sides at the end of the trace, which should be short."""
    mine = [(event, seen) for event, (seen, _) in zip(pair.events, pair.seen, strict=False)][: cause.event + 1]
    theirs = pair.theirs[: cause.own + 1]
    one = follow(trace.settings, PROFILES[job.one.profile], mine)
    other = follow(trace.settings, PROFILES[job.other.profile], theirs)
    left, right = one.at(cause.event), other.at(cause.own)
    apart = [rule for rule in (*left, *right) if (rule in left) is not (rule in right)]
    free = [
        name
        for name in dict.fromkeys((job.one.profile, job.other.profile))
        if all(follow(trace.settings, PROFILES[name], steps).whole(steps) for steps in (mine, theirs))
    ]
    rules = tuple(apart or dict.fromkeys((*left, *right)))
    return Explanation(one, other, rules, tuple(_switches(job, trace, cause.key)), tuple(free))


def follow(settings: Settings, profile: Profile, steps: Sequence[tuple[ev.Event, Observation]]) -> Followed:
    """Let the model follow the steps, up to the first that it does not allow."""
    follower = Follower(settings, profile, _FUNCTIONS.matcher)
    rules: list[tuple[str, ...]] = []
    for index, (event, seen) in enumerate(steps):
        verdict = follower.feed(event, seen)
        rules.append(verdict.rules)
        if not verdict.ok:
            closest = verdict.alternatives[0].mismatches if verdict.alternatives else ()
            why = verdict.reason or (f"{closest[0].part}" if closest else "no such step")
            refusal = f"step {index} is not allowed under profile {profile.name}: {why}"
            return Followed(tuple(rules), refusal if index == len(steps) - 1 else None)
    return Followed(tuple(rules), None)


def _switches(job: Job, trace: Generated, key: str) -> Iterator[tuple[str, str]]:
    """Yield the fewest of the profiles' differing switches that cause the difference, each with its citation."""
    one, other = PROFILES[job.one.profile], PROFILES[job.other.profile]
    apart = [name for name in SWITCH_NAMES if getattr(one, name) != getattr(other, name)]

    def makes(names: Sequence[str]) -> bool:
        changed: dict[str, Any] = {name: getattr(other, name) for name in names}
        pair = Pair(CoreLive(trace.settings, one), CoreLive(trace.settings, replace(one, **changed)))
        return any(cause.key == key for cause in _causes(pair, trace.events))

    needed = next(([name] for name in apart if makes([name])), None)
    if needed is None:
        needed = apart if makes(apart) else []
        for name in tuple(needed):
            fewer = [each for each in needed if each != name]
            if makes(fewer):
                needed = fewer
    yield from ((name, _CITES[name]) for name in needed)


def _causes(pair: Pair, events: Sequence[ev.Event]) -> list[Cause]:
    for event in events:
        try:
            pair.feed(event)
        except Exception:
            break  # an event that is impossible for the core, since Kafka differed before
    return pair.causes
