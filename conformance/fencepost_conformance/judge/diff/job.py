"""The description of a comparison, and the row that results from each trace. Plain values, for any worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.protocol.profiles import INTENDED, PROFILES

from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...generate.plan import GroupProtocol
from ...targets.registry import TargetName, absolute, parse_target, profile_for


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two, by name: a profile of the core, or Kafka; ``profile``: the core's, or the closest to Kafka."""

    name: str
    target: TargetName
    profile: str


@dataclass(frozen=True, slots=True)
class Job:
    """``one`` is the side that traces are made for. ``steps``: events of a trace."""

    one: Side
    other: Side
    steps: int
    protocol: GroupProtocol


@dataclass(frozen=True, slots=True)
class Found:
    """A cause in one trace, at its first occurrence. ``event``: index in the trace; ``times``: number of
    occurrences."""

    key: str
    event: int
    left: str
    right: str
    others: tuple[str, ...]
    times: int


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one trace. ``following``: number of consequences, by the key of their cause. ``broken``: why a side
    could not run the trace; then it has no verdict."""

    seed: int
    protocol: GroupProtocol
    steps: int
    found: tuple[Found, ...]
    following: Mapping[str, int]
    broken: str = ""


def parse_side(text: str) -> Side:
    """Parse ``core`` (as intended), ``core:PROFILE``, or Kafka as for the other commands. Raises ``CannotRun``."""
    head, colon, profile = text.partition(":")
    if head in ("core", "model"):
        profile = profile if colon else INTENDED.name
        if profile not in PROFILES:
            known = ", ".join(f"core:{name}" for name in sorted(PROFILES))
            raise CannotRun(unknown("profile of the core", profile, PROFILES, f"known: {known}"))
        return Side(f"core:{profile}", TargetName("core"), profile)
    target = parse_target(text)
    if target.kind != "kafka":
        raise CannotRun(f"{text}: a broker cannot be compared event by event; use core:PROFILE or kafka:RELEASE")
    return Side(absolute(text), target, profile_for(target, None))
