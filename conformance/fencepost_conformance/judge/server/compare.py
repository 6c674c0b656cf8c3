"""Find differences between the answers of two brokers to one script, and the shortest script that shows one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .script import Script


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. ``at``: the number of the request in the script. ``path``: the place in its answer. ``one`` and
    ``other``: the values there."""

    at: int
    api: str
    path: str
    one: Any
    other: Any

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of the difference; differences with the same key count as one."""
        steps = ".".join(step.partition("[")[0] for step in self.path.split("."))
        return self.api, steps, f"{_kind(self.one)} / {_kind(self.other)}" if steps.endswith("code") else ""


def _kind(value: Any) -> str:
    return str(value) if isinstance(value, int | str) or value is None else type(value).__name__


def differences(one: Any, other: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """The paths at which two values differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other})
        return [row for name in names for row in differences(one.get(name), other.get(name), f"{path}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [row for at, (first, second) in pairs for row in differences(first, second, f"{path}[{at}]")]
    return [] if one == other else [(path, one, other)]


def first_difference(script: Script, one: Sequence[Any], other: Sequence[Any]) -> Difference | None:
    """The first difference: of the first request whose answers differ, with error codes before other fields."""
    for at, (move, first, second) in enumerate(zip(script, one, other, strict=True)):
        if found := differences(first, second):
            path, here, there = min(found, key=lambda row: not row[0].endswith("code"))
            return Difference(at, move.api, path, here, there)
    return None


#: plays a script on both brokers and compares the answers
Examine: TypeAlias = Callable[[Script], Awaitable[Difference | None]]


async def shrink(script: Script, found: Difference, examine: Examine, *, most: int = 300) -> tuple[Script, Difference]:
    """The shortest script that shows the difference: leave out halves first, then smaller pieces, then single requests
    (ddmin). ``most``: the most candidates to try."""
    best, why = script[: found.at + 1], found
    tried = 0
    size = max(len(best) // 2, 1)
    while tried < most:
        at, shorter = 0, False
        while at < len(best) - 1 and tried < most:  # the last request shows the difference
            candidate = best[:at] + best[min(at + size, len(best) - 1) :]
            tried += 1
            again = await examine(candidate)
            if again is not None and again.key == found.key:
                best, why, shorter = candidate[: again.at + 1], again, True
            else:
                at += size
        if size == 1 and not shorter:
            break
        size = max(size // 2, 1)
    return best, why
