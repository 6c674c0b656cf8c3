"""An answer that says an error wherever the answer to a request has a place for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kio.schema.errors import ErrorCode as Code

from ..wire.frames import MalformedFrame, response_schema
from ..wire.shape import shape
from .call import Call


def refusal(call: Call, request: Any, code: Code) -> dict[str, Any]:
    """The code at the top of the answer, if it has one; else at each row that the request named. Raises
    ``MalformedFrame`` where an error cannot be told: the connection is closed then."""
    if any(field.name == "error_code" for field in shape(response_schema(call.header.api, call.version))):
        return {"error_code": code}
    rows = _ROWS.get(call.header.api)
    if rows is None:
        raise MalformedFrame(f"{call.header.api} failed, and its answer has no place to say so")
    return rows(request, code)


def _offset_topics(request: Any, code: Code) -> dict[str, Any]:
    return {
        "topics": [
            {
                "name": getattr(topic, "name", ""),
                "topic_id": getattr(getattr(topic, "topic_id", None), "bytes", None),
                "partitions": [
                    {"partition_index": each.partition_index, "error_code": code} for each in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


def _produced(request: Any, code: Code) -> dict[str, Any]:
    return {
        "responses": [
            {
                "name": getattr(topic, "name", ""),
                "topic_id": getattr(getattr(topic, "topic_id", None), "bytes", None),
                "partition_responses": [
                    {"index": each.index, "error_code": code, "base_offset": -1} for each in topic.partition_data
                ],
            }
            for topic in request.topic_data
        ]
    }


def _offsets(named: str, number: str) -> Any:
    def refused(request: Any, code: Code) -> dict[str, Any]:
        return {
            "topics": [
                {
                    named: getattr(topic, named),
                    "partitions": [{number: getattr(each, number), "error_code": code} for each in topic.partitions],
                }
                for topic in request.topics
            ]
        }

    return refused


def _named(field: str, key: str, rows: str) -> Any:
    def refused(request: Any, code: Code) -> dict[str, Any]:
        return {rows: [{key: getattr(each, key, each), "error_code": code} for each in getattr(request, field, ())]}

    return refused


_ROWS: Final[dict[str, Callable[[Any, Code], dict[str, Any]]]] = {
    "offset_commit": _offset_topics,
    "txn_offset_commit": _offset_topics,
    "produce": _produced,
    "list_offsets": _offsets("name", "partition_index"),
    "offset_for_leader_epoch": _offsets("topic", "partition"),
    "delete_records": _offsets("name", "partition_index"),
    "describe_groups": _named("groups", "group_id", "groups"),
    "consumer_group_describe": _named("group_ids", "group_id", "groups"),
    "delete_groups": _named("groups_names", "group_id", "results"),
    "create_topics": _named("topics", "name", "topics"),
    "create_partitions": _named("topics", "name", "results"),
    "offset_fetch": _named("groups", "group_id", "groups"),
}
