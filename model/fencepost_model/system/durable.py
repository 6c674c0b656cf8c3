"""The guarantee that a coordinator relies on (``spec/Durable.tla``): a state written batch by batch, whose replicated
part is never lost."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

S = TypeVar("S")


class Durable(NamedTuple, Generic[S]):
    """The state that can no longer be lost, and the state after each batch that is not yet replicated, in order."""

    stable: S
    open: tuple[S, ...] = ()


def follows(before: Durable[Any], after: Durable[Any]) -> bool:
    """Return whether a step may lead from one to the other: nothing, one more batch, some replicated, a tail lost."""
    if before.stable == after.stable and after.open[:-1] == before.open:
        return True  # written
    line = (before.stable, *before.open)
    rest = (after.stable, *after.open)
    return any(line[start : start + len(rest)] == rest for start in range(len(line)))
