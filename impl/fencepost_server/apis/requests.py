"""The fields of requests that handlers read.

``read_request`` returns a message of kio, whose class depends on the version. A protocol here has the fields that a
handler reads in all of them: a field that only some versions have is marked with the first or last of them, and the
handler checks the version, or reads it with ``call.optional``. ``tests/unit/server/test_request_fields.py`` compares
the protocols with kio's classes, version by version.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Protocol
from uuid import UUID


class Named(Protocol):
    """A row with a name."""

    name: str


class TopicRow(Protocol):
    """A topic by its name, or by its id in later versions."""

    name: str | None
    topic_id: UUID | None


# --- data ---

#: The value of ``isolation_level`` for records of committed transactions only.
READ_COMMITTED: Final = 1


class ProducePartition(Protocol):
    """The records for a partition."""

    index: int
    records: bytes | None


class ProduceTopic(TopicRow, Protocol):
    """The records for a topic."""

    partition_data: Sequence[ProducePartition]


class ProduceRequest(Protocol):
    """The fields of Produce."""

    acks: int
    transactional_id: str | None
    topic_data: Sequence[ProduceTopic]


class FetchPartition(Protocol):
    """Optional: ``current_leader_epoch`` (v9), ``last_fetched_epoch`` (v12)."""

    partition: int
    fetch_offset: int
    partition_max_bytes: int


class FetchTopic(Protocol):
    """The partitions to fetch of a topic."""

    topic: str  #: up to v12
    topic_id: UUID | None  #: from v13
    partitions: Sequence[FetchPartition]


class ForgottenTopic(Protocol):
    """Partitions that leave a fetch session."""

    topic: str  #: up to v12
    topic_id: UUID | None  #: from v13
    partitions: Sequence[int]


class FetchRequest(Protocol):
    """Optional: ``session_id``, ``session_epoch`` and ``forgotten_topics_data`` (v7)."""

    max_wait: timedelta
    min_bytes: int
    max_bytes: int
    isolation_level: int
    topics: Sequence[FetchTopic]


class OffsetPartition(Protocol):
    """Optional: ``current_leader_epoch`` (v4)."""

    partition_index: int
    timestamp: int


class OffsetTopic(Protocol):
    """The partitions of a topic whose offsets are listed."""

    name: str
    partitions: Sequence[OffsetPartition]


class ListOffsetsRequest(Protocol):
    """Optional: ``isolation_level`` (v2)."""

    topics: Sequence[OffsetTopic]


class EpochPartition(Protocol):
    """A partition, and the leader epoch whose end offset is requested."""

    partition: int
    current_leader_epoch: int
    leader_epoch: int


class EpochTopic(Protocol):
    """Such partitions of a topic."""

    topic: str
    partitions: Sequence[EpochPartition]


class OffsetForLeaderEpochRequest(Protocol):
    """The fields of OffsetForLeaderEpoch."""

    topics: Sequence[EpochTopic]


class DeletedPartition(Protocol):
    """A partition, and the offset before which its records are deleted."""

    partition_index: int
    offset: int


class DeletedTopic(Protocol):
    """Such partitions of a topic."""

    name: str
    partitions: Sequence[DeletedPartition]


class DeleteRecordsRequest(Protocol):
    """The fields of DeleteRecords."""

    topics: Sequence[DeletedTopic]


# --- topics and settings ---


class Assignment(Protocol):
    """The brokers of a new partition."""

    broker_ids: Sequence[int]


class NumberedAssignment(Assignment, Protocol):
    """The brokers of a new partition, with its number."""

    partition_index: int


class Config(Protocol):
    """A setting of a new topic."""

    name: str
    value: str | None


class NewTopic(Protocol):
    """A topic to create."""

    name: str
    num_partitions: int
    replication_factor: int
    assignments: Sequence[NumberedAssignment]
    configs: Sequence[Config]


class CreateTopicsRequest(Protocol):
    """The fields of CreateTopics."""

    topics: Sequence[NewTopic]
    validate_only: bool


class DeleteTopicsRequest(Protocol):
    """The fields of DeleteTopics: topics by row, or in earlier versions by name."""

    topics: Sequence[TopicRow]  #: from v6
    topic_names: Sequence[str]  #: up to v5


class GrownTopic(Protocol):
    """A topic that gets more partitions; ``count``: their number afterwards."""

    name: str
    count: int
    assignments: Sequence[Assignment] | None


class CreatePartitionsRequest(Protocol):
    """The fields of CreatePartitions."""

    topics: Sequence[GrownTopic]
    validate_only: bool


class DescribedResource(Protocol):
    """A resource, and the names of the settings to describe; None: all of them."""

    resource_type: int
    resource_name: str
    configuration_keys: Sequence[str] | None


class DescribeConfigsRequest(Protocol):
    """The fields of DescribeConfigs."""

    resources: Sequence[DescribedResource]


class ConfigChange(Config, Protocol):
    """A change of one setting."""

    config_operation: int


class AlteredResource(Protocol):
    """The changes of a resource's settings."""

    resource_type: int
    resource_name: str
    configs: Sequence[ConfigChange]


class IncrementalAlterConfigsRequest(Protocol):
    """The fields of IncrementalAlterConfigs."""

    resources: Sequence[AlteredResource]
    validate_only: bool


class ListConfigResourcesRequest(Protocol):
    """The fields of ListConfigResources."""

    resource_types: Sequence[int]  #: from v1


# --- versions, brokers and topics ---


class ApiVersionsRequest(Protocol):
    """The fields of ApiVersions."""

    client_software_name: str  #: from v3
    client_software_version: str  #: from v3
    cluster_id: str | None  #: from v5
    node_id: int  #: from v5


class MetadataRequest(Protocol):
    """Optional: ``allow_auto_topic_creation`` (v4), ``include_topic_authorized_operations`` (v8); in a topic
    ``topic_id`` (v10)."""

    topics: Sequence[Named] | None


class Cursor(Protocol):
    """The partition at which a list continues."""

    topic_name: str
    partition_index: int


class DescribeTopicPartitionsRequest(Protocol):
    """The fields of DescribeTopicPartitions."""

    topics: Sequence[Named]
    response_partition_limit: int
    cursor: Cursor | None


# --- groups, transactions and logins ---


class FindCoordinatorRequest(Protocol):
    """Optional: ``key_type`` (v1)."""

    key: str  #: up to v3
    coordinator_keys: Sequence[str]  #: from v4


class InitProducerIdRequest(Protocol):
    """Optional: ``producer_id`` and ``producer_epoch`` (v3)."""

    transactional_id: str | None
    transaction_timeout: timedelta


class AddedTopic(Protocol):
    """Partitions of a topic that join a transaction."""

    name: str
    partitions: Sequence[int]


class AddedTransaction(Protocol):
    """A transaction, and the topics that join it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: Sequence[AddedTopic]


class AddPartitionsToTxnRequest(Protocol):
    """The fields of AddPartitionsToTxn: of one transaction up to version 3, of several later."""

    v3_and_below_transactional_id: str  #: up to v3
    v3_and_below_producer_id: int  #: up to v3
    v3_and_below_producer_epoch: int  #: up to v3
    v3_and_below_topics: Sequence[AddedTopic]  #: up to v3
    transactions: Sequence[AddedTransaction]  #: from v4


class AddOffsetsToTxnRequest(Protocol):
    """The fields of AddOffsetsToTxn."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


class EndTxnRequest(Protocol):
    """The fields of EndTxn."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


class SaslHandshakeRequest(Protocol):
    """The fields of SaslHandshake."""

    mechanism: str


class SaslAuthenticateRequest(Protocol):
    """The fields of SaslAuthenticate."""

    auth_bytes: bytes
