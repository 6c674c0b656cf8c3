"""All falsified copies of a trace of one group, and where a checker must notice them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fencepost.protocol.errors import ErrorCode as E

from ...traces.files import WireTrace
from . import classic, consumer, mixed, offsets, positions  # noqa: F401  (each registers its kinds)
from .exchanges import Exchange, exchanges
from .kinds import KINDS, Falsehood

__all__ = ["KINDS", "Falsehood", "falsehoods"]

#: The kinds whose reasons hold only until the consumer protocol is first used.
_CLASSIC = frozenset(kind for kind, make in KINDS.items() if make.__module__ == classic.__name__)


def _classic_part(every: list[Exchange]) -> list[Exchange]:
    every = [each for each in every if each.api != "OffsetCommit"]
    for at, each in enumerate(every):
        if each.api == "DeleteGroups" and any(row["error_code"] == E.NONE for row in each.answer["results"]):
            every = every[:at]  # then generations start again (NOT-08); the reasons do not cover that
            break
    converted = min((each.sent for each in every if each.api == "ConsumerGroupHeartbeat"), default=None)
    return every if converted is None else [each for each in every if each.received < converted]


def falsehoods(
    trace: WireTrace, per_kind: int | None = None, kinds: Iterable[str] = tuple(KINDS)
) -> Iterator[Falsehood]:
    """Yield falsified copies of a trace that begins with its only group: all of each kind, or ``per_kind``, spread
    out."""
    every = sorted(exchanges(trace), key=lambda each: each.received)
    at_first = _classic_part(every)
    for kind in kinds:
        make = KINDS[kind]
        made = list(make(trace, at_first if kind in _CLASSIC else every))
        if per_kind is not None and len(made) > per_kind:
            made = [made[at * len(made) // per_kind] for at in range(per_kind)]
        for wrong, first, last in made:
            yield Falsehood(kind, wrong, first + 1, last + 1)
