"""Judges: functions that read a played trace and report where a rule is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from fencepost_model.promises import PROMISES

from ...generate.simulate.group_rules import view_of
from .played_trace import PlayedTrace, Step

#: returns a played trace's first violation in words, or None; raises ``NotReached``
Judge: TypeAlias = Callable[[PlayedTrace], str | None]
#: a judge of single steps: returns what is wrong after the step at this position
Look: TypeAlias = Callable[[PlayedTrace, int, Step], str | None]


class NotReached(Exception):
    """The played trace does not reach the point where the rule can be judged; the message says why."""


class Verdict(StrEnum):
    """The verdict on a finding for a target."""

    PRESENT = "present"  #: the rule is broken
    GONE = "gone"  #: the rule could be judged and holds
    DIFFERENT = "different"  #: the rule could not be judged


@dataclass(frozen=True, slots=True)
class Judged:
    """``why``: the violation, or why the rule cannot be judged; empty if the rule holds."""

    verdict: Verdict
    why: str = ""


def at_any_step(look: Look, missing: Callable[[PlayedTrace], str | None]) -> Judge:
    """Return a judge of every step. ``missing`` returns why a played trace without a violation proves nothing, or
    None."""

    def judge(played: PlayedTrace) -> str | None:
        found = next(_broken(look, played), None)
        if found is None and (lacks := missing(played)) is not None:
            raise NotReached(lacks)
        return found

    return judge


def classic_groups_keep(promise_id: str) -> Look:
    """Return a look at the classic groups after a step: how one of them breaks a promise of the catalogue."""

    def look(played: PlayedTrace, place: int, step: Step) -> str | None:
        for name, group in step.classic.items():
            if how := PROMISES[promise_id].how(view_of(group)):
                return f"{name}: {how}"
        return None

    return look


def at_the_end(look: Look) -> Judge:
    """Return a judge of the last step."""
    return lambda played: look(played, len(played.steps) - 1, played.last)


def _broken(look: Look, played: PlayedTrace) -> Iterator[str]:
    for place, step in enumerate(played.steps):
        found = look(played, place, step)
        if found is not None:
            yield f"{found} (event {place})"


def reached(holds: object, otherwise: str) -> None:
    """Raise ``NotReached`` unless ``holds``."""
    if not holds:
        raise NotReached(otherwise)
