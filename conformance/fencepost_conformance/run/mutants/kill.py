"""The findings of the checks: what found a mutant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kill:
    """A finding: the ``check``, the property or comparison (``by``), after how many steps, in which seed."""

    check: str
    by: str
    steps: int
    seed: int
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first kill of each check; a mutant without any survived. ``broken``: the exception of a check, so that the
    suite did not run to its end."""

    mutant: str
    kills: tuple[Kill, ...]
    broken: str = ""

    @property
    def killed(self) -> bool:
        return bool(self.kills)
