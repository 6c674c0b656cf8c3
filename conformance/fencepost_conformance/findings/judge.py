"""What a judge is: a look at a story that tells where a promise is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from .story import Step, Story

#: a story's first broken promise in words, None if it is kept; raises ``NotReached``
Judge: TypeAlias = Callable[[Story], str | None]
#: of a judge that looks at every step alone: what is wrong after the step with this place
Look: TypeAlias = Callable[[Story, int, Step], str | None]


class NotReached(Exception):
    """The story does not get to where the promise can be judged; the message says why."""


class Verdict(StrEnum):
    """What a target's story says of a finding."""

    PRESENT = "present"  #: the promise is broken
    GONE = "gone"  #: the story got there, and the promise is kept
    DIFFERENT = "different"  #: the story did not get there


@dataclass(frozen=True, slots=True)
class Judged:
    """``why``: what is broken, or why it cannot be judged; empty if the promise is kept."""

    verdict: Verdict
    why: str = ""


def at_any_step(look: Look, missing: Callable[[Story], str | None]) -> Judge:
    """A promise of every moment. ``missing``: what a story lacks in which the promise says nothing; None if nothing."""

    def judge(story: Story) -> str | None:
        found = next(_broken(look, story), None)
        if found is None and (lacks := missing(story)) is not None:
            raise NotReached(lacks)
        return found

    return judge


def at_the_end(look: Look) -> Judge:
    """A promise of the last moment."""
    return lambda story: look(story, len(story.steps) - 1, story.last)


def _broken(look: Look, story: Story) -> Iterator[str]:
    for place, step in enumerate(story.steps):
        found = look(story, place, step)
        if found is not None:
            yield f"{found} (event {place})"


def reached(holds: object, otherwise: str) -> None:
    """Raises ``NotReached`` unless it holds."""
    if not holds:
        raise NotReached(otherwise)
