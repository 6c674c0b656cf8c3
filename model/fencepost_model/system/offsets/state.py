"""The values of the closed system of offsets: members, producers, requests, answers, batches."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from ...offsets.state import Offsets
from .config import Grant
from .kept import MISSING, Entry

UNKNOWN: Final = None  #: the position before the first fetch
Position: TypeAlias = int | None
Positions: TypeAlias = tuple[Position, ...]  #: in the order of the configuration's partitions


class Decision(NamedTuple):
    """The last decision of the group and its number."""

    epoch: int
    grant: Grant


class Lease(NamedTuple):
    """The decision that a member last learned of, and what it got."""

    epoch: int = 0
    resources: frozenset[str] = frozenset()


class Member(NamedTuple):
    """The positions of a member; the partitions with processed, uncommitted records; its transaction."""

    positions: Positions
    dirty: frozenset[str] = frozenset()
    waiting: bool = False
    begun: Literal["none", "open", "failed"] = "none"


class Producer(NamedTuple):
    """The transaction coordinator's state of a producer: its last transaction with its state, the offsets known to be
    written in it (0: none), and the aborted ones."""

    number: int
    state: Literal["none", "open", "committing", "aborting"]
    offsets: tuple[int, ...]
    aborted: frozenset[int] = frozenset()


class Request(NamedTuple):
    """A request about one partition. ``offset`` and ``number`` are 0 if its kind has none."""

    api: Literal["Commit", "TxnCommit", "Fetch"]
    awaited: bool
    epoch: int
    part: int
    offset: int = 0
    number: int = 0


class Reply(NamedTuple):
    """An answer; MISSING if it contains no offset."""

    api: Literal["Commit", "TxnCommit", "Fetch"]
    part: int
    error: str
    entry: Entry = MISSING


class Endpoint(NamedTuple):
    """A member, its lease, its producer's state, and its messages in flight."""

    lease: Lease
    member: Member
    producer: Producer
    requests: frozenset[Request] = frozenset()
    replies: frozenset[Reply] = frozenset()


class Batch(NamedTuple):
    """A batch written, not yet replicated: the offsets after it, the answers that wait (by the holder's number), the
    holder whose marker it is, the partition whose offset expired or was deleted."""

    store: Offsets
    answers: frozenset[tuple[int, Reply]] = frozenset()
    ends: int | None = None
    expired: int | None = None
    deleted: int | None = None


class Log(NamedTuple):
    """The replicated offsets, and the batches written after them."""

    stable: Offsets
    open: tuple[Batch, ...] = ()

    @property
    def newest(self) -> Offsets:
        """The offsets in the coordinator's memory."""
        return self.open[-1].store if self.open else self.stable
