"""The messages of the KIP-848 APIs in words."""

from __future__ import annotations

from fencepost.protocol import consumer_messages as cm
from fencepost.protocol.errors import ErrorCode

from .names import Names


def heartbeat_words(body: cm.ConsumerGroupHeartbeatRequest, names: Names) -> str:
    """Return all fields of the heartbeat; fields that are not sent ("unchanged", G-WIRE-40) are left out."""
    words = [f"{body.group_id or '(empty)'} member {body.member_id or '(none)'}"]
    if body.instance_id is not None:
        words.append(f"instance {body.instance_id}")
    if body.rack_id is not None:
        words.append(f"rack {body.rack_id}")
    words.append(f"epoch {body.member_epoch}{_meaning(body.member_epoch)}")
    if body.rebalance_timeout_ms != -1:
        words.append(f"rebalance {body.rebalance_timeout_ms}")
    if body.subscribed_topic_names is not None:
        words.append(f"topics [{', '.join(body.subscribed_topic_names)}]")
    if body.subscribed_topic_regex is not None:
        words.append(f"regex {body.subscribed_topic_regex or '(none)'}")
    if body.server_assignor is not None:
        words.append(f"assignor {body.server_assignor}")
    if body.topic_partitions is not None:
        words.append(f"owns {names.rows(body.topic_partitions)}")
    return " ".join(words)


def heartbeat_brief(body: cm.ConsumerGroupHeartbeatRequest, names: Names) -> str:
    member = body.member_id or body.instance_id or "(new)"
    if body.member_epoch in (cm.LEAVE_EPOCH, cm.STATIC_LEAVE_EPOCH):
        return f"{member} {'leaves' if body.member_epoch == cm.LEAVE_EPOCH else 'leaves for now'}"
    words = [f"{member} epoch {body.member_epoch}"]
    if body.member_epoch != cm.JOIN_EPOCH and body.topic_partitions is not None:
        words.append(f"owns {names.rows(body.topic_partitions)}")
    return ", ".join(words)


def _meaning(epoch: int) -> str:
    meanings = {cm.JOIN_EPOCH: " (joins)", cm.LEAVE_EPOCH: " (leaves)", cm.STATIC_LEAVE_EPOCH: " (leaves for now)"}
    return meanings.get(epoch, "")


def answer_words(body: cm.ConsumerGroupHeartbeatResponse, names: Names) -> str:
    if body.error_code is not ErrorCode.NONE:
        return f"{body.error_code.name}{f': {body.error_message}' if body.error_message else ''}"
    return (
        f"NONE member {body.member_id or '(none)'} epoch {body.member_epoch}, interval {body.heartbeat_interval_ms}, "
        f"{_assignment(body, names)}"
    )


def answer_brief(body: cm.ConsumerGroupHeartbeatResponse, names: Names) -> str:
    return f"epoch {body.member_epoch}, {_assignment(body, names)}"


def _assignment(body: cm.ConsumerGroupHeartbeatResponse, names: Names) -> str:
    return "no change" if body.assignment is None else f"own {names.rows(body.assignment)}"


def described(group: cm.DescribedConsumerGroup, names: Names) -> str:
    """Return one group of a ConsumerGroupDescribe answer, with epoch and partitions of its members."""
    if group.error_code is not ErrorCode.NONE:
        return f"{group.error_code.name} {group.group_id}"
    members = ", ".join(
        f"{row.member_id} epoch {row.member_epoch} {names.rows(row.assignment)}" for row in group.members
    )
    return (
        f"NONE {group.group_id} {group.group_state} group epoch {group.group_epoch}, assignment epoch "
        f"{group.assignment_epoch}, {group.assignor_name}: {members or 'no members'}"
    )
