"""The answers of a node that stands by: they send clients to the leader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from kio.schema.errors import ErrorCode as Code

from fencepost_server.apis.call import Call, Values, optional, uuid_bytes
from fencepost_server.apis.refusal import refusal
from fencepost_server.apis.requests import FetchTopic

_ANYWHERE: Final = frozenset(
    {
        "api_versions",
        "sasl_handshake",
        "sasl_authenticate",
        "metadata",
        "find_coordinator",
        "describe_cluster",
        "describe_topic_partitions",
        "describe_configs",
    }
)
_NONE: Final[str | None] = None
_NO_UUID: Final[UUID | None] = None
_NO_TOPICS: Final[Sequence[FetchTopic]] = ()
_DATA: Final = frozenset({"produce", "fetch", "list_offsets", "offset_for_leader_epoch", "delete_records"})
_TOPICS: Final = frozenset({"create_topics", "delete_topics", "create_partitions", "incremental_alter_configs"})


def anywhere(name: str, request: object) -> bool:
    """Return whether a node that stands by answers this request itself. A producer without a transactional id gets its
    id from any node."""
    return name in _ANYWHERE or (name == "init_producer_id" and optional(request, "transactional_id", _NONE) is None)


def elsewhere(call: Call, request: object) -> Values:
    """The answer that another node leads; the client then looks it up. Raises ``MalformedFrame`` if the answer has no
    error code: the closed connection makes the client look up the leader too."""
    name = call.header.api
    if name == "fetch":
        return {
            "responses": [
                {
                    "topic": optional(row, "topic", ""),
                    "topic_id": uuid_bytes(optional(row, "topic_id", _NO_UUID)),
                    "partitions": [
                        {
                            "partition_index": each.partition,
                            "high_watermark": -1,
                            "error_code": Code.not_leader_or_follower,
                            "records": b"",
                        }
                        for each in row.partitions
                    ],
                }
                for row in optional(request, "topics", _NO_TOPICS)
            ]
        }
    if name in _DATA:
        return refusal(call.header, request, Code.not_leader_or_follower)
    return refusal(call.header, request, Code.not_controller if name in _TOPICS else Code.not_coordinator)
