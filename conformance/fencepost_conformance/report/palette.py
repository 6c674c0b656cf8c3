"""What stands for a member wherever partitions are shown: a letter, and one of a few colours."""

from __future__ import annotations

COLOURS = 10  #: then they begin anew; the letters go on

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def letter(number: int) -> str:
    """A … Z, a … z, then a plus."""
    return _LETTERS[number] if number < len(_LETTERS) else "+"


def swatch(number: int) -> str:
    """The letter on its colour, as HTML."""
    return f'<i class="swatch m{number % COLOURS}">{letter(number)}</i>'
