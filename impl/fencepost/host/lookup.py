"""FindCoordinator (11.1). Any broker can be asked, and the response may be out of date when it arrives."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from typing import Final

from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.sharding import partition_for

#: The first version with several keys (F-FIND-06).
BATCHED: Final = 4
NEWEST: Final = 6


class KeyType(IntEnum):
    """Kind of a key."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest:
    """Request for coordinators: FindCoordinator v0-6 (G-WIRE-09). Before v4 it has one key. v0 has no ``key_type``: the
    key is a group."""

    coordinator_keys: tuple[str, ...]
    _: KW_ONLY
    key_type: int = KeyType.GROUP


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A live broker, with its address for clients."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class FoundCoordinator:
    """The coordinator of one key; with an error: node -1, no host, port -1."""

    key: str
    _: KW_ONLY
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse:
    """A row for each key in the order of the request, each with its own error (F-FIND-06)."""

    coordinators: tuple[FoundCoordinator, ...]


def find_coordinator(
    request: FindCoordinatorRequest,
    version: int,
    leaders: Mapping[int, Endpoint] | None,
    partitions: int,
    denied: AbstractSet[str] = frozenset(),
) -> FindCoordinatorResponse:
    """Return the leader of each group's partition. ``leaders``: live brokers by the partitions that they lead, as this
    broker knows them; None if there is no offsets topic yet, which the host then creates (F-FIND-02). ``denied``:
    groups that the caller may not describe (F-FIND-01).

    Raises ``IllegalEvent`` for a version that does not exist, for several keys before v4, and for keys that are not
    groups, which have other coordinators."""
    if not 0 <= version <= NEWEST:
        raise IllegalEvent(f"FindCoordinator version must be from 0 to {NEWEST} (got {version})")
    if version < BATCHED and len(request.coordinator_keys) != 1:
        raise IllegalEvent(f"FindCoordinator v{version} must have one key (got {len(request.coordinator_keys)})")
    if request.key_type != KeyType.GROUP:
        raise IllegalEvent(f"key_type must be {KeyType.GROUP.value}, a group (got {request.key_type})")
    return FindCoordinatorResponse(tuple(_row(key, leaders, partitions, denied) for key in request.coordinator_keys))


def _row(
    group_id: str, leaders: Mapping[int, Endpoint] | None, partitions: int, denied: AbstractSet[str]
) -> FoundCoordinator:
    if group_id in denied:
        return FoundCoordinator(group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)  # F-FIND-01
    leader = None if leaders is None else leaders.get(partition_for(group_id, partitions))
    if leader is None:
        return FoundCoordinator(group_id, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)  # F-FIND-02, F-FIND-03
    return FoundCoordinator(group_id, node_id=leader.node_id, host=leader.host, port=leader.port)  # F-FIND-04
