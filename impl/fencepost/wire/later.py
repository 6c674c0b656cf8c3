"""Messages in versions that Kafka 4.4 has but kio does not have yet, in the form of kio's classes."""

import datetime
import uuid
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from kio.schema.api_versions.v4.response import ApiVersion, FinalizedFeatureKey, SupportedFeatureKey
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeader0
from kio.schema.response_header.v1.header import ResponseHeader as ResponseHeader1
from kio.static.constants import EntityType

_I16: Final = {"kafka_type": "int16"}
_I32: Final = {"kafka_type": "int32"}
_I64: Final = {"kafka_type": "int64"}
_TEXT: Final = {"kafka_type": "string"}
_CODE: Final = {"kafka_type": "error_code"}
_UUID: Final = {"kafka_type": "uuid"}
_TIME: Final = {"kafka_type": "timedelta_i32"}


class _ApiVersions:
    __version__: ClassVar = 5
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 18


class _DeleteGroups:
    __version__: ClassVar = 3
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 42


class _TxnOffsetCommit:
    __version__: ClassVar = 6
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 28


@dataclass(frozen=True, kw_only=True)
class ApiVersionsRequest(_ApiVersions):
    """ApiVersions v5, which names the node that the client wants to reach."""

    __type__: ClassVar = EntityType.request
    __header_schema__: ClassVar = RequestHeader
    client_software_name: str = field(metadata=_TEXT)
    client_software_version: str = field(metadata=_TEXT)
    cluster_id: str | None = field(metadata=_TEXT, default=None)
    node_id: int = field(metadata=_I32, default=-1)


@dataclass(frozen=True, kw_only=True)
class ApiVersionsResponse(_ApiVersions):
    """The same as in v4."""

    __type__: ClassVar = EntityType.response
    __header_schema__: ClassVar = ResponseHeader0
    error_code: ErrorCode = field(metadata=_CODE)
    api_keys: tuple[ApiVersion, ...]
    throttle_time: datetime.timedelta = field(metadata=_TIME)
    supported_features: tuple[SupportedFeatureKey, ...] = field(metadata={"tag": 0}, default=())
    finalized_features_epoch: int = field(metadata={**_I64, "tag": 1}, default=-1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = field(metadata={"tag": 2}, default=())
    zk_migration_ready: bool = field(metadata={"kafka_type": "bool", "tag": 3}, default=False)


@dataclass(frozen=True, kw_only=True)
class DeleteGroupsRequest(_DeleteGroups):
    """The same as in v2 (G-WIRE-14)."""

    __type__: ClassVar = EntityType.request
    __header_schema__: ClassVar = RequestHeader
    groups_names: tuple[str, ...] = field(metadata=_TEXT)


@dataclass(frozen=True, kw_only=True)
class DeletableGroupResult(_DeleteGroups):
    """A row with an error message, which is null for the groups of this server (G-WIRE-14)."""

    __type__: ClassVar = EntityType.nested
    __header_schema__: ClassVar = ResponseHeader1
    group_id: str = field(metadata=_TEXT)
    error_code: ErrorCode = field(metadata=_CODE)
    error_message: str | None = field(metadata=_TEXT, default=None)


@dataclass(frozen=True, kw_only=True)
class DeleteGroupsResponse(_DeleteGroups):
    """A row for each group (G-WIRE-14)."""

    __type__: ClassVar = EntityType.response
    __header_schema__: ClassVar = ResponseHeader1
    throttle_time: datetime.timedelta = field(metadata=_TIME)
    results: tuple[DeletableGroupResult, ...]


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitRequestPartition(_TxnOffsetCommit):
    """The same as in v5."""

    __type__: ClassVar = EntityType.nested
    __header_schema__: ClassVar = RequestHeader
    partition_index: int = field(metadata=_I32)
    committed_offset: int = field(metadata=_I64)
    committed_leader_epoch: int = field(metadata=_I32, default=-1)
    committed_metadata: str | None = field(metadata=_TEXT)


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitRequestTopic(_TxnOffsetCommit):
    """A topic, given by id (O-TXN-16)."""

    __type__: ClassVar = EntityType.nested
    __header_schema__: ClassVar = RequestHeader
    topic_id: uuid.UUID | None = field(metadata=_UUID)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitRequest(_TxnOffsetCommit):
    """Offsets of a transaction, with topics given by id (O-TXN-16)."""

    __type__: ClassVar = EntityType.request
    __header_schema__: ClassVar = RequestHeader
    transactional_id: str = field(metadata=_TEXT)
    group_id: str = field(metadata=_TEXT)
    producer_id: int = field(metadata=_I64)
    producer_epoch: int = field(metadata=_I16)
    generation_id: int = field(metadata=_I32, default=-1)
    member_id: str = field(metadata=_TEXT, default="")
    group_instance_id: str | None = field(metadata=_TEXT, default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...]


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitResponsePartition(_TxnOffsetCommit):
    """The same as in v5."""

    __type__: ClassVar = EntityType.nested
    __header_schema__: ClassVar = ResponseHeader1
    partition_index: int = field(metadata=_I32)
    error_code: ErrorCode = field(metadata=_CODE)


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitResponseTopic(_TxnOffsetCommit):
    """A topic, given by id (O-TXN-16)."""

    __type__: ClassVar = EntityType.nested
    __header_schema__: ClassVar = ResponseHeader1
    topic_id: uuid.UUID | None = field(metadata=_UUID)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...]


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitResponse(_TxnOffsetCommit):
    """The error codes of the partitions (O-TXN-16)."""

    __type__: ClassVar = EntityType.response
    __header_schema__: ClassVar = ResponseHeader1
    throttle_time: datetime.timedelta = field(metadata=_TIME)
    topics: tuple[TxnOffsetCommitResponseTopic, ...]


_CLASSES: Final[dict[str, tuple[Any, Any]]] = {
    "api_versions": (ApiVersionsRequest, ApiVersionsResponse),
    "delete_groups": (DeleteGroupsRequest, DeleteGroupsResponse),
    "txn_offset_commit": (TxnOffsetCommitRequest, TxnOffsetCommitResponse),
}

#: The classes by API, version and kind that kio does not have.
LATER: Final[dict[tuple[str, int, EntityType], Any]] = {
    (api, each.__version__, each.__type__): each for api, classes in _CLASSES.items() for each in classes
}
