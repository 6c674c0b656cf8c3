"""The values of the closed system outside the group machine: clients, requests and replies in flight.

The field names are those of the contract in snake case. Every kind of message begins with its API, so that values of
different kinds are never equal.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Partitions: TypeAlias = frozenset[str]
NO_PARTITIONS: Final[Partitions] = frozenset()


class Metadata(NamedTuple):
    """What a member tells of itself in JoinGroup; bytes to the coordinator."""

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
    heard: bool
    member_id: str
    metadata: Metadata


class SyncRequest(NamedTuple):
    api: Literal["SyncGroup"]
    heard: bool
    member_id: str
    generation: int
    assignment: frozenset[tuple[str, Partitions]]


class LeaveRequest(NamedTuple):
    api: Literal["LeaveGroup"]
    heard: Literal[False]
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


class Lane(NamedTuple):
    """A client and what is under way from it and to it."""

    client: Client = Client()
    requests: frozenset[Request] = frozenset()
    replies: frozenset[Reply] = frozenset()


def encode_partitions(partitions: Partitions) -> bytes:
    return ",".join(sorted(partitions)).encode()


def decode_partitions(data: bytes) -> Partitions:
    return frozenset(data.decode().split(",")) if data else NO_PARTITIONS


def encode_metadata(metadata: Metadata) -> bytes:
    return b"%d:%s" % (metadata.generation, encode_partitions(metadata.owned))


def decode_metadata(data: bytes) -> Metadata:
    generation, _, owned = data.partition(b":")
    return Metadata(decode_partitions(owned), int(generation))
