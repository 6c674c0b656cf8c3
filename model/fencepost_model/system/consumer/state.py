"""The values of the closed consumer group: the group, its members, clients, heartbeats and answers.

Everything is hashable and flat. The partitions that a member holds are a set of (partition, assignment epoch)
(M-PE-06). Mappings are tuples of pairs, sorted by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

Partitions: TypeAlias = frozenset[str]
NO_PARTITIONS: Final[Partitions] = frozenset()
Holding: TypeAlias = frozenset[tuple[str, int]]
NOTHING: Final[Holding] = frozenset()

AWAY: Final = -2  #: epoch of a static member that left for a while (M-LEAVE-05)

T = TypeVar("T")
Pairs: TypeAlias = tuple[tuple[str, T], ...]


def pairs(mapping: Mapping[str, T]) -> Pairs[T]:
    return tuple(sorted(mapping.items()))


def names(holding: Iterable[tuple[str, int]]) -> Partitions:
    return frozenset(partition for partition, _ in holding)


MemberState: TypeAlias = Literal["STABLE", "UNREVOKED", "UNRELEASED"]


class Member(NamedTuple):
    """A member: e, previous e, state, A and R of section 7."""

    instance: str
    epoch: int = 0
    previous: int = -1
    state: MemberState = "STABLE"
    assigned: Holding = NOTHING
    revoking: Holding = NOTHING


class Hard(NamedTuple):
    """The state of the group in the log. ``hashed``: the number of partitions under the metadata hash (M-META-07)."""

    group_epoch: int = 1
    assignment_epoch: int = 1
    hashed: int = 0
    members: Pairs[Member] = ()
    target: Pairs[Partitions] = ()
    instances: Pairs[str] = ()


class Group(NamedTuple):
    """The coordinator's memory. ``rebalance_timers`` hold the epoch at arming; ``blocked``: the interval runs."""

    hard: Hard = Hard()
    rebalance_timers: Pairs[int] = ()
    session_timers: frozenset[str] = frozenset()
    blocked: bool = False


class Client(NamedTuple):
    """One client process; fields as in the contract."""

    state: Literal["down", "joining", "member", "stopped"] = "down"
    member_id: str = ""
    instance: str = ""
    epoch: int = 0
    owned: Partitions = NO_PARTITIONS
    assigned: Partitions = NO_PARTITIONS
    reconciling: bool = False
    unacknowledged: bool = False
    unsure: bool = False
    waiting: bool = False


class Heartbeat(NamedTuple):
    """A heartbeat. ``owned`` None: not reported. A negative epoch leaves."""

    awaited: bool
    member_id: str
    instance: str
    epoch: int
    owned: Partitions | None
    full: bool


class Reply(NamedTuple):
    """An answer. ``assignment`` None: the answer holds none (M-RSP-01)."""

    error: str
    epoch: int = 0
    assignment: Partitions | None = None


class Endpoint(NamedTuple):
    """A client with its messages in flight."""

    client: Client = Client()
    requests: frozenset[Heartbeat] = frozenset()
    replies: frozenset[Reply] = frozenset()


class Batch(NamedTuple):
    """A batch that is appended, not yet replicated: the log's state after it, and (client, answer) that wait for it
    (M-HB-11)."""

    hard: Hard
    answers: frozenset[tuple[int, Reply]] = frozenset()


class Log(NamedTuple):
    replicated: Hard = Hard()
    open: tuple[Batch, ...] = ()
