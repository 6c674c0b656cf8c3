"""Suggestions for unknown names: of commands, targets, configurations, mutants, rules, benchmarks."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

#: minimum likeness of two names, up to 1; below it a suggestion is noise
CUTOFF: Final = 0.7
_MOST: Final = 3
#: minimum length of a prefix that stands for a name
_BEGINNING: Final = 3


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names most like ``name``, ignoring case; at most three, the most similar first."""
    scored = [(_likeness(name.casefold(), each.casefold()), each) for each in dict.fromkeys(known)]
    alike = sorted((pair for pair in scored if pair[0] >= CUTOFF), key=lambda pair: -pair[0])
    return [each for _, each in alike[:_MOST]]


def unknown(kind: str, name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a message about an unknown name: similar names, and ``otherwise``, where to find all of them."""
    like = nearest(name, known)
    guess = f"did you mean {' or '.join(like)}? " if like else ""
    return f"no {kind} {name!r}; {guess}{otherwise}"


def _likeness(one: str, other: str) -> float:
    """Return the likeness of both names, or of the first and an equally long prefix of the second (``eagr``,
    ``EagerQuiet``)."""
    whole = SequenceMatcher(None, one, other).ratio()
    if len(one) < _BEGINNING or len(one) >= len(other):
        return whole
    return max(whole, 0.95 * SequenceMatcher(None, one, other[: len(one) + 1]).ratio())
