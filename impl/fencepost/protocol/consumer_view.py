"""The state of a consumer group that is visible outside: G-DATA-20…33, without derived data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum

from .consumer_messages import TopicPartitions
from .consumer_records import AssignedPartitions, ClassicMemberMetadata
from .frozen import quick


class ConsumerGroupState(Enum):
    """States of a consumer group by the names that Kafka shows (M-ST-01…05)."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class MemberState(Enum):
    """States of a member, with the byte for each in the log (M-MS-01…04)."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class SubscriptionType(Enum):
    """Whether all members have the same subscription (G-DATA-22, M-TGT-05)."""

    HOMOGENEOUS = "Homogeneous"
    HETEROGENEOUS = "Heterogeneous"


@quick
@dataclass(frozen=True, slots=True)
class ConsumerMemberView:
    """A member of a consumer group (G-DATA-29). Topics are in the order of their ids, partitions ascending.
    ``assignment_epochs`` is None for a release without them. An unset regex is ``""``."""

    member_id: str
    _: KW_ONLY
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str
    server_assignor: str | None
    member_epoch: int
    previous_member_epoch: int
    state: MemberState
    assigned: tuple[AssignedPartitions, ...]
    pending_revocation: tuple[AssignedPartitions, ...]
    classic: ClassicMemberMetadata | None


@quick
@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that a regex matched (G-DATA-31), by name; ``timestamp`` in ms."""

    regex: str
    topics: tuple[str, ...]
    _: KW_ONLY
    version: int
    timestamp: int


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupView:
    """One consumer group. ``members`` and ``target`` are sorted by member id, ``static_members`` by instance id,
    ``regexes`` by regex. ``partition_epochs``: (topic id, partition, epoch) of owned partitions (M-PE-01).

    ``refresh_deadline``: time in ms and group epoch of M-META-01; None: expired. ``legacy_metadata``: the log has a
    PartitionMetadata record (G-DATA-33).
    """

    group_id: str
    _: KW_ONLY
    state: ConsumerGroupState
    group_epoch: int
    metadata_hash: int
    assignment_epoch: int
    assignment_timestamp: int
    subscription_type: SubscriptionType
    members: tuple[ConsumerMemberView, ...]
    static_members: tuple[tuple[str, str], ...]
    target: tuple[tuple[str, tuple[TopicPartitions, ...]], ...]
    partition_epochs: tuple[tuple[bytes, int, int], ...]
    regexes: tuple[ResolvedRegex, ...]
    refresh_deadline: tuple[int, int] | None
    legacy_metadata: bool
