"""Commits of the clients of a closed system.

A commit changes nothing in the group; the closed system of offsets covers what happens to the offset. So a commit is an
edge from a state to itself, in states where the application owns something and would commit it. It has one of two
names: ``ClientCommits`` if it is accepted, ``ClientCommitIsRejected`` if it is not. The model's check of commits
(``offsets.checks``) decides that, and the specification states it again. So the comparison of the graphs (E1) compares
the check itself, and finds one that is too strict as well as one that is too lax.

Only plain commits in the newest version are checked; those of transactions use the same check (6.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..explore.interface import Outcome
from ..offsets.checks import AnyGroup, Committer, may_commit
from ..variant import Variant

COMMITS: Final = "ClientCommits"
_VERSION: Final = 10


def committer(member_id: str, instance: str, epoch: int, *partitions: tuple[bytes, int]) -> Committer:
    """Return the sender of a commit with this generation or member epoch, for (topic id, number) each. A classic group
    needs no partitions."""
    return Committer(member_id, instance or None, epoch, _VERSION, False, partitions)


def is_accepted(variant: Variant, group: AnyGroup, by: Committer) -> bool:
    """Return whether the commit, sent now, would be accepted (O-COMMIT-25 to 28, O-COMMIT-30 to 33)."""
    return may_commit(variant, group, by).error is None


def outcomes(name: str, taken: Iterable[bool]) -> Iterator[Outcome]:
    """Yield the outcomes of the client's commits. ``taken`` says for each partition whether one is accepted."""
    seen = frozenset(taken)
    if True in seen:
        yield Outcome((COMMITS, name), ())
    if False in seen:
        yield Outcome(("ClientCommitIsRejected", name), ())
