"""A mutant: a named fault, written as replacements of text in the core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from .replacement import DoesNotApply, Replacement, diff, exchanged_code, in_place, replaced


class Side(Enum):
    """The faulty part, which decides the checks that run against it."""

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
    """``rules``: the rules that it breaks, by id. ``origin``: the real fault that it repeats, a ticket or a commit;
    empty if it only inverts a rule. ``words``: what the faulty program does."""

    name: str
    side: Side
    rules: tuple[str, ...]
    origin: str
    words: str
    replacements: tuple[Replacement, ...]

    @property
    def source(self) -> str:
        """The origin of the fault: the real one, or the rule that it breaks."""
        return self.origin or self.rules[0]


def check(mutant: Mutant) -> None:
    """Raise ``DoesNotApply`` with the mutant, the file and the missing text, if it does not apply."""
    try:
        exchanged_code(mutant.replacements)
    except DoesNotApply as reason:
        raise DoesNotApply(f"mutant {mutant.name} does not apply: {reason}") from None


def text_of(mutant: Mutant) -> str:
    """Return the fault as a unified diff of the core."""
    return diff(replaced(mutant.replacements))


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """Plant the fault in the program within the block. Raises ``DoesNotApply``."""
    check(mutant)
    with in_place(mutant.replacements):
        yield
