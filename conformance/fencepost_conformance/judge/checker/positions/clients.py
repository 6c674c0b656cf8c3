"""The clients of a trace that are one member each, and their partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final
from uuid import UUID

from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.embedded import SchemaError, decode_assignment, decode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    RequestBody,
    ResponseBody,
    SyncGroupRequest,
    SyncGroupResponse,
)

from ....traces.convert import wire_request
from ....traces.files import WireTrace
from ....traces.lines import SentLine
from ..offsets.places import Names, Place
from .track import Track

#: The assignor whose members keep their partitions while they join (K-JOIN-03).
COOPERATIVE: Final = "cooperative-sticky"
_OF_MEMBERS = HeartbeatRequest | SyncGroupRequest | ConsumerGroupHeartbeatRequest


@dataclass(slots=True)
class Client:
    """A member, by the client id of its requests. ``held``: the partitions that it was assigned and has not given
    up."""

    name: str
    group_id: str
    held: set[Place] = field(default_factory=set)
    tracks: dict[Place, Track] = field(default_factory=dict)
    cooperative: bool = False

    def track(self, place: Place) -> Track:
        return self.tracks.setdefault(place, Track())

    def says(self, body: RequestBody, at_ms: int, names: Names) -> None:
        """Note a request of the member, which may show what it has given up."""
        if isinstance(body, JoinGroupRequest):
            self.cooperative = any(each.name == COOPERATIVE for each in body.protocols)
            if self.cooperative:
                self._keeps(owned(body), at_ms)
        elif isinstance(body, ConsumerGroupHeartbeatRequest):
            if body.member_epoch == 0:
                self._keeps(set(), at_ms)
            elif body.member_epoch > 0 and body.topic_partitions is not None:
                self._keeps(places(body.topic_partitions, names), at_ms)

    def hears(self, answer: ResponseBody | None, at_ms: int, names: Names) -> None:
        """Note an answer to the member, which may assign partitions. With an eager assignor, the others are lost."""
        if isinstance(answer, SyncGroupResponse) and answer.error_code is ErrorCode.NONE:
            given = assigned(answer)
            if not self.cooperative:
                self._keeps(given, at_ms)
            self._gains(given)
        elif isinstance(answer, ConsumerGroupHeartbeatResponse) and answer.assignment is not None:
            self._gains(places(answer.assignment, names))

    def _gains(self, given: set[Place]) -> None:
        for place in given - self.held:
            self.track(place).gain()
        self.held |= given

    def _keeps(self, kept: set[Place], at_ms: int) -> None:
        for place in self.held - kept:
            self.track(place).lost_ms = at_ms
        self.held &= kept


def clients(trace: WireTrace) -> dict[str, Client]:
    """The clients that are a member of one group, and only one member at a time. For other clients the trace does not
    show which member reads."""
    found: dict[str, Client] = {}
    seen: dict[str, dict[str, list[int]]] = {}
    several: set[str] = set()
    for number, line in enumerate(trace.lines, 1):
        if not isinstance(line, SentLine) or line.client_id is None:
            continue
        body = wire_request(line)
        if not isinstance(body, _OF_MEMBERS | JoinGroupRequest):
            continue
        client = found.setdefault(line.client_id, Client(line.client_id, body.group_id))
        if client.group_id != body.group_id:
            several.add(line.client_id)
        if isinstance(body, _OF_MEMBERS) and body.member_id:
            seen.setdefault(line.client_id, {}).setdefault(body.member_id, []).append(number)
    for name, members in seen.items():
        spans = sorted((lines[0], lines[-1]) for lines in members.values())
        if any(end > begin for (_, end), (begin, _) in pairwise(spans)):
            several.add(name)
    return {name: client for name, client in found.items() if name not in several}


def owned(body: JoinGroupRequest) -> set[Place]:
    """The partitions that a member says it owns, by its first protocol; none if it does not say."""
    try:
        return set(decode_subscription(body.protocols[0].metadata).owned_partitions)
    except (SchemaError, IndexError):
        return set()


def assigned(answer: SyncGroupResponse) -> set[Place]:
    """The partitions in an answer to SyncGroup; none if it cannot be decoded."""
    try:
        return set(decode_assignment(answer.assignment).partitions)
    except SchemaError:
        return set()


def places(rows: tuple[TopicPartitions, ...], names: Names) -> set[Place]:
    """The partitions of rows with topic ids, by names where the trace shows them."""
    return {
        (names.names.get(topic := str(UUID(bytes=row.topic_id)), topic), number)
        for row in rows
        for number in row.partitions
    }
