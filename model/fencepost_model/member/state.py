"""A member between two inputs (rule book, 8.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from ..machines import UNJOINED
from .codec import Codec, PlainCodec
from .inputs import Metadata, Partition

#: Stored ids after a reset (K-ST-14).
NO_GENERATION: Final = -1


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """``protocols`` in configuration order; ``cooperative`` is the rebalance protocol that they agree on."""

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
        """K-ST-12: the member id is not looked at."""
        return self.id == NO_GENERATION and self.protocol is None


class InFlight(NamedTuple):
    """A request without answer, with the generation that it was sent with (K-ST-15)."""

    request: int
    api: str  #: ``join``, ``sync``, ``heartbeat``, ``commit``, or ``other`` for what nobody waits for
    generation: Generation


class Joined(NamedTuple):
    """How the join under way ended: an assignment, or an error (a code's name, or an exception's)."""

    assignment: bytes = b""
    error: str = ""
    retriable: bool = False


class MemberState(NamedTuple):
    """One member.

    ``joining``: a JoinGroup was sent and the join has not ended (K-ERR-15). ``joined``: it has, and the next poll deals
    with it. ``prepare``: join prepare is due before the next JoinGroup. ``commit``: the commit of join prepare, as
    ``""`` (none), ``waiting`` or ``done``. ``joined_topics``: the subscription that was sent last (K-JOIN-03).
    ``renewed``: there is metadata that no poll has looked at. ``snapshot``: what the last one that looked saw of the
    member's own topics and of ``group_topics``, those of its group while it ``leads`` (K-JOIN-18). ``watched``: the
    snapshot at the last assignment that this member made, until a join is complete without its leading (K-JOIN-02).
    ``failure`` is what the heartbeat thread died of, thrown by one poll (K-HB-10).
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
