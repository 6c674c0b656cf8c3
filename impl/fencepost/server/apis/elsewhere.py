"""What a node answers that stands by: where to ask instead."""

from __future__ import annotations

from typing import Any, Final

from kio.schema.errors import ErrorCode as Code

from .call import Call, uuid_bytes
from .refusal import refusal

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
    """Whether any node answers that. Idempotent producers ask any for their ids."""
    return name in _ANYWHERE or (name == "init_producer_id" and request.transactional_id is None)


def elsewhere(call: Call, request: Any) -> Any:
    """That another node leads, so that the client looks for it. Raises ``MalformedFrame`` where an answer has no place
    to say so: the connection is closed then, which has the client look too."""
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
