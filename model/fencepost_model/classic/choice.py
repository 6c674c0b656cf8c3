"""Nondeterminism, by running a step once for each combination of choices.

A step asks its ``Chooser`` wherever the protocol leaves something open (NOT-10). The first run takes the first option
each time. For every choice with more options, further runs take each of the others. A step without a choice, by far the
most frequent kind, costs one run, and the code of a step handles no sets of results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Chooser:
    """Takes ``path`` at the first choices, the first option afterwards. ``label`` names what was chosen."""

    __slots__ = ("labels", "path", "sizes")

    def __init__(self, path: tuple[int, ...] = ()) -> None:
        self.path = path
        self.sizes: list[int] = []
        self.labels: list[str] = []

    def pick(self, what: str, options: Sequence[str]) -> str:
        """Return one of the options, which must not be empty. A single option is not counted as a choice."""
        if len(options) == 1:
            return options[0]
        at = len(self.sizes)
        self.sizes.append(len(options))
        option = options[self.path[at] if at < len(self.path) else 0]
        self.labels.append(f"{what}={option}")
        return option

    @property
    def label(self) -> str:
        return ",".join(self.labels)


def every(run: Callable[[Chooser], T]) -> list[tuple[str, T]]:
    """Return all results of ``run``, each with the label of its choices, in the order of the options."""
    found: list[tuple[str, T]] = []
    paths: list[tuple[int, ...]] = [()]
    while paths:
        path = paths.pop()
        chooser = Chooser(path)
        result = run(chooser)
        found.append((chooser.label, result))
        if not chooser.sizes:
            continue
        taken = path + (0,) * (len(chooser.sizes) - len(path))
        for at in range(len(path), len(chooser.sizes)):
            paths.extend((*taken[:at], option) for option in range(chooser.sizes[at] - 1, 0, -1))
    return found
