"""Commits of the clients of a closed system.

A commit changes nothing in the group: what becomes of the offset is told by the closed system of offsets. So a commit
is an edge from a state to itself, there where the application owns something and would commit it, under one of two
names: ``ClientCommits`` if it is accepted, ``ClientCommitsInVain`` if it is not. Who is accepted is asked of the
model's own check of commits (``offsets.checks``), and the specification says it again: so the comparison of the graphs
(E1) compares the check itself, and one that is too strict differs as much as one that is too lax.

Only plain commits in the newest version are asked about; those of transactions are checked alike (6.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fencepost.protocol.profile import Profile

from ..explore.interface import Outcome
from ..offsets.checks import AnyGroup, Committer, may_commit

COMMITS: Final = "ClientCommits"
_VERSION: Final = 10


def committer(member_id: str, instance: str, epoch: int, *partitions: tuple[bytes, int]) -> Committer:
    """Who commits with this generation or member epoch, for (topic id, number) each. A classic group asks for none."""
    return Committer(member_id, instance or None, epoch, _VERSION, False, partitions)


def is_taken(profile: Profile, group: AnyGroup, by: Committer) -> bool:
    """Whether the commit, sent now, would be accepted (O-COMMIT-25 to 28, O-COMMIT-30 to 33)."""
    return may_commit(profile, group, by).error is None


def outcomes(name: str, taken: Iterable[bool]) -> Iterator[Outcome]:
    """What commits of the client may come to; ``taken`` tells for each partition whether one is accepted."""
    seen = frozenset(taken)
    if True in seen:
        yield Outcome((COMMITS, name), ())
    if False in seen:
        yield Outcome(("ClientCommitsInVain", name), ())
