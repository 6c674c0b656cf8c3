"""Who coordinates a group (11.1): any broker may be asked, and the answer may be out of date when it arrives."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from typing import Final

from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.sharding import partition_for

#: The first version that asks for several keys at once (F-FIND-06).
BATCHED: Final = 4
NEWEST: Final = 6


class KeyType(IntEnum):
    """What a key names."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest:
    """Asks who coordinates: FindCoordinator v0-6 (G-WIRE-09). Before v4 there is one key. v0 carries no ``key_type``:
    a group."""

    coordinator_keys: tuple[str, ...]
    _: KW_ONLY
    key_type: int = KeyType.GROUP


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A broker that lives, where clients reach it."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Coordinator:
    """Who coordinates one key; with an error nobody: node -1, no host, port -1."""

    key: str
    _: KW_ONLY
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse:
    """A row for each key in the order of the request, each with an error of its own (F-FIND-06)."""

    coordinators: tuple[Coordinator, ...]


def find_coordinator(
    request: FindCoordinatorRequest,
    version: int,
    leaders: Mapping[int, Endpoint] | None,
    partitions: int,
    denied: AbstractSet[str] = frozenset(),
) -> FindCoordinatorResponse:
    """Where each group's partition is led. ``leaders``: the brokers that live and lead, by partition, as this broker
    knows them; None if there is no offsets topic yet, which the host then creates (F-FIND-02). ``denied``: groups that
    the caller may not describe (F-FIND-01).

    Raises ``IllegalEvent`` for a version that does not exist, for several keys before v4, and for keys that are no
    groups: these are for other coordinators."""
    if not 0 <= version <= NEWEST:
        raise IllegalEvent(f"there is no FindCoordinator v{version}; v0 to v{NEWEST} exist")
    if version < BATCHED and len(request.coordinator_keys) != 1:
        raise IllegalEvent(f"FindCoordinator v{version} has one key, not {len(request.coordinator_keys)}")
    if request.key_type != KeyType.GROUP:
        raise IllegalEvent(f"key type {request.key_type} is no group; only groups are coordinated here")
    return FindCoordinatorResponse(tuple(_row(key, leaders, partitions, denied) for key in request.coordinator_keys))


def _row(
    group_id: str, leaders: Mapping[int, Endpoint] | None, partitions: int, denied: AbstractSet[str]
) -> Coordinator:
    if group_id in denied:
        return Coordinator(group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)  # F-FIND-01
    leader = None if leaders is None else leaders.get(partition_for(group_id, partitions))
    if leader is None:
        return Coordinator(group_id, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)  # F-FIND-02, F-FIND-03
    return Coordinator(group_id, node_id=leader.node_id, host=leader.host, port=leader.port)  # F-FIND-04
