"""Answers that reject a request with an error code.

The place of the error code depends on the API and version. Some answers have one at the top, others have one for each
row of the request. In OffsetFetch it is in the partitions (v0-1), at the top (v2-7), or in the groups (v8 on); only
UNSTABLE_OFFSET_COMMIT is always in the partitions (O-FETCH-08). In Fetch it is in the partitions (v4-6), in both places
(v7-12), or at the top (v13 on).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Final, TypeAlias

from kio.schema.errors import ErrorCode as Code

from fencepost.wire.fill import fill
from fencepost.wire.frames import (
    MalformedFrame,
    RequestHeader,
    read_request,
    read_request_header,
    response_schema,
    write_response,
)
from fencepost.wire.shape import shape
from fencepost_server.apis.call import Values, optional, uuid_bytes

#: From a request of any API and an error code to the rows of the answer. The fields are read by their names, which the
#: table below has for each API.
_Rows: TypeAlias = Callable[[object, Code], list[Values]]
_NO_ROWS: Final[tuple[object, ...]] = ()
#: the version of Fetch
_TOP_ALONE_SINCE: Final = 13


def refused(frame: bytes, code: Code) -> bytes:
    """Return the frame of the answer that rejects the request in a frame. Raises ``MalformedFrame`` as ``refusal``
    does, and if the frame is not a request."""
    header = read_request_header(frame)
    values = refusal(header, read_request(header, frame), code)
    return write_response(header.correlation_id, fill(response_schema(header.api, header.api_version), values))


def refusal(header: RequestHeader, request: object, code: Code) -> Values:
    """Return the answer with the code at its top, if it has one there, or else in each row of the request; in some
    versions of Fetch in both places.

    Raises ``MalformedFrame``, which closes the connection, if there is no row for the error, as in the metadata of all
    topics.
    """
    api, version = header.api, header.api_version
    if api == "offset_fetch" and code is Code.unstable_offset_commit:
        return _unstable(request, code)
    fields = {field.name for field in shape(response_schema(api, version))}
    top: Values = {"error_code": code} if "error_code" in fields else {}
    if top and not (api == "fetch" and version < _TOP_ALONE_SINCE):
        return top
    for name, rows in _ROWS.get(api, {}).items():
        if name in fields and (made := rows(request, code)):
            return {**top, name: made}
    if top:
        return top
    raise MalformedFrame(f"{api} failed, and its answer has no error code")


def _each(rows: str, *keys: str, filled: Values = MappingProxyType({})) -> _Rows:
    """Copy the keys of each row of the request. The value of a row that is a plain string goes to all keys. ``filled``
    are further fields of a row."""

    def made(request: object, code: Code) -> list[Values]:
        return [{**filled, **_keys(row, keys), "error_code": code} for row in optional(request, rows, _NO_ROWS) or ()]

    return made


def _keys(row: object, keys: Iterable[str]) -> Values:
    if isinstance(row, str):
        return dict.fromkeys(keys, row)
    found = {key: getattr(row, key) for key in keys if hasattr(row, key)}
    return {key: uuid_bytes(value) if key == "topic_id" else value for key, value in found.items()}


def _topics(
    topics: str,
    partitions: str,
    number: str,
    *,
    named: str = "name",
    answered: str = "",
    numbered: str = "",
    error: str = "error_code",
    filled: Values = MappingProxyType({}),
) -> _Rows:
    """Make a row for each topic of the request, with a row for each of its partitions.

    ``topics``, ``partitions``, ``number`` and ``named`` are fields of the request. ``answered`` and ``numbered`` are
    the names of ``partitions`` and ``number`` in the answer, if they differ. ``filled`` are further fields of a row.
    """

    def made(request: object, code: Code) -> list[Values]:
        return [
            {
                **_keys(topic, (named, "topic_id")),
                answered or partitions: [
                    {**filled, numbered or number: getattr(each, number, each), error: code}
                    for each in getattr(topic, partitions)
                ],
            }
            for topic in getattr(request, topics)
        ]

    return made


def _deleted(request: object, code: Code) -> list[Values]:
    return _each("topics", "name", "topic_id")(request, code) or _each("topic_names", "name")(request, code)


_OFFSETS: Final = {"topics": _topics("topics", "partitions", "partition_index")}
_FETCHED: Final = _topics(
    "topics",
    "partition_indexes",
    "partition_index",
    answered="partitions",
    filled={"committed_offset": -1, "metadata": ""},
)


def _unstable(request: object, code: Code) -> Values:
    """Put the code into each partition; a request for all partitions has none, and gets none."""
    if not hasattr(request, "groups"):
        return {"topics": _FETCHED(request, code) if optional(request, "topics", _NO_ROWS) else ()}
    rows = [
        {
            "group_id": optional(row, "group_id", ""),
            "topics": _FETCHED(row, code) if optional(row, "topics", _NO_ROWS) else (),
        }
        for row in optional(request, "groups", _NO_ROWS)
    ]
    return {"groups": rows}


_GROUPS: Final = {"groups": _each("groups", "group_id")}
_RESOURCES: Final = _each("resources", "resource_type", "resource_name")
#: The rows by API and field of the answer.
_ROWS: Final[dict[str, dict[str, _Rows]]] = {
    "produce": {
        "responses": _topics(
            "topic_data", "partition_data", "index", answered="partition_responses", filled={"base_offset": -1}
        )
    },
    "fetch": {
        "responses": _topics(
            "topics",
            "partitions",
            "partition",
            named="topic",
            numbered="partition_index",
            filled={"high_watermark": -1, "aborted_transactions": ()},
        )
    },
    "offset_commit": _OFFSETS,
    "txn_offset_commit": _OFFSETS,
    "list_offsets": _OFFSETS,
    "delete_records": _OFFSETS,
    "offset_for_leader_epoch": {"topics": _topics("topics", "partitions", "partition", named="topic")},
    "offset_fetch": {
        "groups": _each("groups", "group_id"),
        "topics": _FETCHED,
    },
    "add_partitions_to_txn": {
        "results_by_topic_v3_and_below": _topics(
            "v3_and_below_topics",
            "partitions",
            "partition_index",
            answered="results_by_partition",
            error="partition_error_code",
        )
    },
    "find_coordinator": {  # rows like Kafka's for an unknown coordinator
        "coordinators": _each("coordinator_keys", "key", filled={"node_id": -1, "host": "", "port": -1})
    },
    "metadata": {"topics": _each("topics", "name", "topic_id")},
    "describe_topic_partitions": {"topics": _each("topics", "name")},
    "describe_groups": _GROUPS,
    "consumer_group_describe": {"groups": _each("group_ids", "group_id")},
    "delete_groups": {"results": _each("groups_names", "group_id")},
    "create_topics": {"topics": _each("topics", "name")},
    "create_partitions": {"results": _each("topics", "name")},
    "delete_topics": {"responses": _deleted},
    "describe_configs": {"results": _RESOURCES},
    "incremental_alter_configs": {"responses": _RESOURCES},
}
