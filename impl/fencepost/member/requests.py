"""The requests that a member sends."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    SyncGroupAssignment,
    SyncGroupRequest,
)

from .consumer_protocol import PROTOCOL_TYPE, Assignment, Subscription, encode_assignment, encode_subscription
from .events import Send
from .partitions import partition_order
from .state import ClassicMemberState, JoinOpen, Retry, Sent, SentKind
from .turn import Turn


def _send(turn: Turn, kind: SentKind, body: RequestBody, timeout_ms: int | None = None) -> None:
    member = turn.member
    sent = Sent(member.next_request_id, kind, member.generation)
    turn.member = turn.member._replace(sent=(*member.sent, sent), next_request_id=member.next_request_id + 1)
    timeout = member.settings.request_timeout_ms if timeout_ms is None else timeout_ms
    turn.emit(Send(sent.request_id, body, timeout_ms=timeout))


def send_join(turn: Turn) -> None:
    """Send JoinGroup, for the first time (K-ST-10, C-REJ-01) or again. Remember the subscription in it (K-JOIN-03).

    The owned partitions go with the newest generation. So a retry without join prepare claims old partitions in a
    generation that assigned none (K-ERR-16)."""
    turn.member = turn.member._replace(state=ClassicMemberState.PREPARING_REBALANCE, join=JoinOpen())  # K-ST-10
    member = turn.member
    if member.coordinator.node is None:  # the member forgot it while the listener ran
        turn.fail_join("CoordinatorNotAvailableException", Retry.BACK_OFF)
        return
    settings, subscription = member.settings, member.subscription
    owned = tuple(sorted(subscription.owned, key=partition_order))
    # K-JOIN-12: one entry per assignor, in the configured order
    protocols = tuple(
        Protocol(
            assignor.name,
            encode_subscription(
                Subscription(
                    tuple(subscription.topics),
                    assignor.user_data(subscription.topics),
                    owned,
                    member.generation.generation_id,
                    settings.rack,
                )
            ),
        )
        for assignor in member.assignors
    )
    turn.member = turn.member._replace(joined_topics=subscription.topics)  # K-JOIN-03
    body = JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.max_poll_interval_ms,  # G-CFG-53
        member_id=member.generation.member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=member.rejoin_reason,
    )
    _send(turn, SentKind.JOIN, body, settings.join_timeout_ms)  # K-HB-07


def send_sync(turn: Turn, assignments: Mapping[str, Assignment]) -> None:
    """Send SyncGroup. A follower sends no assignments, nor does a leader with SkipAssignment (K-ERR-01, K-JOIN-11)."""
    member = turn.member
    if member.coordinator.node is None:
        turn.fail_join("CoordinatorNotAvailableException", Retry.BACK_OFF)
        return
    generation = member.generation
    body = SyncGroupRequest(
        group_id=member.settings.group_id,
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=member.settings.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=generation.protocol_name,
        assignments=tuple(
            SyncGroupAssignment(member_id, encode_assignment(assignment))
            for member_id, assignment in assignments.items()
        ),
    )
    _send(turn, SentKind.SYNC, body)


def send_heartbeat(turn: Turn) -> None:
    """Send a heartbeat in the member's generation."""
    member = turn.member
    body = HeartbeatRequest(
        member.settings.group_id,
        generation_id=member.generation.generation_id,
        member_id=member.generation.member_id,
        group_instance_id=member.settings.group_instance_id,
    )
    _send(turn, SentKind.HEARTBEAT, body)


def send_leave(turn: Turn, reason: str) -> None:
    """Send LeaveGroup with one entry, without an instance id (K-LEAVE-01)."""
    member = turn.member
    entry = LeaveGroupMember(member.generation.member_id, reason=reason[:255])
    _send(turn, SentKind.LEAVE, LeaveGroupRequest(member.settings.group_id, (entry,)))
