"""Requests and responses of the group APIs, in Kafka's field names (snake case); those of KIP-848 are in
``consumer_messages``, those of offsets in ``offset_messages``.

The classes hold the *contents* of the messages, without wire encoding. Fields that an API version does not have hold
the default of Kafka's generated classes (G-WIRE-01…04, 12…14). Times are milliseconds. Byte strings are opaque to the
coordinator. ``throttle_time_ms`` is left out: the broker sets it, not the coordinator.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

from .consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from .errors import ErrorCode
from .frozen import quick
from .offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkerRequest,
    WriteTxnMarkerResponse,
)


@quick
@dataclass(frozen=True, slots=True)
class Protocol:
    """One entry of a member's ordered list of supported assignors."""

    name: str
    metadata: bytes


@quick
@dataclass(frozen=True, slots=True)
class JoinGroupRequest:
    """A member asks to be in the group's next generation: JoinGroup v0–9 (G-WIRE-01). ``rebalance_timeout_ms`` is -1 in
    v0, which lacks it. ``reason`` is for the broker's log and has no effect (G-WIRE-24, C-JOIN-67)."""

    group_id: str
    _: KW_ONLY
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str
    protocols: tuple[Protocol, ...]
    reason: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class JoinGroupMember:
    """A row of the member list, which only the leader gets (C-JOIN-49)."""

    member_id: str
    _: KW_ONLY
    group_instance_id: str | None = None
    metadata: bytes


@quick
@dataclass(frozen=True, slots=True)
class JoinGroupResponse:
    """The response to JoinGroup. ``protocol_name`` null and ``""`` are equal on the wire (G-WIRE-20, C-JOIN-77). A
    response with an error has the defaults below (G-WIRE-21)."""

    error_code: ErrorCode
    _: KW_ONLY
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinGroupMember, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class SyncGroupAssignment:
    """The leader's assignment for one member."""

    member_id: str
    assignment: bytes


@quick
@dataclass(frozen=True, slots=True)
class SyncGroupRequest:
    """A member asks for its assignment, and the leader sends all assignments: SyncGroup v0–5 (G-WIRE-02). Protocol type
    and name are null below v5."""

    group_id: str
    _: KW_ONLY
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupAssignment, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class SyncGroupResponse:
    """The member's assignment, in the bytes of its leader."""

    error_code: ErrorCode
    _: KW_ONLY
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@quick
@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    """A member is alive in this generation: Heartbeat v0–4 (G-WIRE-03)."""

    group_id: str
    _: KW_ONLY
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """Whether the member is in its generation; an error code says what it must do."""

    error_code: ErrorCode


@quick
@dataclass(frozen=True, slots=True)
class LeaveGroupMember:
    """A member that leaves, by member id or by instance id."""

    member_id: str
    _: KW_ONLY
    group_instance_id: str | None = None
    reason: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class LeaveGroupRequest:
    """Members leave, or are removed by an administrator: LeaveGroup v0–5 (G-WIRE-04); for v0–2 ``members`` holds
    exactly one entry (G-WIRE-23)."""

    group_id: str
    members: tuple[LeaveGroupMember, ...]


@quick
@dataclass(frozen=True, slots=True)
class LeaveGroupMemberResponse:
    """The result for one leaving member."""

    member_id: str
    _: KW_ONLY
    group_instance_id: str | None = None
    error_code: ErrorCode


@quick
@dataclass(frozen=True, slots=True)
class LeaveGroupResponse:
    """The response to LeaveGroup. For v0–2 ``members`` is empty, and ``error_code`` is that of the one entry
    (G-WIRE-23)."""

    error_code: ErrorCode
    members: tuple[LeaveGroupMemberResponse, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class DescribeGroupsRequest:
    """Request for details of classic groups: DescribeGroups v0–6 (G-WIRE-12)."""

    groups: tuple[str, ...]


@quick
@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member in a description; it has metadata and assignment only in a Stable group."""

    member_id: str
    _: KW_ONLY
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@quick
@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """One group of a DescribeGroups response. ``error_message`` exists from v6 on (C-ADM-02)."""

    error_code: ErrorCode
    _: KW_ONLY
    group_id: str
    group_state: str
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()
    error_message: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class DescribeGroupsResponse:
    """The groups in the order of the request."""

    groups: tuple[DescribedGroup, ...]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest:
    """Request for the list of groups: ListGroups v0–5 (G-WIRE-13); an empty filter matches everything (C-ADM-05)."""

    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group's name, protocol type, state and kind."""

    group_id: str
    _: KW_ONLY
    protocol_type: str
    group_state: str
    group_type: str


@quick
@dataclass(frozen=True, slots=True)
class ListGroupsResponse:
    """The groups of one coordinator; a client asks all coordinators."""

    error_code: ErrorCode
    groups: tuple[ListedGroup, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class DeleteGroupsRequest:
    """Request to delete groups: DeleteGroups v0–2 (G-WIRE-14)."""

    groups_names: tuple[str, ...]


@quick
@dataclass(frozen=True, slots=True)
class DeletedGroup:
    """The result for one group."""

    group_id: str
    error_code: ErrorCode


@quick
@dataclass(frozen=True, slots=True)
class DeleteGroupsResponse:
    """A row for each group of the request."""

    results: tuple[DeletedGroup, ...]


RequestBody: TypeAlias = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | DescribeGroupsRequest
    | ListGroupsRequest
    | DeleteGroupsRequest
    | ConsumerGroupHeartbeatRequest
    | ConsumerGroupDescribeRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | OffsetDeleteRequest
    | TxnOffsetCommitRequest
    | WriteTxnMarkerRequest
)
ResponseBody: TypeAlias = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | DescribeGroupsResponse
    | ListGroupsResponse
    | DeleteGroupsResponse
    | ConsumerGroupHeartbeatResponse
    | ConsumerGroupDescribeResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | OffsetDeleteResponse
    | TxnOffsetCommitResponse
    | WriteTxnMarkerResponse
)

#: Versions that the coordinator accepts, first and last (G-WIRE-01…04, 10…14).
VERSIONS: dict[type, tuple[int, int]] = {
    JoinGroupRequest: (0, 9),
    SyncGroupRequest: (0, 5),
    HeartbeatRequest: (0, 4),
    LeaveGroupRequest: (0, 5),
    DescribeGroupsRequest: (0, 6),
    ListGroupsRequest: (0, 5),
    DeleteGroupsRequest: (0, 2),
    ConsumerGroupHeartbeatRequest: (0, 1),
    ConsumerGroupDescribeRequest: (0, 1),
    OffsetCommitRequest: (2, 10),
    OffsetFetchRequest: (1, 10),
    OffsetDeleteRequest: (0, 0),
    TxnOffsetCommitRequest: (0, 6),
    WriteTxnMarkerRequest: (1, 2),
}
