"""The state of a classic group that is visible outside its coordinator, as core, model and Kafka's classes share it.

It is everything in G-DATA-01…11 except timestamps and derived counters. If two coordinators agree on records, replies,
timers and views after every event, they agree on everything that a later event can depend on.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum

from .frozen import quick
from .messages import Protocol


class GroupState(Enum):
    """States of a classic group by the names that Kafka shows (C-ST-01…05, C-ADM-04)."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@quick
@dataclass(frozen=True, slots=True)
class MemberView:
    """A member of a classic group (G-DATA-11). ``awaiting_*``: a future is stored for it, completed or not
    (C-ST-23)."""

    member_id: str
    _: KW_ONLY
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes
    is_new: bool
    awaiting_join: bool
    awaiting_sync: bool


@quick
@dataclass(frozen=True, slots=True)
class GroupView:
    """One classic group. ``members`` is sorted by member id; ``static_members`` by instance id."""

    group_id: str
    _: KW_ONLY
    state: GroupState
    previous_state: GroupState
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    members: tuple[MemberView, ...]
    static_members: tuple[tuple[str, str], ...]
    pending_join: frozenset[str]
    pending_sync: frozenset[str]
    new_member_added: bool
