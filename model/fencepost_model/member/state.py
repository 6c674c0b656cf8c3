"""A member between two inputs (rule book, 8.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from ..machines import UNJOINED
from .codec import Codec, PlainCodec
from .inputs import Metadata, Partition

#: The stored generation id after a reset (K-ST-14).
NO_GENERATION: Final = -1


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """A member's configuration. ``protocols`` in configuration order; ``cooperative``: their common rebalance
    protocol."""

    group_id: str = "g"
    protocols: tuple[str, ...] = ("range",)
    cooperative: bool = False
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    auto_commit: bool = False
    protocol_type: str = "consumer"
    codec: Codec = field(default_factory=PlainCodec)
    profile: Profile = INTENDED


class Generation(NamedTuple):
    """The stored generation (K-ST-14)."""

    id: int = NO_GENERATION
    member_id: str = ""
    protocol: str | None = None

    @property
    def is_reset(self) -> bool:
        """Whether it is reset; the member id does not matter (K-ST-12)."""
        return self.id == NO_GENERATION and self.protocol is None


class InFlight(NamedTuple):
    """A request without answer, with the generation of its sending (K-ST-15)."""

    request: int
    api: str  #: ``join``, ``sync``, ``heartbeat``, ``commit``, or ``other`` for requests whose answer is not awaited
    generation: Generation


class Joined(NamedTuple):
    """The outcome of a join: an assignment, or an error (the name of a code or an exception)."""

    assignment: bytes = b""
    error: str = ""
    retriable: bool = False


class MemberState(NamedTuple):
    """One member.

    - ``joining``: a JoinGroup was sent and the join has not ended (K-ERR-15); ``joined``: its outcome, for the next
      poll.
    - ``prepare``: join prepare is due before the next JoinGroup.
    - ``commit``: the commit of join prepare: ``""`` (none), ``waiting`` or ``done``.
    - ``joined_topics``: the subscription that was sent last (K-JOIN-03).
    - ``renewed``: there is metadata that no poll has read. ``snapshot``: the topics that the last poll which read it
      saw: the member's own, and while it ``leads``, its ``group_topics`` (K-JOIN-18).
    - ``watched``: the snapshot at the last assignment by this member, until it completes a join as a follower
      (K-JOIN-02).
    - ``failure``: the error that ended the heartbeat thread, thrown by one poll (K-HB-10).
    """

    state: str = UNJOINED
    generation: Generation = Generation()
    coordinator: bool = False
    looking: bool = False
    rejoin: bool = True
    reason: str = ""
    prepare: bool = True
    commit: str = ""
    joining: bool = False
    joined: Joined | None = None
    topics: frozenset[str] = frozenset()
    joined_topics: frozenset[str] | None = None
    owned: frozenset[Partition] = frozenset()
    metadata: Metadata = ()
    renewed: bool = False
    snapshot: Metadata = ()
    group_topics: frozenset[str] = frozenset()
    leads: bool = False
    watched: Metadata | None = None
    thread: bool = False
    beating: bool = False
    failure: str = ""
    in_flight: tuple[InFlight, ...] = ()
    next_request: int = 1
    closed: bool = False
