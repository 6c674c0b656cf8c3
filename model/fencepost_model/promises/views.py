"""Views of a group and its members, made by each program that checks promises."""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member of a consumer group. A partition is any value that names it. ``revoking``: partitions that the member
    still has to revoke."""

    member_id: str
    epoch: int
    assigned: Set[Hashable]
    revoking: Set[Hashable]


@dataclass(frozen=True, slots=True)
class GroupView:
    """A consumer group."""

    epoch: int
    assignment_epoch: int
    members: Sequence[MemberView]
