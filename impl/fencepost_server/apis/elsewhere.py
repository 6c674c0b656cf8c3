"""The answers of a node that stands by: they send clients to the leader."""

from __future__ import annotations

from typing import Any, Final

from kio.schema.errors import ErrorCode as Code

from fencepost_server.apis.call import Call, uuid_bytes
from fencepost_server.apis.refusal import refusal

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
_DATA: Final = frozenset({"produce", "fetch", "list_offsets", "offset_for_leader_epoch", "delete_records"})
_TOPICS: Final = frozenset({"create_topics", "delete_topics", "create_partitions", "incremental_alter_configs"})


def anywhere(name: str, request: Any) -> bool:
    """Return whether a node that stands by answers this request itself. A producer without a transactional id gets its
    id from any node."""
    return name in _ANYWHERE or (name == "init_producer_id" and request.transactional_id is None)


def elsewhere(call: Call, request: Any) -> Any:
    """The answer that another node leads; the client then looks it up. Raises ``MalformedFrame`` if the answer has no
    error code: the closed connection makes the client look up the leader too."""
    name = call.header.api
    if name == "fetch":
        return {
            "responses": [
                {
                    "topic": getattr(row, "topic", ""),
                    "topic_id": uuid_bytes(getattr(row, "topic_id", None)),
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
                for row in request.topics
            ]
        }
    if name in _DATA:
        return refusal(call, request, Code.not_leader_or_follower)
    return refusal(call, request, Code.not_controller if name in _TOPICS else Code.not_coordinator)
