"""Requests of an administrator, sent through the recorder, that no Python client library has in this form."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.offset_fetch.v9 import request as by_name
from kio.schema.offset_fetch.v10 import request as by_id
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from fencepost.wire.frames import API_KEYS, RequestHeader, framed, read_response, write_request
from fencepost_conformance.common.addresses import Address

_TIMEOUT_S = 30.0


def _ask(address: Address, api: str, request: Any) -> Any:
    with socket.create_connection((address.host, address.port), timeout=_TIMEOUT_S) as connection:
        header = RequestHeader(API_KEYS[api], request.__version__, 1, "admin")
        connection.sendall(framed(write_request(header, request)))
        with connection.makefile("rb") as stream:
            answer = stream.read(int.from_bytes(stream.read(4), "big"))
    return read_response(api, request.__version__, answer)


def create_topic(address: Address, name: str, partitions: int) -> None:
    """Create a topic; raises RuntimeError if the broker fails it."""
    topic = CreatableTopic(
        name=TopicName(name), num_partitions=i32(partitions), replication_factor=i16(1), assignments=(), configs=()
    )
    span = i32Timedelta.parse(timedelta(seconds=_TIMEOUT_S))
    (result,) = _ask(address, "create_topics", CreateTopicsRequest(topics=(topic,), timeout=span)).topics
    if result.error_code.value != 0:
        raise RuntimeError(f"topic {name!r} was not created: {result.error_message or result.error_code}")


def describe(address: Address, group: str) -> None:
    """Request the description of a consumer group; the answer is for the recorder."""
    request = ConsumerGroupDescribeRequest(group_ids=(GroupId(group),), include_authorized_operations=False)
    _ask(address, "consumer_group_describe", request)


def monitor(address: Address, group: str) -> None:
    """Inspect a group as a tool does that does not know its kind: describe it with both APIs, list it, and fetch all
    its offsets by topic name (OffsetFetch v9) and by topic id (v10)."""
    describe(address, group)
    described = DescribeGroupsRequest(groups=(GroupId(group),), include_authorized_operations=False)
    _ask(address, "describe_groups", described)
    _ask(address, "list_groups", ListGroupsRequest(states_filter=(), types_filter=()))
    for fetch, row in ((by_name, by_name.OffsetFetchRequestGroup), (by_id, by_id.OffsetFetchRequestGroup)):
        everything = row(group_id=GroupId(group), topics=None)
        _ask(address, "offset_fetch", fetch.OffsetFetchRequest(groups=(everything,), require_stable=False))
