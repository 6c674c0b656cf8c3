"""Requests and responses of the KIP-848 group APIs, in Kafka's field names (snake case).

As in ``messages``: contents without wire encoding; a field that a version lacks holds its default. Topic ids are 16
bytes. The order of topic and member rows is not specified.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .errors import ErrorCode
from .frozen import quick

#: Member epochs with a special meaning (G-VOC-09, G-WIRE-41).
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


@quick
@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of one topic, by topic id."""

    topic_id: bytes
    partitions: tuple[int, ...]


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatRequest:
    """A member joins, stays, changes its subscription or leaves: ConsumerGroupHeartbeat v0–1 (G-WIRE-10, 40…46). None
    and a rebalance timeout of -1 mean "unchanged"; an empty regex means "no regex". ``subscribed_topic_regex`` exists
    from v1 on."""

    group_id: str
    _: KW_ONLY
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatResponse:
    """The member's epoch and target (G-WIRE-47). ``assignment`` None: no change; empty: own nothing. Each coordinator
    words ``error_message`` itself."""

    error_code: ErrorCode
    _: KW_ONLY
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[TopicPartitions, ...] | None = None


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeRequest:
    """Request for details of consumer groups: ConsumerGroupDescribe v0–1 (G-WIRE-11)."""

    group_ids: tuple[str, ...]


@quick
@dataclass(frozen=True, slots=True)
class NamedTopicPartitions:
    """Partitions of one topic, by id and name."""

    topic_id: bytes
    topic_name: str
    partitions: tuple[int, ...]


@quick
@dataclass(frozen=True, slots=True)
class DescribedConsumerMember:
    """A member in a description (M-DESC-01). ``member_type``: 0 classic, 1 consumer; -1 below v1, which lacks it."""

    member_id: str
    _: KW_ONLY
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: tuple[NamedTopicPartitions, ...]
    target_assignment: tuple[NamedTopicPartitions, ...]
    member_type: int = -1


@quick
@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    """A group in a description; with an error the other fields are empty."""

    error_code: ErrorCode
    _: KW_ONLY
    group_id: str
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedConsumerMember, ...] = ()
    error_message: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeResponse:
    """The groups in the order of the request."""

    groups: tuple[DescribedConsumerGroup, ...]
