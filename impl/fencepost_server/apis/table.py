"""All supported APIs, with the versions of Kafka 4.4.0."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fencepost.wire.frames import API_KEYS
from fencepost_server.apis import admin, fetch, groups, log_offsets, login, metadata, produce, transactions
from fencepost_server.apis.call import Answer, Call

#: From kio's message of a request to its answer; None if it has none. The class of the message depends on API and
#: version, so each handler declares the fields that it reads (``requests``).
Handler: TypeAlias = Callable[[Call, Any], Awaitable[Answer | None]]


@dataclass(frozen=True, slots=True)
class Api:
    """An API. ApiVersions announces versions ``low`` to ``high``; ``least`` is the first supported one, if it is
    higher."""

    name: str
    low: int
    high: int
    handler: Handler
    least: int = 0

    @property
    def key(self) -> int:
        return API_KEYS[self.name]


TABLE: Final[dict[int, Api]] = {
    each.key: each
    for each in (
        # announced from v0: old versions of librdkafka derive a broker's features from this range
        Api("produce", 0, 13, produce.produce, least=3),
        Api("fetch", 4, 18, fetch.fetch),
        Api("list_offsets", 1, 11, log_offsets.list_offsets),
        Api("metadata", 0, 13, metadata.metadata),
        Api("offset_commit", 2, 10, groups.coordinated),
        Api("offset_fetch", 1, 10, groups.coordinated),
        Api("find_coordinator", 0, 6, groups.find_coordinator),
        Api("join_group", 0, 9, groups.coordinated),
        Api("heartbeat", 0, 4, groups.coordinated),
        Api("leave_group", 0, 5, groups.coordinated),
        Api("sync_group", 0, 5, groups.coordinated),
        Api("describe_groups", 0, 6, groups.coordinated),
        Api("list_groups", 0, 5, groups.coordinated),
        Api("sasl_handshake", 0, 1, login.handshake),
        Api("api_versions", 0, 5, metadata.api_versions),
        Api("create_topics", 2, 7, admin.create_topics),
        Api("delete_topics", 1, 6, admin.delete_topics),
        Api("delete_records", 0, 2, log_offsets.delete_records),
        Api("init_producer_id", 0, 5, transactions.init_producer_id),
        Api("offset_for_leader_epoch", 2, 4, log_offsets.offset_for_leader_epoch),
        Api("add_partitions_to_txn", 0, 5, transactions.add_partitions_to_txn),
        Api("add_offsets_to_txn", 0, 4, transactions.add_offsets_to_txn),
        Api("end_txn", 0, 5, transactions.end_txn),
        Api("txn_offset_commit", 0, 6, groups.coordinated),
        Api("describe_configs", 1, 4, admin.describe_configs),
        Api("sasl_authenticate", 0, 2, login.authenticate),
        Api("create_partitions", 0, 3, admin.create_partitions),
        Api("delete_groups", 0, 3, groups.coordinated),
        Api("incremental_alter_configs", 0, 1, admin.incremental_alter_configs),
        Api("offset_delete", 0, 0, groups.coordinated),
        Api("describe_cluster", 0, 2, metadata.describe_cluster),
        Api("consumer_group_heartbeat", 0, 1, groups.coordinated),
        Api("consumer_group_describe", 0, 1, groups.coordinated),
        Api("list_config_resources", 0, 1, admin.list_config_resources),
        Api("describe_topic_partitions", 0, 0, metadata.describe_topic_partitions),
    )
}

ANNOUNCED: Final = [
    {"api_key": api.key, "min_version": api.low, "max_version": api.high}
    for api in sorted(TABLE.values(), key=lambda a: a.key)
]
