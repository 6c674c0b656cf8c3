"""The requests that a classic member may send.

The judge is lenient where a trace does not show what the client knew. An answer binds a client only ``GRACE_MS`` after
the recorder saw it: the client may have sent the next request before it read the answer. Its own requests
bind a client at once on the same connection, and after ``GRACE_MS`` on another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fencepost.protocol.embedded import SchemaError, decode_assignment, decode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse

from ..checker.offsets.places import Place
from ..checker.positions.clients import COOPERATIVE

#: how long after an answer a client may still send what it decided before
GRACE_MS: Final = 1_000
#: assignors whose members give everything up before they join (K-CB-03)
_EAGER: Final = frozenset({"range", "roundrobin", "sticky", "RoundRobinAssigner"})
#: answers that tell a member that it is out
REMOVED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID})


@dataclass(frozen=True, slots=True)
class Since:
    """Something that a client knows: since when, by which connection, and what."""

    at_ms: int
    connection: int
    what: str

    def binds(self, at_ms: int, connection: int, *, own: bool = False) -> bool:
        """Whether a request sent now, on this connection, had to respect it. ``own``: the client did it itself."""
        return (own and connection == self.connection) or at_ms > self.at_ms + GRACE_MS


def listed(places: Iterable[Place]) -> str:
    """Partitions in words."""
    return ", ".join(f"{topic}-{index}" for topic, index in sorted(places)) or "nothing"


@dataclass(slots=True)
class ClassicMember:
    """A member by its id. ``usable``: the partitions that it may use; None if they are not known. ``ending``: those
    that its last assignment no longer has, with the time until which it may commit them."""

    group: str
    member_id: str
    generation: int = -1
    renewed: Since | None = None
    removed: Since | None = None
    left: Since | None = None
    protocol: str = ""
    usable: set[Place] | None = field(default_factory=set)
    ending: dict[Place, int] = field(default_factory=dict)
    gave_up: Since | None = None
    session_ms: int = 0
    rebalance_ms: int = 0
    led: frozenset[str] = frozenset()

    @property
    def eager(self) -> bool:
        return self.protocol in _EAGER

    def joins(self, asked: JoinGroupRequest, at_ms: int, connection: int) -> set[Place]:
        """Note a JoinGroup of this member; return the partitions that it claims without owning them."""
        claimed: set[Place] = set()
        for each in asked.protocols if asked.protocol_type == "consumer" else ():
            try:
                claimed |= set(decode_subscription(each.metadata).owned_partitions)
            except SchemaError:
                self.usable = None
        if self.usable is None:
            return set()
        wrong = claimed - self.usable
        if self.protocol == COOPERATIVE:
            self.usable &= claimed
            self.ending.clear()
        elif self.eager:
            self.usable = set()
            self.ending.clear()
        self.gave_up = Since(at_ms, connection, "JoinGroup")
        return wrong

    def joined(self, asked: JoinGroupRequest, answer: JoinGroupResponse, at_ms: int, connection: int) -> None:
        """Note that JoinGroup was answered with a generation."""
        self.generation, self.protocol = answer.generation_id, answer.protocol_name or ""
        self.renewed = Since(at_ms, connection, f"generation {answer.generation_id}")
        self.removed = self.left = None
        self.session_ms, self.rebalance_ms = asked.session_timeout_ms, asked.rebalance_timeout_ms
        self.led = frozenset(each.member_id for each in answer.members)

    def synced(self, answer: SyncGroupResponse, at_ms: int, connection: int) -> None:
        """Note an assignment."""
        try:
            given: set[Place] = set(decode_assignment(answer.assignment).partitions) if answer.assignment else set()
        except SchemaError:
            self.usable = None
            return
        if self.usable is None or self.protocol not in _EAGER | {COOPERATIVE}:
            self.usable = given if self.protocol in _EAGER | {COOPERATIVE} else None
            return
        for place in self.usable - given:
            self.ending[place] = at_ms + max(self.rebalance_ms, self.session_ms) + GRACE_MS
        for place in given:
            self.ending.pop(place, None)
        self.usable = given

    def out(self, answer: ErrorCode, at_ms: int, connection: int) -> None:
        """Note that an answer told the member that the group no longer has it."""
        if self.removed is None:
            self.removed = Since(at_ms, connection, answer.name)

    def wrong_identity(
        self, generation: int, at_ms: int, connection: int, *, follows: bool = False
    ) -> tuple[str, str] | None:
        """Return the promise that a request with this generation breaks, and what is allowed; None if it is right.
        ``follows``: the client sends it because of the answer that brought the generation, as SyncGroup."""
        if self.left is not None and self.left.binds(at_ms, connection, own=True):
            return "left", f"JoinGroup: the member left at {self.left.at_ms} ms"
        if self.removed is not None and self.removed.binds(at_ms, connection):
            return "removed", f"JoinGroup, or nothing: {self.removed.what} at {self.removed.at_ms} ms"
        known = self.renewed
        if generation != self.generation and known is not None and known.binds(at_ms, connection, own=follows):
            return "identity", f"generation {self.generation}, which it got at {known.at_ms} ms"
        return None

    def not_owned(self, places: set[Place], at_ms: int, connection: int) -> set[Place]:
        """Return which of these partitions the member may not commit."""
        if self.usable is None:
            return set()
        wrong = {each for each in places - self.usable if self.ending.get(each, -1) < at_ms}
        if wrong and self.gave_up is not None and not self.gave_up.binds(at_ms, connection, own=True):
            return set()
        return wrong


def wrong_assignment(asked: SyncGroupRequest, led: frozenset[str]) -> str:
    """Return what is wrong with a leader's assignment; empty if nothing is."""
    if asked.assignments and led and (strange := {each.member_id for each in asked.assignments} - led):
        return f"it names {sorted(strange)[0]}, who is not in the leader's list"
    seen: Counter[Place] = Counter()
    for each in asked.assignments if (asked.protocol_type or "consumer") == "consumer" else ():
        try:
            seen.update(set(decode_assignment(each.assignment).partitions) if each.assignment else ())
        except SchemaError:
            return ""
    twice = {place for place, count in seen.items() if count > 1}
    return f"it assigns {listed(twice)} to two members" if twice else ""
