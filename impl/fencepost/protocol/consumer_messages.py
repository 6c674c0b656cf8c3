"""Requests and responses of the KIP-848 group APIs, in Kafka's field names (snake case).

As in ``messages``: contents without wire encoding; a field that a version does not carry holds its default. Topic ids
are 16 bytes. Rows of topics and members have no order that anybody promises.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .errors import ErrorCode
from .frozen import quick

#: Member epochs with a meaning of their own (G-VOC-09, G-WIRE-41).
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
    """A member joins, stays, changes its mind or leaves: ConsumerGroupHeartbeat v0–1 (G-WIRE-10, 40…46). None and a
    rebalance timeout of -1 mean "unchanged"; an empty regex means "no regex". ``subscribed_topic_regex`` exists from v1
    on."""

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
    """What the member is to have (G-WIRE-47). ``assignment`` None: no change; empty: own nothing. The words of
    ``error_message`` are the coordinator's own."""

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
    """Asks for consumer groups in full: ConsumerGroupDescribe v0–1 (G-WIRE-11)."""

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
    """A member as it is described (M-DESC-01). ``member_type``: 0 classic, 1 consumer; -1 below v1, which does not
    carry it."""

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
    """A group as it is described; with an error the rest is empty."""

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
    """The groups in the order in which they were asked for."""

    groups: tuple[DescribedConsumerGroup, ...]
