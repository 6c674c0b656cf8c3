"""Nondeterminism by running a step once for each combination of choices.

A step asks its ``Chooser`` wherever the protocol leaves something open (NOT-10). The first run takes the first option
each time; every choice that had more options is then taken otherwise in a run of its own. A step without a choice, by
far the most frequent kind, costs one run, and the text of a step stays free of sets of results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Chooser:
    """Takes ``path`` at the first choices, the first option afterwards. ``label`` says what was chosen."""

    __slots__ = ("labels", "path", "sizes")

    def __init__(self, path: tuple[int, ...] = ()) -> None:
        self.path = path
        self.sizes: list[int] = []
        self.labels: list[str] = []

    def pick(self, what: str, options: Sequence[str]) -> str:
        """One of the options, which must not be empty. A single option is no choice."""
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
    """All results of ``run``, each with the label of its choices; the order is that of the options."""
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
