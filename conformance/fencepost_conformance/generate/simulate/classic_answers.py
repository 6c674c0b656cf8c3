"""Answers that a coordinator may give to a classic member, correct or not."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.member.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from fencepost_model.member.state import MemberState

JOIN_ERRORS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
SYNC_ERRORS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
HEARTBEAT_ERRORS = (
    ErrorCode.NONE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def answers(state: MemberState, name: str, kind: str) -> list[object]:
    """Return answers to a request of that kind from a member in that state of the model; ``name``: its assignor."""
    if kind == "heartbeat":
        return [HeartbeatResponse(error) for error in HEARTBEAT_ERRORS]
    if kind == "leave":
        return [LeaveGroupResponse(ErrorCode.NONE)]
    if kind == "sync":
        shares = ((), (("t", 0),), (("t", 1),), (("u", 0),))
        return [
            *(
                SyncGroupResponse(
                    ErrorCode.NONE, protocol_type="consumer", protocol_name=name, assignment=_share(share)
                )
                for share in shares
            ),
            SyncGroupResponse(ErrorCode.NONE, protocol_type="consumer", protocol_name=name),
            SyncGroupResponse(ErrorCode.NONE, protocol_type="consumer", protocol_name="other", assignment=_share(())),
            *(SyncGroupResponse(error) for error in SYNC_ERRORS),
        ]
    generation = max(state.generation.id, 0) + 1
    own = JoinGroupMember("m", metadata=encode_subscription(Subscription(tuple(state.topics or ("t",)))))
    rows = (own, JoinGroupMember("n", metadata=encode_subscription(Subscription(("t", "u")))))
    return [
        JoinGroupResponse(
            ErrorCode.NONE,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name=name,
            leader="n",
            member_id="m",
        ),
        JoinGroupResponse(
            ErrorCode.NONE,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name=name,
            leader="m",
            member_id="m",
            members=rows,
        ),
        JoinGroupResponse(
            ErrorCode.NONE,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name=name,
            leader="m",
            skip_assignment=True,
            member_id="m",
            members=rows,
        ),
        JoinGroupResponse(
            ErrorCode.NONE,
            generation_id=generation,
            protocol_type="connect",
            protocol_name=name,
            leader="n",
            member_id="m",
        ),
        JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id="m"),
        *(JoinGroupResponse(error) for error in JOIN_ERRORS),
    ]


def _share(partitions: Sequence[tuple[str, int]]) -> bytes:
    return encode_assignment(Assignment(tuple(TopicPartition(*each) for each in partitions)))
