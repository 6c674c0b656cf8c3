"""Names that are like one that does not exist: of commands, targets, configurations, mutants, rules, benchmarks."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

#: how alike two names must be, of 1; below it a suggestion is noise
CUTOFF: Final = 0.7
_MOST: Final = 3
#: letters that a beginning must have before it stands for a name
_BEGINNING: Final = 3


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are most like ``name``, upper and lower case being one; at most three, the likest first."""
    scored = [(_likeness(name.casefold(), each.casefold()), each) for each in dict.fromkeys(known)]
    alike = sorted((pair for pair in scored if pair[0] >= CUTOFF), key=lambda pair: -pair[0])
    return [each for _, each in alike[:_MOST]]


def unknown(kind: str, name: str, known: Iterable[str], otherwise: str) -> str:
    """What to say of a name that does not exist: the names like it, and ``otherwise``, where all of them are told."""
    like = nearest(name, known)
    guess = f"did you mean {' or '.join(like)}? " if like else ""
    return f"no {kind} {name!r}; {guess}{otherwise}"


def _likeness(one: str, other: str) -> float:
    """Of two names as a whole, or of the first and as long a beginning of the second (``eagr``, ``EagerQuiet``)."""
    whole = SequenceMatcher(None, one, other).ratio()
    if len(one) < _BEGINNING or len(one) >= len(other):
        return whole
    return max(whole, 0.95 * SequenceMatcher(None, one, other[: len(one) + 1]).ratio())
