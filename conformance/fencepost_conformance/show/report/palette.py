"""The mark of a member wherever partitions are shown: a letter, and one of a few colours."""

from __future__ import annotations

COLOURS = 10  #: then colours repeat; letters continue

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def letter(number: int) -> str:
    """Return A … Z, a … z, then a plus."""
    return _LETTERS[number] if number < len(_LETTERS) else "+"


def swatch(number: int) -> str:
    """Return the letter on its colour, as HTML."""
    return f'<i class="swatch m{number % COLOURS}">{letter(number)}</i>'
