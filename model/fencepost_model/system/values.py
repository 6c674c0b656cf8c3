"""The values of the closed system outside the group machine: clients, requests and replies in flight.

The field names are those of the contract in snake case. Every kind of message begins with its API, so that values of
different kinds are never equal.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from fencepost.protocol import embedded
from fencepost.protocol.partitions import TopicPartition

Partitions: TypeAlias = frozenset[str]
NO_PARTITIONS: Final[Partitions] = frozenset()


class Metadata(NamedTuple):
    """The metadata that a member sends in JoinGroup; bytes to the coordinator."""

    owned: Partitions
    generation: int


class Client(NamedTuple):
    """One client process. In ``down`` and ``stopped`` the other fields have their defaults."""

    state: Literal["down", "unjoined", "joining", "syncing", "stable", "stopped"] = "down"
    member_id: str = ""
    generation: int = -1
    owned: Partitions = NO_PARTITIONS
    owned_generation: int = -1


class JoinRequest(NamedTuple):
    api: Literal["JoinGroup"]
    awaited: bool
    member_id: str
    metadata: Metadata


class SyncRequest(NamedTuple):
    api: Literal["SyncGroup"]
    awaited: bool
    member_id: str
    generation: int
    assignment: frozenset[tuple[str, Partitions]]


class LeaveRequest(NamedTuple):
    api: Literal["LeaveGroup"]
    awaited: Literal[False]
    member_id: str


Request: TypeAlias = JoinRequest | SyncRequest | LeaveRequest


class JoinReply(NamedTuple):
    api: Literal["JoinGroup"]
    error: str
    member_id: str = ""
    generation: int = -1
    leader: str = ""
    skip_assignment: bool = False
    members: frozenset[tuple[str, Metadata]] = frozenset()


class SyncReply(NamedTuple):
    api: Literal["SyncGroup"]
    error: str
    assignment: Partitions = NO_PARTITIONS


Reply: TypeAlias = JoinReply | SyncReply


class Endpoint(NamedTuple):
    """A client with its messages in flight."""

    client: Client = Client()
    requests: frozenset[Request] = frozenset()
    replies: frozenset[Reply] = frozenset()


# ---- the bytes of messages, as consumers write them (10.1) ----------------------------------------------------------

TOPIC: Final = "t"  #: the one topic that all read
_VERSION: Final = 2  #: of all messages: the first version of a subscription with a generation (A-EMB-02)


def number_of(partition: str) -> int:
    """Return the number of a partition; "p1" has number 0."""
    return int(partition[1:]) - 1


def named(number: int) -> str:
    return f"p{number + 1}"


@lru_cache
def encode_partitions(partitions: Partitions) -> bytes:
    """Encode an assignment; no bytes for no partitions, as the coordinator stores it for a member without any."""
    return embedded.encode_assignment(embedded.Assignment(_listed(partitions)), _VERSION) if partitions else b""


@lru_cache
def decode_partitions(data: bytes) -> Partitions:
    return _set(embedded.decode_assignment(data).partitions) if data else NO_PARTITIONS


@lru_cache
def encode_metadata(metadata: Metadata) -> bytes:
    """Encode a subscription."""
    subscription = embedded.Subscription((TOPIC,), None, _listed(metadata.owned), metadata.generation)
    return embedded.encode_subscription(subscription, _VERSION)


@lru_cache
def decode_metadata(data: bytes) -> Metadata:
    found = embedded.decode_subscription(data)
    return Metadata(_set(found.owned_partitions), found.generation_id)


def _listed(partitions: Partitions) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(TOPIC, number) for number in sorted(map(number_of, partitions)))


def _set(partitions: tuple[TopicPartition, ...]) -> Partitions:
    return frozenset(named(each.partition) for each in partitions)
