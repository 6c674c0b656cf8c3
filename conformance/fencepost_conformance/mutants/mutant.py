"""A mutant: a named fault, written as texts of the core that become other texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from .replacement import DoesNotApply, Replacement, diff, exchanged_code, in_place, replaced


class Side(Enum):
    """What is faulty, and so what is run against it."""

    COORDINATOR = "coordinator"
    CONSUMER_GROUP = "coordinator of consumer groups"
    MIXED_GROUP = "coordinator of mixed groups"
    OFFSETS = "coordinator, of offsets"
    MEMBER = "member"
    CONSUMER_MEMBER = "consumer member"
    READER = "reader"
    ASSIGNOR = "assignor"
    CODEC = "codec"
    CLUSTER = "host, log and loading"
    OFFSET_EDGES = "coordinator, of offsets at boundaries"
    LOG = "log of a partition"
    RECORDS = "codec, of records at boundaries"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class Mutant:
    """``rules``: what it breaks, by ids of the rule book. ``origin``: the fault of a real system that it repeats, a
    ticket or a commit; empty if it only turns a rule round. ``words``: what the faulty program does."""

    name: str
    side: Side
    rules: tuple[str, ...]
    origin: str
    words: str
    replacements: tuple[Replacement, ...]

    @property
    def source(self) -> str:
        """Where the fault comes from: the real one, or the rule that it breaks."""
        return self.origin or self.rules[0]


def check(mutant: Mutant) -> None:
    """Raises ``DoesNotApply``, which names the mutant, the file and what is missing there."""
    try:
        exchanged_code(mutant.replacements)
    except DoesNotApply as reason:
        raise DoesNotApply(f"mutant {mutant.name} does not apply: {reason}") from None


def text_of(mutant: Mutant) -> str:
    """The fault as a unified diff of the core."""
    return diff(replaced(mutant.replacements))


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """While this is entered, the fault is in the program. Raises ``DoesNotApply``."""
    check(mutant)
    with in_place(mutant.replacements):
        yield
