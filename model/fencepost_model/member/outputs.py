"""The actions of a member."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from .inputs import Partition

MemberRequest: TypeAlias = (
    JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest | ConsumerGroupHeartbeatRequest
)


class Send(NamedTuple):
    """A request to the coordinator."""

    request: int
    body: MemberRequest


class Commit(NamedTuple):
    """A commit of the positions of these partitions (K-CB-01, K-LEAVE-04)."""

    request: int
    generation: int
    member_id: str
    partitions: frozenset[Partition]


class FindCoordinator(NamedTuple):
    """A look-up of the coordinator (K-FIND-01)."""


class AskMetadata(NamedTuple):
    """A request for metadata of these topics (K-JOIN-10, K-JOIN-18; members of classic groups only)."""

    topics: frozenset[str]


class Callback(NamedTuple):
    """A rebalance listener is called: ``revoked``, ``assigned`` or ``lost``."""

    kind: str
    partitions: frozenset[Partition]


class Raise(NamedTuple):
    """An exception reaches the application; ``error`` is the code's name, or the exception's."""

    error: str


class Returns(NamedTuple):
    """The application's call returns (members of consumer groups only)."""


MemberOutput: TypeAlias = Send | Commit | FindCoordinator | AskMetadata | Callback | Raise | Returns
